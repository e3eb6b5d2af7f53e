"""The size of a coordinator's partition stays proportional to its content."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

import pytest
from tests.unit.coordinator_log.world import Appended, MemoryLog, Ticket, World, record_log

from sharecore.coordinator.offset_records import CommittedOffset, TopicPartition
from sharecore.coordinator.offsets import Offsets
from sharecore.coordinator_log.compaction import Compaction
from sharecore.coordinator_log.compactor import Compactor
from sharecore.coordinator_log.staged_log import ATTEMPTS_MAX, BATCH_BYTES, WRITE_TIMEOUT_MS, StagedLog
from sharecore.coordinator_log.topic_log import Producer, Record, WriteTicket
from sharecore.errors import KafkaError
from sharecore.storage import ScannedBatch
from sharecore.waiting import Done, Spans


class Partition:
    """A compacted partition of a coordinator's topic; each append is sent at once."""

    def __init__(self, log: MemoryLog, world: World, *, compact_records: int = 500) -> None:
        self._staged = StagedLog(
            log,
            world,
            WRITE_TIMEOUT_MS,
            attempts_max=ATTEMPTS_MAX,
            monotonic_ms=world.monotonic_ms,
            sent=lambda: self._compactor.look(),
            writes=Spans(),
        )
        self._compactor = Compactor(self._staged, world, world, compact_records=compact_records)

    def append(
        self, records: Sequence[Record], done: Done | None = None, producer: Producer | None = None
    ) -> None:
        self._staged.append(records, 0, done, producer=producer)
        self._staged.flush()


def read_back(log: MemoryLog) -> dict[bytes, bytes | None]:
    """Return the last value of each key, outside of transactions."""
    values: dict[bytes, bytes | None] = {}
    for batch in log.scan_batches(log.start_offset):
        values.update((key or b"", value) for _, _, key, value in batch.records)
    return {key: value for key, value in values.items() if value is not None}


@pytest.mark.parametrize("seed", range(5))
def test_what_counts_outlives_what_does_not(seed: int) -> None:
    world, log = World(), MemoryLog()
    subject = Partition(log, world, compact_records=500)
    shuffled = random.Random(seed)
    wanted: dict[bytes, bytes] = {}
    for step in range(5000):
        key = b"%d" % shuffled.randrange(60)
        value = None if shuffled.random() < 0.2 else b"%d" % step
        subject.append([(key, value)])
        if value is None:
            wanted.pop(key, None)
        else:
            wanted[key] = value
        if shuffled.random() < 0.3:
            world.run(1)
    world.run(10)
    assert read_back(log) == wanted
    assert log.end_offset - log.start_offset < 1000


def test_open_transactions_put_it_off() -> None:
    world, log = World(), MemoryLog()
    subject = Partition(log, world, compact_records=100)
    subject.append([(b"old", b"1"), (b"other", b"1")])
    subject.append([(b"old", b"2")], None, Producer(7, 0))
    for step in range(200):
        subject.append([(b"k", b"%d" % step)])
    world.run(5000)
    assert log.start_offset == 0
    log.append_marker(7, commit=True)
    world.run(2000)
    assert log.start_offset > 0
    assert read_back(log) == {b"old": b"2", b"other": b"1", b"k": b"199"}


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(5))
def test_it_goes_on_while_transactions_are_always_open(seed: int) -> None:
    """Each producer begins its next transaction before the others have ended theirs."""
    shuffled = random.Random(seed)
    world, log = World(), MemoryLog()
    subject = Partition(log, world, compact_records=500)
    wanted: dict[bytes, tuple[int, bytes]] = {}
    pending: dict[int, dict[bytes, tuple[int, bytes]]] = {}

    def count(commits: dict[bytes, tuple[int, bytes]]) -> None:
        wanted.update({key: it for key, it in commits.items() if it[0] > wanted.get(key, (-1, b""))[0]})

    for step in range(6000):
        producer = shuffled.randrange(5)
        key, value = b"%d" % shuffled.randrange(40), b"%d" % step
        if step and shuffled.random() < 0.3:
            subject.append([(key, value)])
            count({key: (step, value)})
        else:
            subject.append([(key, value)], None, Producer(producer, 0))
            pending.setdefault(producer, {})[key] = step, value
        if len(pending) > 1 and shuffled.random() < 0.3:
            ended = shuffled.choice([*pending])
            commit = shuffled.random() < 0.7
            log.append_marker(ended, commit=commit)
            commits = pending.pop(ended)
            count(commits if commit else {})
        if shuffled.random() < 0.3:
            world.run(shuffled.choice([1, 2000]))
        assert pending
    world.run(10_000)
    assert log.end_offset - log.start_offset < 2500
    reread = Compaction(log)
    while reread.read_some():
        pass
    for producer in pending:
        log.append_marker(producer, commit=True)
    for commits in pending.values():
        count(commits)
    while reread.read_some():
        pass
    assert dict(reread.live(log.end_offset)) == {key: value for key, (_, value) in wanted.items()}


