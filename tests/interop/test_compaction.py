"""The same records, transactions and passes of the log cleaner on Apache Kafka and on sharecore."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from tests.harness.batches import headers_of, keyed_batch
from tests.harness.broker import QUICK_GROUPS, Broker
from tests.harness.clients import ACCEPT, QUIET, configure_group, create_topic, share_consumer
from tests.harness.compaction import compacted_to, configure_topic
from tests.harness.running import Client

from sharecore.protocol import ApiKey

SETTINGS = QUICK_GROUPS | {
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.threads": "3",
    "log.cleaner.dedupe.buffer.size": "8388608",
    "log.retention.check.interval.ms": "100",
}
SEGMENT_MS = 700
KEYS = 6
CONTROL = 0x20
SECONDS_MAX = 100

Seen = list[tuple[int, bytes | None, bytes | None, int]]


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Broker]]:
    running = {}
    try:
        for kind in ("apache", "sharecore"):
            running[kind] = Broker(tmp_path_factory.mktemp(kind), kind, SETTINGS)
            running[kind].start()
        yield running
    finally:
        for broker in running.values():
            broker.kill()


class Side:
    """One of the two brokers, and one topic on it."""

    def __init__(self, broker: Broker, topic: str) -> None:
        self.broker = broker
        self.topic = topic
        self.client = Client(broker.port)
        self._producers: dict[str, Producer] = {}
        create_topic(
            broker.bootstrap,
            topic,
            1,
            **{
                "cleanup.policy": "delete",
                "segment.ms": str(SEGMENT_MS),
                "min.cleanable.dirty.ratio": "0",
                "delete.retention.ms": "0",
            },
        )

    def close(self) -> None:
        self._producers.clear()
        self.client.close()

    def configure(self, **settings: str) -> None:
        configure_topic(self.broker.bootstrap, self.topic, **settings)

    def produce(self, records: bytes) -> Any:
        """Return the answer to one batch."""
        part = {"index": 0, "records": records}
        answer = self.client.ask(
            ApiKey.PRODUCE,
            9,
            transactional_id=None,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[{"name": self.topic, "partition_data": [part]}],
        )
        return answer.responses[0].partition_responses[0]

    def in_transaction(
        self, name: str, records: list[tuple[bytes | None, bytes | None]], timestamp: int
    ) -> None:
        """Records that are there when this returns, in a transaction that is begun when there is none."""
        producer = self._producers.get(name)
        if producer is None:
            settings = {
                "bootstrap.servers": self.broker.bootstrap,
                "transactional.id": f"{self.topic}-{name}",
            }
            producer = self._producers[name] = Producer({**settings, "linger.ms": 20, **QUIET})
            producer.init_transactions(30)
            producer.begin_transaction()
        for key, value in records:
            producer.produce(self.topic, value, key, 0, timestamp=timestamp)
        assert producer.flush(30) == 0

    def compressed(
        self, compression: str, records: list[tuple[bytes | None, bytes | None]], timestamp: int
    ) -> None:
        """One compressed batch, there when this returns."""
        settings = {"bootstrap.servers": self.broker.bootstrap, "compression.type": compression}
        producer = Producer({**settings, "linger.ms": 50, **QUIET})
        for key, value in records:
            producer.produce(self.topic, value, key, 0, timestamp=timestamp)
        assert producer.flush(30) == 0

    def end_transaction(self, name: str, *, commit: bool) -> None:
        """The marker is there when this returns."""
        before = self.end_offset()
        producer = self._producers[name]
        if commit:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
        _until(lambda: self.end_offset() > before, "the marker")
        producer.begin_transaction()

    def end_offset(self) -> int:
        part = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}
        topic = {"name": self.topic, "partitions": [part]}
        answer = self.client.ask(ApiKey.LIST_OFFSETS, 6, replica_id=-1, isolation_level=0, topics=[topic])
        offset: int = answer.topics[0].partitions[0].offset
        return offset

    def compact(self, sentinel: int) -> None:
        """Has everything before the last batch, at `sentinel`, compacted."""
        self.configure(cleanup_policy="compact")
        done = partial(compacted_to, self.broker, self.topic)
        _until(lambda: done() >= sentinel, f"{self.broker.kind} to compact to {sentinel}")
        self.configure(cleanup_policy="delete")

    def read(self, isolation: str) -> Seen:
        """What a plain consumer gets: offset, key, value, timestamp."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.broker.bootstrap,
                "group.id": "reader",
                "isolation.level": isolation,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                "check.crcs": True,
                **QUIET,
            }
        )
        seen: Seen = []
        try:
            consumer.assign([TopicPartition(self.topic, 0, 0)])
            while True:
                message = consumer.poll(20)
                assert message is not None, "the consumer hangs"
                error = message.error()
                if error is not None:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    return seen
                seen.append((message.offset() or 0, message.key(), message.value(), message.timestamp()[1]))
        finally:
            consumer.close()

    def headers(self) -> list[dict[str, int]]:
        """Return the batches that lie in the log, as their headers tell of them."""
        offset, found = 0, []
        while offset < self.end_offset():
            part = {
                "partition": 0,
                "fetch_offset": offset,
                "current_leader_epoch": -1,
                "last_fetched_epoch": -1,
                "log_start_offset": -1,
                "partition_max_bytes": 1 << 20,
            }
            answer = self.client.ask(
                ApiKey.FETCH,
                12,
                replica_id=-1,
                max_wait_ms=100,
                min_bytes=1,
                max_bytes=1 << 20,
                isolation_level=0,
                session_id=0,
                session_epoch=-1,
                topics=[{"topic": self.topic, "partitions": [part]}],
                forgotten_topics_data=[],
                rack_id="",
            )
            headers = headers_of(answer.responses[0].partitions[0].records or b"")
            assert headers, f"nothing to read at {offset}"
            found += headers
            offset = headers[-1]["last_offset"] + 1
        return found

    def share(self, group: str, count: int) -> list[tuple[int, bytes | None, bytes | None]]:
        """What a share consumer gets until it has `count` records and nothing comes any more."""
        configure_group(self.broker.bootstrap, group, share_auto_offset_reset="earliest")
        seen: list[tuple[int, bytes | None, bytes | None]] = []
        with share_consumer(self.broker.bootstrap, group, [self.topic]) as consumer:
            deadline = time.monotonic() + SECONDS_MAX
            quiet = 0
            while time.monotonic() < deadline and (len(seen) < count or quiet < 2):
                messages = consumer.poll(1.0)
                quiet = 0 if messages else quiet + 1
                for message in messages:
                    seen.append((message.offset() or 0, message.key(), message.value()))
                    consumer.acknowledge(message, ACCEPT)
                if messages:
                    consumer.commit_sync(10)
        return sorted(seen, key=itemgetter(0))


