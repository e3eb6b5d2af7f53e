"""What a broker has promised, kept outside of it: the records and the acknowledgements it answered."""

from __future__ import annotations

import threading
import time
from collections import Counter

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from tests.harness.clients import ACCEPT, QUIET, RELEASE, share_consumer

FAST_RECONNECT = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200, **QUIET}


class Ledger:
    """A producer and a share consumer of one partition at work while the broker goes down and up again.

    Every tenth record is released at its first delivery, the rest is accepted. `broken` says what went wrong.
    """

    def __init__(self, bootstrap: str, topic: str, group: str) -> None:
        self._bootstrap, self._topic, self._group = bootstrap, topic, group
        self._producing, self._consuming = threading.Event(), threading.Event()
        self._producing.set()
        self._consuming.set()
        self._threads = [threading.Thread(target=work) for work in (self._produce, self._consume)]
        self.answered: dict[int, bytes] = {}
        self.accepted: set[int] = set()
        self.perhaps_accepted: set[int] = set()
        self.deliveries: Counter[int] = Counter()
        self.broken: list[str] = []

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def settle(self, seconds_max: float) -> None:
        """Stops producing, waits until everything answered is accepted, and reads the log again."""
        self._producing.clear()
        self._threads[0].join()
        until = time.monotonic() + seconds_max
        while self._open() and time.monotonic() < until:
            time.sleep(0.1)
        self._consuming.clear()
        self._threads[1].join()
        if missing := sorted(self._open()):
            self.broken.append(f"{len(missing)} answered records could not be accepted: {missing[:10]}")
        self._read_log_again()

    def _open(self) -> set[int]:
        """Answered records that no acknowledgement was sent for that may have taken effect."""
        return self.answered.keys() - self.accepted - self.perhaps_accepted

    def _produce(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "enable.idempotence": True,
                "linger.ms": 2,
                "queue.buffering.max.messages": 2000,
                **FAST_RECONNECT,
            }
        )
        number = 0
        while self._producing.is_set():
            try:
                producer.produce(self._topic, b"record-%d" % number, partition=0, on_delivery=self._on_answer)
                number += 1
            except BufferError:
                producer.poll(0.1)
            producer.poll(0)
            time.sleep(0.0005)
        if producer.flush(30):
            self.broken.append("records without an answer for 30 s after the last restart")

    def _on_answer(self, error: object, message: Message) -> None:
        offset = message.offset()
        if error is None and offset is not None:
            if offset in self.answered:
                self.broken.append(f"offset {offset} was given twice")
            self.answered[offset] = message.value() or b""

    def _consume(self) -> None:
        with share_consumer(self._bootstrap, self._group, [self._topic], **FAST_RECONNECT) as consumer:
            while self._consuming.is_set():
                accepting = set()
                for message in consumer.poll(0.1):
                    if message.error() is not None:
                        continue
                    offset, count = message.offset() or 0, message.delivery_count() or 0
                    self._on_delivery(offset, count)
                    first = self.deliveries[offset] == 1 and offset % 10 == 0
                    consumer.acknowledge(message, RELEASE if first else ACCEPT)
                    if not first:
                        accepting.add(offset)
                try:
                    answers = consumer.commit_sync(5.0)
                except KafkaException:
                    answers = {}
                sure = bool(answers) and all(error is None for error in answers.values())
                (self.accepted if sure else self.perhaps_accepted).update(accepting)

    def _on_delivery(self, offset: int, count: int) -> None:
        self.deliveries[offset] += 1
        if offset in self.accepted:
            self.broken.append(
                f"offset {offset} came back (delivery {count}) after its acceptance was answered"
            )

    def _read_log_again(self) -> None:
        consumer = Consumer(
            {"bootstrap.servers": self._bootstrap, "group.id": "ledger", "enable.auto.commit": False}
        )
        consumer.assign([TopicPartition(self._topic, 0, 0)])
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