def test_an_aborted_transaction_leaves_what_was_there() -> None:
    world, log = World(), MemoryLog()
    subject = Partition(log, world, compact_records=100)
    subject.append([(b"old", b"1")])
    subject.append([(b"old", b"2"), (b"new", b"2")], None, Producer(7, 0))
    log.append_marker(7, commit=False)
    for step in range(200):
        subject.append([(b"k", b"%d" % step)])
    world.run(10)
    assert read_back(log) == {b"old": b"1", b"k": b"199"}


class SlowTicket(Ticket):
    """A write that ends when the test says so."""

    def __init__(self) -> None:
        super().__init__(None)
        self.callbacks: list[Callable[[WriteTicket], None]] = []

    def add_done_callback(self, callback: Callable[[WriteTicket], None], /) -> None:
        self.callbacks.append(callback)


class SlowLog(MemoryLog):
    """Writes are durable after `sync`."""

    def __init__(self) -> None:
        super().__init__()
        self.durable = 0
        self.tickets: list[SlowTicket] = []

    @property
    def high_watermark(self) -> int:
        return self.durable

    @property
    def last_stable_offset(self) -> int:
        return self.durable

    def append_local(
        self,
        records: Sequence[Record],
        /,
        *,
        now_ms: int,
        producer: tuple[int, int] | None = None,
        lingers: bool = False,
    ) -> Appended:
        super().append_local(records, now_ms=now_ms, producer=producer, lingers=lingers)
        self.tickets.append(SlowTicket())
        return Appended(self.tickets[-1])

    def scan_batches(self, offset: int, /) -> Iterator[ScannedBatch]:
        return (batch for batch in super().scan_batches(offset) if batch.records[0][0] < self.durable)

    def sync(self) -> None:
        self.durable = self.end_offset
        tickets, self.tickets = self.tickets, []
        for ticket in tickets:
            for callback in ticket.callbacks:
                callback(ticket)


def test_what_is_under_way_is_not_overtaken() -> None:
    world, log = World(), SlowLog()
    subject = Partition(log, world, compact_records=100)
    subject.append([(b"old", b"1")])
    for step in range(110):
        subject.append([(b"k", b"%d" % step)])
    log.sync()
    subject.append([(b"k", b"new")])
    world.run(10)
    assert log.start_offset == 111
    log.sync()
    assert read_back(log) == {b"old": b"1", b"k": b"new"}


def test_large_writes_are_cut_and_answered_once() -> None:
    world, log, ended = World(), MemoryLog(), list[KafkaError | None]()
    subject = Partition(log, world)
    subject.append([(b"%d" % index, bytes(BATCH_BYTES // 4)) for index in range(10)], ended.append)
    assert ended == [None]
    assert [len(batch.records) for batch in log.batches] == [3, 3, 3, 1]


@pytest.mark.heavy
def test_offsets_are_the_same_after_it() -> None:
    world, log = World(), MemoryLog()
    subject = Offsets(record_log(world, [log]))
    for step in range(30_000):
        commits = {TopicPartition("t", step % 50): CommittedOffset(step)}
        subject.commit(f"g{step % 3}", commits, lambda error: None)
        if step % 100 == 0:
            world.run(1)
    world.run(100)
    assert log.start_offset > 0
    records = record_log(world, [log])
    again = Offsets(records)
    assert records.load() < 25_000
    groups = {"g0", "g1", "g2"}
    assert again.replayed == groups
    assert {group: again.get(group) for group in groups} == {group: subject.get(group) for group in groups}