def _until(condition: Any, what: str, seen: object = "") -> None:
    """`seen` is shown when it fails."""
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}; {seen}"
        time.sleep(0.05)


def _write(sides: list[Side], rnd: random.Random, state: dict[str, Any]) -> int:
    """Some batches and transactions, the same on both sides; gives the offset of the last batch, which no
    pass may touch.
    """
    for _ in range(rnd.randrange(10, 25)):
        timestamp = int(time.time() * 1000)
        records = [
            (
                None if rnd.random() < state["keyless"] else b"key-%d" % rnd.randrange(KEYS),
                None if rnd.random() < 0.2 else b"%d" % rnd.randrange(1000),
            )
            for _ in range(rnd.randrange(1, 5))
        ]
        what, name = rnd.random(), rnd.choice("ab")
        if what < 0.5:
            producer = {}
            if rnd.random() < 0.4:
                producer = {"producer_id": 4000, "producer_epoch": 0, "sequence": state["sequence"]}
                state["sequence"] += len(records)
            times = [timestamp + at for at in range(len(records))]
            batch = keyed_batch(records, timestamps=times, gzipped=rnd.random() < 0.3, **producer)
            answers = [side.produce(batch) for side in sides]
            assert [(a.error_code, a.base_offset) for a in answers] == [(0, answers[0].base_offset)] * 2
        elif what < 0.7:
            compression = rnd.choice(["snappy", "lz4", "zstd"])
            for side in sides:
                side.compressed(compression, records, timestamp)
        elif what < 0.87:
            for side in sides:
                side.in_transaction(name, records, timestamp)
            state["open"].add(name)
        elif name in state["open"]:
            state["open"].discard(name)
            commit = rnd.random() < 0.5
            for side in sides:
                side.end_transaction(name, commit=commit)
    for name in sorted(state["open"]):
        for side in sides:
            side.end_transaction(name, commit=True)
    state["open"].clear()
    return _sentinel(sides)


