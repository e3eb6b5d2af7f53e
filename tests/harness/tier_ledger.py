"""What a tier has promised, kept outside of it: records of many partitions, and many consumers."""

from __future__ import annotations

import subprocess
import threading
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise

from confluent_kafka import KafkaException, Message, Producer
from tests.harness.clients import ACCEPT, share_consumer
from tests.harness.ledger import FAST_RECONNECT

from sharecore.client.blocking import ShareConsumer

Place = tuple[int, int]
"""Partition and offset."""
_PRODUCED, _SETTLED, _PERHAPS, _CAME = 1, 2, 4, 8
_BATCHES_MAX = 3
"""Of a partition, under way: librdkafka's producer sends five at most, and turns round without a pause while
more wait. That takes the CPU from the brokers that are to answer.
"""


class Ledger:
    """A producer and share consumers of one topic at work while nodes come and go.

    Each record is accepted once it came. `broken` says what went wrong: a record that comes again after its
    acknowledgement was answered, or one that never comes. A consumer may notice late what it was given, and
    has lost since, when another one has settled that already: then the count of its delivery is lower.

    Args:
        bootstrap: of the tier.
        records: of the cluster behind it.
        consumers: how many of confluent-kafka's; each is a thread of its own, as are the others.
        ours: how many of sharecore's.
        java: command lines of others, which print a line `came PARTITION:OFFSET:COUNT ...` a batch, with the
            counts of deliveries, and `good PARTITION ...` for the partitions of which its acknowledgement was
            answered.
        pace: records a partition every ten milliseconds.

    Attributes:
        arrivals: when records of a partition came, by partition.
        redelivered: how often a record came that had come before.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        group: str,
        *,
        records: str,
        partitions: int,
        consumers: int,
        ours: int = 0,
        java: Sequence[list[str]] = (),
        pace: int = 1,
    ) -> None:
        self._bootstrap, self._records = bootstrap, records
        self.topic, self._group, self._partitions = topic, group, partitions
        self._pace = pace
        self._lock = threading.Lock()
        self._producing, self._consuming = threading.Event(), threading.Event()
        self._producing.set()
        self._consuming.set()
        self._producer = threading.Thread(target=self._produce)
        work = [partial(self._consume, number) for number in range(consumers)] + [self._consume_ours] * ours
        self._consumers = [threading.Thread(target=each) for each in work]
        self._consumers += [threading.Thread(target=self._consume_with, args=(each,)) for each in java]
        self._states = {partition: bytearray() for partition in range(partitions)}
        self.arrivals = {partition: array("d") for partition in range(partitions)}
        self._unanswered = [0] * partitions
        self.redelivered = 0
        self._polls = [0] * consumers
        self.broken: list[str] = []
        self._settled_counts: dict[Place, int] = {}
        """The delivery that was settled, where that was not the first."""

    def start(self) -> None:
        for thread in (self._producer, *self._consumers):
            thread.start()

    def stop(self) -> None:
        """End all threads, whatever is open."""
        self._producing.clear()
        self._consuming.clear()
        for thread in (self._producer, *self._consumers):
            thread.join()

    def settle(self, seconds_max: float) -> None:
        """Stop producing, and wait until every record is settled."""
        self._producing.clear()
        self._producer.join()
        until = time.monotonic() + seconds_max
        while self.open and time.monotonic() < until:
            time.sleep(0.1)
        self._consuming.clear()
        for thread in self._consumers:
            thread.join()
        if self.open:
            first = {partition: self._first_open(partition) for partition in self._states}
            self.broken.append(f"{self.open} records could not be settled, the first of each are {first}")

    @property
    def produced(self) -> int:
        """How many records the cluster has answered."""
        return self._count(each for each in range(16) if each & _PRODUCED)

    @property
    def open(self) -> int:
        """Records of which no acknowledgement was sent that may have taken effect."""
        return self._count((_PRODUCED, _PRODUCED | _CAME))

    @property
    def doubtful(self) -> int:
        """Records whose acknowledgement was sent, and may not have taken effect."""
        return self._count(each for each in range(16) if each & _PERHAPS and not each & _SETTLED)

    @property
    def settled(self) -> int:
        """Records whose acknowledgement was answered."""
        return self._count(each for each in range(16) if each & _SETTLED)

    def _count(self, flags: Iterable[int]) -> int:
        chosen = list(flags)
        with self._lock:
            return sum(state.count(each) for state in self._states.values() for each in chosen)

    def _first_open(self, partition: int) -> int:
        state = self._states[partition]
        found = [place for each in (_PRODUCED, _PRODUCED | _CAME) if (place := state.find(each)) >= 0]
        return min(found, default=-1)

    def longest_pause(self, partition: int, since: float, until: float) -> float:
        """Seconds between two records of a partition that came in that time, at most."""
        with self._lock:
            came = [since, *(each for each in self.arrivals[partition] if since <= each <= until), until]
        return max(after - before for before, after in pairwise(came))

    def wait_until_settled(
        self, start_offsets: Callable[[], Mapping[int, int]], seconds_max: float = 60
    ) -> None:
        """Until what has come so far is settled for good, and what consumers had in memory has come, too:
        nothing of it comes again that has not.

        Args:
            start_offsets: the group's, by partition; what lies before them is done.
        """
        with self._lock:
            ends = {partition: _end(state) for partition, state in self._states.items()}
        marks = [polls + 2 for polls in self._polls]
        until = time.monotonic() + seconds_max
        while any(polls < mark for polls, mark in zip(self._polls, marks, strict=True)) or any(
            start_offsets().get(partition, 0) < end for partition, end in ends.items()
        ):
            assert time.monotonic() < until, f"up to {ends} was to be settled in {seconds_max} s"
            time.sleep(0.1)

    def arrived(self) -> dict[int, int]:
        """How many records of each partition have come."""
        return {partition: len(came) for partition, came in self.arrivals.items()}

    def wait_for(self, count: int, seconds_max: float = 40) -> None:
        """Until so many more records of every partition have come."""
        marks = {partition: came + count for partition, came in self.arrived().items()}
        until = time.monotonic() + seconds_max
        while any(len(self.arrivals[partition]) < mark for partition, mark in marks.items()):
            assert time.monotonic() < until, f"{marks} were to come in {seconds_max} s, {self.arrived()} did"
            time.sleep(0.02)

    # what happens to a record

    def _mark(self, places: Iterable[Place], flag: int) -> None:
        for partition, offset in places:
            state = self._states[partition]
            if offset >= len(state):
                state.extend(bytes(offset + 1000 - len(state)))
            state[offset] |= flag

    def _came(self, counts: Mapping[Place, int]) -> None:
        """Records have come, with the counts of their deliveries."""
        now = time.monotonic()
        with self._lock:
            for (partition, offset), count in counts.items():
                state = self._states[partition]
                before = state[offset] if offset < len(state) else 0
                self.arrivals[partition].append(now)
                self.redelivered += bool(before & _CAME)
                if before & _SETTLED and count >= self._settled_counts.get((partition, offset), 1):
                    self.broken.append(
                        f"{partition}:{offset} came back after its acknowledgement was answered"
                    )
            self._mark(counts, _CAME)

    def _answered(self, counts: Mapping[Place, int], good: set[int]) -> None:
        with self._lock:
            for place, count in counts.items():
                self._mark([place], _SETTLED if place[0] in good else _PERHAPS)
                if place[0] in good and count > 1:
                    self._settled_counts[place] = count

    def _produce(self) -> None:
        # standstill must be the tier's: otherwise clients keep asking a replaced broker until it learns of
        # that
        knowing = {"request.timeout.ms": 5000, "topic.metadata.refresh.interval.ms": 1000}
        settings = {"bootstrap.servers": self._records, "enable.idempotence": True, "linger.ms": 2}
        producer = Producer({**settings, **knowing, **FAST_RECONNECT})
        number = 0
        while self._producing.is_set():
            for partition in range(self._partitions):
                if self._unanswered[partition] >= _BATCHES_MAX * self._pace:
                    continue
                for _ in range(self._pace):
                    self._send(producer, partition, b"%d" % number)
                    number += 1
            producer.poll(0)
            time.sleep(0.01)
        if producer.flush(60):
            self.broken.append("records without an answer for 60 s")

    def _send(self, producer: Producer, partition: int, value: bytes) -> None:
        while True:
            try:
                producer.produce(self.topic, value, partition=partition, on_delivery=self._on_answer)
            except BufferError:  # noqa: PERF203
                producer.poll(0.1)
            else:
                self._unanswered[partition] += 1
                return

    def _on_answer(self, error: object, message: Message) -> None:
        self._unanswered[message.partition() or 0] -= 1
        if error is None:
            with self._lock:
                self._mark([_place(message)], _PRODUCED)

    # consumers

    def _consume(self, number: int) -> None:
        settings = FAST_RECONNECT | {"socket.timeout.ms": 5000}
        with share_consumer(self._bootstrap, self._group, [self.topic], **settings) as consumer:
            while self._consuming.is_set():
                came: dict[Place, int] = {}
                self._polls[number] += 1
                for message in consumer.poll(0.1):
                    if message.error() is None:
                        consumer.acknowledge(message, ACCEPT)
                        came[_place(message)] = message.delivery_count() or 1
                if not came:
                    continue
                self._came(came)
                try:
                    answers = consumer.commit_sync(10.0)
                except KafkaException:
                    answers = {}
                self._answered(came, {key.partition for key, error in answers.items() if error is None})

    def _consume_ours(self) -> None:
        settings = {
            "bootstrap.servers": self._bootstrap,
            "group.id": self._group,
            "share.acknowledgement.mode": "explicit",
            "request.timeout.ms": 5000,
        }
        consumer = ShareConsumer(settings)
        consumer.subscribe([self.topic])
        while self._consuming.is_set():
            batch = list(consumer.poll(500, timeout=0.1))
            if batch:
                came = {(record.partition, record.offset): record.delivery_count for record in batch}
                self._came(came)
                consumer.accept(batch)
                answers = consumer.commit_sync(10.0)
                self._answered(came, {key.partition for key, error in answers.items() if error is None})
        consumer.close()

    def _consume_with(self, command: list[str]) -> None:
        pipe = subprocess.PIPE
        with subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            threading.Thread(target=self._end, args=(process,)).start()
            came: dict[Place, int] = {}
            for line in process.stdout:
                kind, *words = line.split()
                if kind == "came":
                    came = {(int(at), int(offset)): int(count) for at, offset, count in _split(words)}
                    self._came(came)
                elif kind == "good":
                    self._answered(came, set(map(int, words)))
        if process.returncode:
            self.broken.append(f"{command[0]} ended with {process.returncode}")

    def _end(self, process: subprocess.Popen[str]) -> None:
        """Has a program end with the others: its input ends."""
        while self._consuming.is_set():
            time.sleep(0.1)
        assert process.stdin is not None
        process.stdin.close()


def _end(state: bytearray) -> int:
    """Behind the last record that has come."""
    return max((offset + 1 for offset, each in enumerate(state) if each & _CAME), default=0)


def _split(words: Iterable[str]) -> Iterator[list[str]]:
    return (word.split(":") for word in words)


def _place(message: Message) -> Place:
    return message.partition() or 0, message.offset() or 0
