from __future__ import annotations

import random
from uuid import UUID

import pytest
from tests.harness.state_values import encode_snapshot, encode_update
from tests.unit.coordinator_log.world import World, own
from tests.unit.partition.logs import MemoryLog

from sharecore._core import Partition
from sharecore.coordinator_log.routing import partition_for
from sharecore.coordinator_log.runtime import CoordinatorRuntime
from sharecore.errors import ErrorCode, KafkaError
from sharecore.sharestate.coordinator import ReadState, ShareCoordinator, StateSummary
from sharecore.sharestate.keys import SharePartitionKey, parse_coordinator_key
from sharecore.sharestate.records import (
    SNAPSHOT,
    UPDATE,
    Snapshot,
    Update,
    decode_key,
    decode_snapshot,
    decode_update,
    encode_key,
    pack_batches,
    unpack_batches,
)

KEY = SharePartitionKey("g", UUID(int=5), 3)
ACKED, ARCHIVED, AVAILABLE = 2, 4, 0


class Bench:
    """A coordinator over logs in memory."""

    def __init__(self, logs: int = 1, *, hold: bool = False, updates_per_snapshot: int = 500) -> None:
        self.world = World()
        self.logs = [MemoryLog("__share_group_state", n, hold=hold) for n in range(logs)]
        self.updates_per_snapshot = updates_per_snapshot
        self.ends: list[KafkaError | None] = []
        self.coordinator = self.fresh()

    def fresh(self) -> ShareCoordinator:
        """Return a coordinator that only knows the logs."""
        return ShareCoordinator(
            CoordinatorRuntime(lambda: self.logs, self.world, self.world, compacted=False),
            updates_per_snapshot=self.updates_per_snapshot,
        )

    def initialize(self, state_epoch: int = 0, start_offset: int = 0, key: SharePartitionKey = KEY) -> None:
        self.coordinator.initialize(key, state_epoch, start_offset, self.ends.append)
        self.world.run()

    def write(
        self,
        start_offset: int,
        batches: list[tuple[int, int, int, int]],
        *,
        state_epoch: int = 0,
        leader_epoch: int = 0,
        count: int = -1,
        key: SharePartitionKey = KEY,
    ) -> None:
        self.coordinator.write(
            key, state_epoch, leader_epoch, start_offset, count, pack_batches(batches), self.ends.append
        )
        self.world.run()

    def read(self, leader_epoch: int = 0) -> ReadState:
        found: list[ReadState | KafkaError] = []
        self.coordinator.read(KEY, leader_epoch, found.append)
        self.world.run()
        (state,) = found
        assert isinstance(state, ReadState)
        return state

    def summary(self) -> StateSummary:
        return summary_of(self.coordinator, KEY)

    def records(self) -> list[Snapshot | Update | None]:
        out: list[Snapshot | Update | None] = []
        for log in self.logs:
            for _, _, key, value in log.scan(0):
                kind, _ = decode_key(key or b"")
                decode = decode_snapshot if kind == SNAPSHOT else decode_update
                out.append(None if value is None else decode(value))
        return out


def summary_of(coordinator: ShareCoordinator, key: SharePartitionKey) -> StateSummary:
    found: list[StateSummary | KafkaError] = []
    coordinator.summary(key, found.append)
    assert isinstance(found[0], StateSummary)
    return found[0]


def read_of(coordinator: ShareCoordinator, key: SharePartitionKey) -> ReadState:
    """Return the state as read by a leader without pending writes."""
    found: list[ReadState | KafkaError] = []
    coordinator.read(key, 0, found.append)
    (state,) = found
    assert isinstance(state, ReadState)
    return state


def content(state: ReadState) -> tuple[int, int, list[tuple[int, int, int, int]]]:
    return state.state_epoch, state.start_offset, list(unpack_batches(state.batches))


def refused(code: ErrorCode) -> pytest.RaisesExc[KafkaError]:
    return pytest.raises(KafkaError, match=code.name)