def _sentinel(sides: list[Side], age_ms: int = 0) -> int:
    """Return a record that begins a segment, so that all before it may be compacted; its offset."""
    time.sleep(SEGMENT_MS / 1000 + 0.1)
    sentinel = keyed_batch([(b"sentinel", b"")], timestamps=[int(time.time() * 1000) - age_ms])
    offsets = [side.produce(sentinel).base_offset for side in sides]
    assert offsets[0] == offsets[1], "both logs end at the same offset"
    last: int = offsets[0]
    return last


SEEDS = int(os.environ.get("COMPACTION_SEEDS", "1"))
DAY_MS = 86_400_000


@pytest.mark.long
@pytest.mark.parametrize("delete_retention_ms", [DAY_MS, 0])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_consumers_see_the_same(brokers: dict[str, Broker], seed: int, delete_retention_ms: int) -> None:
    rnd = random.Random(seed)
    topic = f"compacted-{seed}-{delete_retention_ms}"
    sides = [Side(brokers[kind], topic) for kind in ("apache", "sharecore")]
    for side in sides:
        side.configure(delete_retention_ms=str(delete_retention_ms))
    state = {"sequence": 0, "open": set(), "keyless": 0.1}
    for _ in range(2):
        end = _write(sides, rnd, state)
        for side in sides:
            side.compact(end)
        if delete_retention_ms:
            _compare(sides, end)
    # The brokers divide a log into segments differently: what one removes a pass later than the other is gone
    # on both after a few more passes.
    for _ in range(3):
        last = _sentinel(sides)
        for side in sides:
            side.compact(last)
    _compare(sides, end)
    apache, ours = (_comparable(side.headers(), end) for side in sides)
    assert ours == apache
    committed = [seen[:3] for seen in sides[0].read("read_committed")]
    for side in sides:
        configure_group(side.broker.bootstrap, topic, share_isolation_level="read_committed")
        got = side.share(topic, len(committed))
        assert [seen for seen in got if seen[0] <= end] == [seen for seen in committed if seen[0] <= end]
        side.close()


def _compare(sides: list[Side], end: int) -> None:
    for isolation in ("read_uncommitted", "read_committed"):
        apache, ours = ([seen for seen in side.read(isolation) if seen[0] <= end] for side in sides)
        assert ours == apache


def _comparable(headers: list[dict[str, int]], end: int) -> list[dict[str, int]]:
    """Producers got their ids from each broker, and markers their time."""
    ids: dict[int, int] = {-1: -1}
    for header in headers:
        header["producer_id"] = ids.setdefault(header["producer_id"], len(ids))
        if header["attributes"] & CONTROL:
            header["max_timestamp"] = 0
    return [header for header in headers if header["last_offset"] < end]


def test_records_are_compacted_when_they_are_old_enough(brokers: dict[str, Broker]) -> None:
    """min.compaction.lag.ms keeps the younger ones back; max.compaction.lag.ms takes the older ones whatever
    their share of the log, which is never more than all of it.
    """
    now_ms = int(time.time() * 1000)
    for broker in brokers.values():
        held, overdue = Side(broker, "held-back"), Side(broker, "overdue")
        for side in (held, overdue):
            for n in range(20):
                side.produce(keyed_batch([(b"k", b"%d" % n)], timestamps=[now_ms - 600_000]))
        held.configure(min_compaction_lag_ms="3600000", cleanup_policy="compact")
        overdue.configure(min_cleanable_dirty_ratio="1", max_compaction_lag_ms="300000")
        end = _sentinel([held, overdue], age_ms=400_000)
        overdue.compact(end)
        assert [seen[0] for seen in overdue.read("read_committed")] == [19, 20]
        assert [seen[0] for seen in held.read("read_committed")] == list(range(21))
        held.configure(min_compaction_lag_ms="300000")
        held.compact(end)
        assert [seen[0] for seen in held.read("read_committed")] == [19, 20]
        for side in (held, overdue):
            side.close()


