"""What a broker has promised, kept outside of it: the records and the acknowledgements it answered."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from tests.harness.clients import ACCEPT, QUIET, REJECT, RELEASE, share_consumer

from sharecore.admin import SharePartitionState

_ACKNOWLEDGED, _ARCHIVING, _ARCHIVED = 2, 3, 4
_BURST, _BETWEEN_BURSTS_S = 10, 0.01
FAST_RECONNECT = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200, **QUIET}


class Ledger:
    """A producer and a share consumer of one partition at work while the broker goes down and up again.

    Every tenth record is released at its first delivery; of the rest some are rejected, most are accepted.
    `broken` says what went wrong.

    Args:
        queue: the topic of the group's dead letters, which carry their records.
        counts_may_fall: writes fail. Records whose lock runs out are free again also where that could not be
            written (KIP-932): such a delivery is forgotten when the broker is killed before the next write.
        records: where records are produced to and read, if that is not where share groups are.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        group: str,
        queue: str,
        *,
        counts_may_fall: bool = False,
        records: str | None = None,
    ) -> None:
        self._records = records or bootstrap
        self._bootstrap, self.topic, self._group, self._queue = bootstrap, topic, group, queue
        self._producing, self._consuming = threading.Event(), threading.Event()
        self._producing.set()
        self._consuming.set()
        self._threads = [threading.Thread(target=work) for work in (self._produce, self._consume)]
        self.answered: dict[int, bytes] = {}
        self.settled: dict[int, int] = {}
        self.perhaps_settled: set[int] = set()
        self._counts_may_fall = counts_may_fall
        self._released: dict[int, int] = {}
        self.start_offset = -1
        self._counts: Counter[int] = Counter()
        self._durable_counts: dict[int, int] = {}
        self.deliveries: Counter[int] = Counter()
        self.broken: list[str] = []

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def settle(self, seconds_max: float) -> None:
        """Stop producing, wait until everything answered is settled, and read the log again."""
        self._producing.clear()
        self._threads[0].join()
        until = time.monotonic() + seconds_max
        while self._open() and time.monotonic() < until:
            time.sleep(0.1)
        while (unwritten := self._without_letter()) and time.monotonic() < until:
            time.sleep(0.1)
        if unwritten:
            self.broken.append(f"{len(unwritten)} rejected records have no letter: {unwritten[:10]}")
        self._consuming.clear()
        self._threads[1].join()
        if missing := sorted(self._open()):
            self.broken.append(f"{len(missing)} answered records could not be settled: {missing[:10]}")
        self._read_log_again()

    def _open(self) -> set[int]:
        """Answered records that no acknowledgement was sent for that may have taken effect."""
        return self.answered.keys() - self.settled.keys() - self.perhaps_settled

    def _without_letter(self) -> list[int]:
        """Offsets of records whose rejection was answered, and that no letter tells of."""
        wanted = {offset for offset, kind in self.settled.items() if kind == _ARCHIVED}
        consumer = Consumer(
            {
                "bootstrap.servers": self._records,
                "group.id": "letters",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                **QUIET,
            }
        )
        consumer.assign([TopicPartition(self._queue, 0, 0)])
        ended, until = False, time.monotonic() + 30
        while not ended and time.monotonic() < until:
            for message in consumer.consume(1000, 0.5):
                if message.error() is not None:
                    ended = True
                    continue
                origin = {str(header[0]): header[1] for header in message.headers() or ()}
                if origin["__dlq.errors.topic"] != self.topic.encode():
                    continue
                offset = int(origin["__dlq.errors.offset"] or b"")
                wanted.discard(offset)
                if self.answered.get(offset, message.value()) != message.value():
                    self.broken.append(f"the letter of offset {offset} holds another record")
        consumer.close()
        return sorted(wanted)

    def check_durable(self, read: Callable[[], SharePartitionState | None]) -> None:
        """Compare what the broker has on its disk with what it answered before.

        Args:
            read: reads it; None when there is nothing yet.
        """
        settled = dict(self.settled)
        state = read()
        if state is None:
            if settled:
                self.broken.append(f"no state on the disk, but {len(settled)} answered acknowledgements")
            return
        if state.start_offset < self.start_offset:
            self.broken.append(f"the start offset went from {self.start_offset} to {state.start_offset}")
        self.start_offset = state.start_offset
        durable = {
            offset: (kind, count)
            for first, last, kind, count in state.batches
            for offset in range(first, last + 1)
        }
        for offset, kind in settled.items():
            found = durable.get(offset, (None, 0))[0]
            if found == _ARCHIVING:  # its dead letter is pending
                found = _ARCHIVED
            if offset >= state.start_offset and found != kind:
                self.broken.append(f"offset {offset} is {found} on the disk, but {kind} was answered")
        for offset, before in self._durable_counts.items():
            if offset >= state.start_offset and durable.get(offset, (0, 0))[1] < before:
                self.broken.append(f"offset {offset} has fewer deliveries on the disk than {before}")
        self._durable_counts = {offset: count for offset, (_, count) in durable.items()}

    def _produce(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._records,
                "enable.idempotence": True,
                "linger.ms": 2,
                "queue.buffering.max.messages": 2000,
                **FAST_RECONNECT,
            }
        )
        number = 0
        while self._producing.is_set():
            try:
                for _ in range(_BURST):
                    producer.produce(
                        self.topic, b"record-%d" % number, partition=0, on_delivery=self._on_answer
                    )
                    number += 1
            except BufferError:
                producer.poll(0.1)
            producer.poll(0)
            time.sleep(_BETWEEN_BURSTS_S)
        if producer.flush(30):
            self.broken.append("records without an answer for 30 s after the last restart")

    def _on_answer(self, error: object, message: Message) -> None:
        offset = message.offset()
        if error is None and offset is not None:
            if offset in self.answered:
                self.broken.append(f"offset {offset} was given twice")
            self.answered[offset] = message.value() or b""

    def _consume(self) -> None:
        with share_consumer(self._bootstrap, self._group, [self.topic], **FAST_RECONNECT) as consumer:
            while self._consuming.is_set():
                settling: dict[int, int] = {}
                releasing: dict[int, int] = {}
                for message in consumer.poll(0.1):
                    if message.error() is not None:
                        continue
                    offset, count = message.offset() or 0, message.delivery_count() or 0
                    self._on_delivery(offset, count)
                    if self.deliveries[offset] == 1 and offset % 10 == 0:
                        consumer.acknowledge(message, RELEASE)
                        releasing[offset] = count
                    elif offset % 25 == 7:
                        consumer.acknowledge(message, REJECT)
                        settling[offset] = _ARCHIVED
                    else:
                        consumer.acknowledge(message, ACCEPT)
                        settling[offset] = _ACKNOWLEDGED
                try:
                    answers = consumer.commit_sync(5.0)
                except KafkaException:
                    answers = {}
                if answers and all(error is None for error in answers.values()):
                    self.settled |= settling
                    self._released |= releasing
                else:
                    self.perhaps_settled.update(settling)

    def _on_delivery(self, offset: int, count: int) -> None:
        self.deliveries[offset] += 1
        if offset in self.settled:
            self.broken.append(
                f"offset {offset} came back (delivery {count}) after its acknowledgement was answered"
            )
        least = self._released.get(offset, 0) + 1
        if not self._counts_may_fall:
            least = max(least, self._counts[offset])
        if count < least:
            self.broken.append(f"offset {offset} came with delivery count {count}, not at least {least}")
        self._counts[offset] = count

    def _read_log_again(self) -> None:
        consumer = Consumer(
            {"bootstrap.servers": self._records, "group.id": "ledger", "enable.auto.commit": False}
        )
        consumer.assign([TopicPartition(self.topic, 0, 0)])
        missing = dict(self.answered)
        until = time.monotonic() + 30
        while missing and time.monotonic() < until:
            for message in consumer.consume(1000, 0.5):
                offset = message.offset() or 0
                if missing.pop(offset, message.value()) != message.value():
                    self.broken.append(f"offset {offset} holds another record than the one answered")
        consumer.close()
        if missing:
            self.broken.append(f"{len(missing)} answered records are not in the log: {sorted(missing)[:10]}")