def test_records_are_the_bytes_that_kafka_writes() -> None:
    # printed by ShareCoordinatorRecordSerde of Apache Kafka 4.3.1
    key = SharePartitionKey("grüp", UUID(bytes=bytes(range(1, 17))), 77)
    batches = pack_batches([(0, 9, 2, 1), (10, 1 << 40, 0, 3)])
    assert encode_key(UPDATE, key).hex() == "000100056772c3bc700102030405060708090a0b0c0d0e0f100000004d"
    head = "0000000000030000000400000005000000000000000600000000000000070000000000000008"
    body = "03000000000000000000000000000000090200010000000000000000" + "0a0000010000000000" + "00000300"
    assert encode_snapshot(Snapshot(3, 4, 5, 6, 7, 8, batches)).hex() == head + body + "00"
    assert encode_snapshot(Snapshot(3, 4, 5, 6, 7, 8, batches, 300)).hex() == head + body + "0100040000012c"
    update = encode_update(Update(3, 5, -1, pack_batches([(1, 2, 4, 2)] * 200), 0))
    assert update[:20].hex() == "00000000000300000005ffffffffffffffffc901"
    assert update[-7:].hex() == "01000400000000"
    assert decode_update(update).delivery_complete_count == 0


@pytest.mark.parametrize("cut", range(1, 90, 7))
def test_damaged_records_are_told_from_others(cut: int) -> None:
    value = encode_snapshot(Snapshot(3, 4, 5, 6, 7, 8, pack_batches([(0, 9, 2, 1)]), 300))
    with pytest.raises(ValueError, match=r"."):
        decode_snapshot(value[: min(cut, len(value) - 1)])
    with pytest.raises(ValueError, match="too many"):
        decode_snapshot(value + b"x")


def test_a_share_partition_lives_where_kafka_looks_for_it() -> None:
    key = SharePartitionKey("grüp", UUID(bytes=bytes(range(1, 17))), 3)
    assert key.coordinator_key() == "grüp:AQIDBAUGBwgJCgsMDQ4PEA:3"
    assert partition_for(key.coordinator_key(), 50) == 21
    assert partition_for(key._replace(group_id="ключ-𝒳").coordinator_key(), 50) == 7
    assert parse_coordinator_key(key.coordinator_key()) == key


def test_state_is_initialized_read_and_begun_anew() -> None:
    bench = Bench()
    with refused(ErrorCode.INVALID_REQUEST):
        bench.read()
    with refused(ErrorCode.INVALID_REQUEST):
        bench.write(0, [])
    bench.initialize(5, -1)
    assert content(bench.read()) == (5, -1, [])
    bench.write(10, [(10, 19, ACKED, 1)], state_epoch=5, count=10)
    with refused(ErrorCode.FENCED_STATE_EPOCH):
        bench.initialize(4, 3)
    bench.initialize(5, 7)
    assert content(bench.read()) == (5, 7, [])
    assert [type(record).__name__ for record in bench.records()] == ["Snapshot", "Update", "Snapshot"]
    assert [record.snapshot_epoch for record in bench.records() if record] == [0, 0, 1]
    assert bench.ends == [None] * 3


def test_writers_that_were_superseded_are_fenced() -> None:
    bench = Bench()
    bench.initialize(6)
    with refused(ErrorCode.FENCED_STATE_EPOCH):
        bench.write(0, [], state_epoch=5)
    bench.read(3)
    with refused(ErrorCode.FENCED_LEADER_EPOCH):
        bench.write(0, [], state_epoch=6, leader_epoch=2)
    with refused(ErrorCode.FENCED_LEADER_EPOCH):
        bench.read(2)
    bench.write(0, [], state_epoch=6, leader_epoch=3)
    bench.coordinator = bench.fresh()
    with refused(ErrorCode.FENCED_LEADER_EPOCH):
        bench.read(2)


def test_updates_hold_what_is_new_and_cut_at_the_start_offset() -> None:
    bench = Bench()
    bench.initialize()
    bench.write(12, [(5, 8, ACKED, 1), (40, 44, ARCHIVED, 2), (42, 50, AVAILABLE, 1)])
    update = bench.records()[-1]
    assert isinstance(update, Update)
    assert list(unpack_batches(update.batches)) == [(40, 44, ARCHIVED, 2), (45, 50, AVAILABLE, 1)]
    with refused(ErrorCode.INVALID_REQUEST):
        bench.write(12, [(9, 8, ACKED, 1)])
    with refused(ErrorCode.INVALID_REQUEST):
        bench.write(12, [(9, 9, 7, 1)])