def test_records_without_a_key_are_refused_as_kafka_refuses_them(brokers: dict[str, Broker]) -> None:
    topic = "keys-only"
    now_ms = int(time.time() * 1000)
    batches = [
        keyed_batch(records, timestamps=[now_ms] * len(records), gzipped=gzipped)
        for gzipped in (False, True)
        for records in (
            [(None, b"1")],
            [(b"k", b"1"), (None, b"2"), (b"k", None), (None, None)],
            [(None, b"1")] * 5,
            [(b"", b"1"), (b"k", None)],
        )
    ]
    answers = []
    for broker in brokers.values():
        side = Side(broker, topic)
        for policy in ("compact", "compact,delete"):
            side.configure(cleanup_policy=policy)
            _until(lambda side=side: side.produce(batches[0]).error_code != 0, "the policy to hold")
        # where an accepted batch starts depends on how soon the policy took effect
        taken = [side.produce(batch) for batch in batches]
        answers.append([(a.error_code, a.error_message, a.record_errors, a.log_start_offset) for a in taken])
        side.close()
    assert answers[0] == answers[1]
    assert [code for code, *_ in answers[0]] == [87, 87, 87, 0] * 2


def test_records_of_a_compacted_topic_are_not_deleted_on_request(brokers: dict[str, Broker]) -> None:
    answers = []
    for broker in brokers.values():
        side = Side(broker, "kept")
        side.produce(keyed_batch([(b"k", b"v")], timestamps=[int(time.time() * 1000)]))
        for policy in ("compact", "compact,delete"):
            side.configure(cleanup_policy=policy)
            part = {"partition_index": 0, "offset": 1}
            topic = {"name": "kept", "partitions": [part]}
            expected = 44 if policy == "compact" else 0

            seen: list[Any] = []

            def error(side: Side = side, topic: dict[str, Any] = topic, seen: list[Any] = seen) -> int:
                asked = side.client.ask(ApiKey.DELETE_RECORDS, 2, topics=[topic], timeout_ms=5000)
                part = asked.topics[0].partitions[0]
                seen[:] = [part]
                code: int = part.error_code
                return code

            what = f"{broker.kind} to answer {expected} with {policy}"
            _until(lambda error=error, expected=expected: error() == expected, what, seen)
            answers.append(expected)
        side.close()
    assert answers == [44, 0] * 2


def test_retention_applies_to_a_topic_that_is_compacted_and_deleted(brokers: dict[str, Broker]) -> None:
    side = Side(brokers["sharecore"], "both")
    old_ms = int(time.time() * 1000) - 600_000
    for n in range(5):
        side.produce(keyed_batch([(b"k%d" % n, b"v")], timestamps=[old_ms]))
    side.produce(keyed_batch([(b"k", b"v")], timestamps=[old_ms + 590_000]))
    side.configure(cleanup_policy="compact,delete", retention_ms="300000")
    _until(lambda: [seen[0] for seen in side.read("read_committed")] == [5], "what is old to go")
    side.close()


@pytest.mark.long
def test_compacted_logs_outlive_a_kill(tmp_path: Path) -> None:
    broker = Broker(tmp_path, "sharecore", SETTINGS)
    broker.start()
    try:
        side = Side(broker, "kept")
        old_ms = int(time.time() * 1000) - 600_000
        for n in range(300):
            side.produce(keyed_batch([(b"%d" % (n % 7), b"%d" % n)], timestamps=[old_ms]))
        side.compact(299)
        expected = side.read("read_committed")
        assert [seen[0] for seen in expected] == [*range(292, 300)]  # the last one is not checked
        side.close()
        broker.kill()
        broker.start()
        side = Side.__new__(Side)
        side.broker, side.topic = broker, "kept"
        assert side.read("read_committed") == expected
    finally:
        broker.kill()