def test_a_snapshot_follows_so_many_updates() -> None:
    bench = Bench(updates_per_snapshot=3)
    bench.initialize()
    for offset in range(0, 80, 10):
        bench.write(offset, [(offset, offset + 4, AVAILABLE, 1)])
    kinds = "".join(type(record).__name__[0] for record in bench.records())
    assert kinds == "SUUUSUUUS"
    last = bench.records()[-1]
    assert isinstance(last, Snapshot)
    assert (last.snapshot_epoch, last.start_offset) == (2, 70)
    assert list(unpack_batches(last.batches)) == [(70, 74, AVAILABLE, 1)]


def test_deleted_state_is_gone_and_leaves_a_tombstone() -> None:
    bench = Bench()
    bench.initialize(3, 0)
    for _ in range(2):
        bench.coordinator.delete(KEY, bench.ends.append)
        bench.world.run()
    assert bench.ends == [None, None, None]
    assert bench.records()[1:] == [None]
    with refused(ErrorCode.INVALID_REQUEST):
        read_of(bench.fresh(), KEY)
    assert bench.summary() == (0, 0, -1, -1)


def test_writes_of_one_turn_share_an_append_and_wait_for_it() -> None:
    bench = Bench(hold=True)
    keys = [KEY._replace(partition=number) for number in range(20)]
    for key in keys:
        bench.coordinator.initialize(key, 0, 0, bench.ends.append)
    bench.world.run()
    assert bench.logs[0].appends == 1
    assert bench.ends == []
    bench.logs[0].settle()
    assert bench.ends == [None] * 20


def codes(bench: Bench) -> list[int | None]:
    return [None if error is None else error.code for error in bench.ends]


def test_a_write_that_fails_is_tried_again_and_what_follows_waits_behind_it() -> None:
    bench = Bench()
    bench.initialize()
    bench.logs[0].failing = True
    bench.write(0, [(0, 4, AVAILABLE, 1)])
    bench.write(0, [(5, 9, ACKED, 1)])
    appends = bench.logs[0].appends
    bench.world.run(250)
    assert bench.logs[0].appends == appends + 1
    assert codes(bench) == [None]
    bench.logs[0].failing = False
    bench.world.run(250)
    assert codes(bench) == [None, None, None]
    written = [list(unpack_batches(record.batches)) for record in bench.records()[1:] if record is not None]
    assert written == [[(0, 4, AVAILABLE, 1)], [(5, 9, ACKED, 1)]]
    assert content(read_of(bench.fresh(), KEY)) == content(bench.read())


def test_a_write_that_keeps_failing_leaves_what_was_there() -> None:
    bench = Bench()
    bench.initialize()
    bench.write(0, [(0, 4, AVAILABLE, 1)])
    bench.logs[0].failing = True
    bench.write(0, [(5, 9, ACKED, 1)])
    bench.write(0, [(10, 14, ACKED, 1)])
    bench.world.run(4_000)
    failed = ErrorCode.KAFKA_STORAGE_ERROR
    assert codes(bench) == [None, None, failed, failed]
    bench.logs[0].failing = False
    assert content(bench.read()) == (0, 0, [(0, 4, AVAILABLE, 1)])
    bench.write(0, [(5, 9, ARCHIVED, 1)])
    assert codes(bench)[-1] is None


def test_pruning_writes_no_snapshot_of_what_was_given_up() -> None:
    bench = Bench()
    bench.initialize()
    for offset in range(110):
        bench.write(0, [(offset, offset, AVAILABLE, 1)])
    before = content(bench.read())
    bench.world.run(400_000)
    bench.logs[0].failing = True
    bench.write(0, [(200, 299, ACKED, 1)])
    bench.world.run(400_000)
    assert codes(bench)[-1] == ErrorCode.KAFKA_STORAGE_ERROR
    bench.logs[0].failing = False
    bench.coordinator.prune()
    bench.world.run()
    assert content(read_of(bench.fresh(), KEY)) == before
    # and after another load, the snapshot is renewed
    assert content(bench.read()) == before
    bench.coordinator.prune()
    bench.world.run()
    bench.coordinator.prune()
    assert len(list(bench.logs[0].scan(0))) == 1
    assert content(read_of(bench.fresh(), KEY)) == before


@pytest.mark.parametrize("wait_ms", [0, 50, 4_000], ids=["failed", "before another attempt", "given up"])
def test_what_a_lost_snapshot_was_to_replace_is_kept(wait_ms: int) -> None:
    bench = Bench()
    bench.initialize()
    bench.write(0, [(0, 4, AVAILABLE, 1)])
    bench.logs[0].failing = True
    bench.initialize(state_epoch=1)
    bench.world.run(wait_ms)
    bench.coordinator.prune()
    assert content(read_of(bench.fresh(), KEY)) == (0, 0, [(0, 4, AVAILABLE, 1)])
    bench.logs[0].failing = False
    bench.world.run(4_000)
    bench.initialize(state_epoch=2)
    bench.coordinator.prune()
    assert bench.logs[0].start_offset > 0
    assert content(read_of(bench.fresh(), KEY)) == (2, 0, [])


def test_what_a_snapshot_under_way_is_to_replace_is_kept() -> None:
    bench = Bench(hold=True)
    bench.initialize()
    bench.logs[0].settle()
    bench.initialize(state_epoch=1)
    bench.coordinator.prune()
    assert content(read_of(bench.fresh(), KEY)) == (0, 0, [])
    bench.logs[0].settle()
    bench.coordinator.prune()
    assert bench.logs[0].start_offset == 1
    assert content(read_of(bench.fresh(), KEY)) == (1, 0, [])


def test_a_write_is_not_tried_again_behind_one_that_followed_it() -> None:
    bench = Bench(hold=True)
    bench.initialize()
    bench.logs[0].settle()
    bench.write(0, [(0, 4, AVAILABLE, 1)])
    (lost,) = bench.logs[0]._open
    bench.write(0, [(5, 9, AVAILABLE, 1)])
    bench.logs[0]._open.remove(lost)
    lost[0].settle(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    bench.logs[0].settle()
    bench.world.run(4_000)
    assert codes(bench) == [None, None, ErrorCode.KAFKA_STORAGE_ERROR]
    assert content(bench.read()) == (0, 0, [(5, 9, AVAILABLE, 1)])


def test_what_begins_in_an_engine_is_written_without_what_needs_no_state() -> None:
    bench = Bench()
    bench.initialize()
    engine = Partition(0)
    engine.acquire(0, "m", [(0, 99)], fetch_offset=0)
    writes = [
        engine.acknowledge(0, "m", [(0, 9, b"\1")]),
        engine.acknowledge(0, "m", [(10, 19, b"\1")]),
        engine.acknowledge(0, "m", [(30, 39, b"\1")]),
        engine.acknowledge(0, "m", [(20, 24, b"\2")]),
    ]
    for write in writes:
        assert write is not None
        bench.coordinator.write_begun(KEY, 0, 0, write, bench.ends.append)
    bench.world.run()
    updates = [record for record in bench.records() if isinstance(record, Update)]
    assert [update.start_offset for update in updates] == [10, 20, 20, 20]
    assert [list(unpack_batches(update.batches)) for update in updates] == [
        [],
        [],
        [(30, 39, ACKED, 1)],
        [(20, 24, AVAILABLE, 1)],
    ]
    assert [update.delivery_complete_count for update in updates] == [0, 0, 10, 10]


def test_a_write_that_was_overtaken_takes_nothing_back() -> None:
    bench = Bench()
    bench.initialize(start_offset=5)
    bench.write(8, [(8, 9, ARCHIVED, 1)], count=2)
    bench.write(6, [(6, 8, AVAILABLE, 1), (10, 10, ACKED, 1)], count=9)
    bench.write(8, [], count=1)
    state = bench.read()
    assert state.start_offset == 8
    assert [*unpack_batches(state.batches)] == [(8, 9, ARCHIVED, 1), (10, 10, ACKED, 1)]
    assert bench.summary().delivery_complete_count == 2
    bench.write(9, [], count=0)
    assert bench.summary().delivery_complete_count == 0


@pytest.mark.parametrize(("leader_epoch", "state_epoch"), [(-1, 0), (0, -1)])
def test_negative_epochs_are_refused(leader_epoch: int, state_epoch: int) -> None:
    bench = Bench()
    bench.initialize()
    with refused(ErrorCode.INVALID_REQUEST):
        bench.write(0, [], leader_epoch=leader_epoch, state_epoch=state_epoch)
    with refused(ErrorCode.INVALID_REQUEST):
        if leader_epoch < 0:
            bench.read(leader_epoch)
        else:
            bench.initialize(state_epoch)


@pytest.mark.parametrize("seed", range(20))
def test_a_restart_finds_what_was_written(seed: int) -> None:
    dice = random.Random(seed)
    bench = Bench(logs=3, updates_per_snapshot=dice.choice([0, 1, 4, 500]))
    keys = [KEY._replace(partition=number) for number in range(6)]
    starts, epochs = dict.fromkeys(keys, -1), dict.fromkeys(keys, 0)
    for step in range(300):
        key = dice.choice(keys)
        if starts[key] < 0 or dice.random() < 0.02:
            if dice.random() < 0.2:
                bench.coordinator.delete(key, bench.ends.append)
                starts[key] = -1
                continue
            starts[key] = dice.randrange(50)
            epochs[key] = step
            bench.initialize(step, starts[key], key)
            continue
        starts[key] += dice.randrange(4)
        first = starts[key] + dice.randrange(30)
        batch = (
            first,
            first + dice.randrange(6),
            dice.choice([AVAILABLE, ACKED, ARCHIVED]),
            1 + dice.randrange(3),
        )
        bench.write(starts[key], [batch], state_epoch=epochs[key], key=key)
        if dice.random() < 0.05:
            bench.coordinator.prune()
    bench.world.run()
    again = bench.fresh()
    for key in keys:
        assert summary_of(again, key) == summary_of(bench.coordinator, key)
        if starts[key] >= 0:
            assert read_of(again, key) == read_of(bench.coordinator, key)


def test_the_log_does_not_grow_with_history() -> None:
    """share.coordinator.cold.partition.snapshot.interval.ms: otherwise the oldest record would hold back
    the rest
    """
    bench = Bench(updates_per_snapshot=10)
    cold = KEY._replace(partition=99)
    bench.initialize(key=cold)
    bench.initialize()
    for offset in range(3000):
        bench.write(offset, [])
        if offset % 500 == 0:
            bench.world.run(400_000)
            bench.coordinator.prune()
            bench.world.run()
    bench.coordinator.prune()
    kept = len(list(bench.logs[0].scan(0)))
    assert kept < 1000
    again = bench.fresh()
    assert read_of(again, cold).start_offset == 0
    assert read_of(again, KEY).start_offset == 2999


def test_a_damaged_topic_is_refused_with_its_offset(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.initialize()
    bench.logs[0].append_local([(encode_key(UPDATE, KEY), b"\0\0garbage")], now_ms=0)
    with refused(ErrorCode.UNKNOWN_SERVER_ERROR):
        read_of(bench.fresh(), KEY)
    assert "offset 1" in caplog.text


def test_a_record_of_a_later_version_is_passed_over_as_kafka_does_and_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench()
    bench.initialize(start_offset=4)
    bench.logs[0].append_local([(b"\0\x09key", b"value")], now_ms=0)
    assert read_of(bench.fresh(), KEY).start_offset == 4
    assert "offset 1: skipped: record type 9" in caplog.text


def test_state_that_another_broker_coordinates_is_neither_read_nor_written() -> None:
    world, logs, mine = World(), [MemoryLog("__share_group_state", 0)], [True]
    coordinator = ShareCoordinator(
        CoordinatorRuntime(
            lambda: logs,
            world,
            world,
            compacted=False,
            owner_check=lambda index: own(mine[0]),
        )
    )
    coordinator.initialize(KEY, 0, 0, lambda error: None)
    world.run()
    summary_of(coordinator, KEY)
    assert [partition for partition, _ in coordinator.at_hand("g", KEY.topic_id, [3])] == [3]
    mine.clear()
    mine.append(False)
    assert not list(coordinator.at_hand("g", KEY.topic_id, [3]))
    with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
        coordinator.read(KEY, 0, lambda state: None)
    with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
        coordinator.write(KEY, 0, 0, 5, 0, b"", lambda error: None)
