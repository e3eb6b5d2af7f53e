"""The engine through its Python interface: conversions, errors, threads."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from threading import Barrier, Event
from typing import Any, cast

import pytest

from sharecore._core import Partition, combine
from sharecore.errors import ErrorCode, KafkaError

ACCEPT, RELEASE, REJECT, RENEW = b"\1", b"\2", b"\3", b"\4"


def leased(records: int = 10, **limits: Any) -> Partition:
    partition = Partition(**limits)
    assert partition.acquire(0, "a", [(0, records - 1)], fetch_offset=0) == [(0, records - 1, 1)]
    return partition


def code_of(error: pytest.ExceptionInfo[KafkaError]) -> ErrorCode:
    return error.value.code


def test_a_lease_from_acquire_to_commit() -> None:
    partition = leased()
    assert partition.next_deadline_ms == 30000
    write = partition.acknowledge(5, "a", [(0, 3, ACCEPT), (4, 6, b"\1\2\3")])
    assert write is not None
    assert (write.start_offset, write.delivery_complete_count) == (0, 6)
    assert write.batches() == [(0, 4, 2, 1), (5, 5, 0, 1), (6, 6, 4, 1)]
    assert partition.start_offset == 0
    partition.commit(write.id, 6)
    assert (partition.start_offset, partition.end_offset, partition.next_fetch_offset) == (5, 9, 5)
    assert partition.inflight() == [(5, 5, 0, 1), (6, 6, 4, 1), (7, 9, 1, 1)]
    partition.check()


def test_what_was_acquired_together_ends_together() -> None:
    partition = leased(10)
    assert partition.acquire(0, "b", [(12, 14)], fetch_offset=10) == [(12, 14, 1)]
    partition.acknowledge(0, "a", [(2, 3, RELEASE)])
    ends = [partition.batch_end(offset) for offset in (0, 2, 9, 10, 11, 12, 15, -1)]
    assert ends == [9, 9, 9, 10, 11, 14, 15, -1]


def test_what_is_near_its_delivery_limit_comes_alone() -> None:
    partition = leased(10)
    assert partition.acquire(0, "b", [(12, 14)], fetch_offset=10) == [(12, 14, 1)]
    for slow in ([], [], [0, 1, 2, 3]):
        write = partition.acknowledge(0, "a", [(2, 3, RELEASE)])
        assert write is not None
        partition.commit(write.id, 0)
        assert [offset for offset in range(-1, 16) if partition.is_slow(offset)] == slow
        assert partition.acquire(0, "a", [(0, 9)], fetch_offset=2)


def test_nothing_to_persist_is_none() -> None:
    partition = Partition(10)
    assert partition.acknowledge(0, "a", [(0, 9, ACCEPT)]) is None
    assert partition.release(0, "a") is None
    assert partition.advance(1_000_000) is None
    partition.move_log_start(0, 20)
    assert partition.start_offset == 20
    assert partition.next_deadline_ms is None


@pytest.mark.parametrize(
    ("member", "batch", "code"),
    [
        ("b", (0, 3, ACCEPT), ErrorCode.INVALID_RECORD_STATE),
        ("a", (8, 12, ACCEPT), ErrorCode.INVALID_REQUEST),
        ("a", (3, 2, ACCEPT), ErrorCode.INVALID_REQUEST),
        ("a", (0, 3, b"\1\1"), ErrorCode.INVALID_REQUEST),
        ("a", (0, 3, b""), ErrorCode.INVALID_REQUEST),
        ("a", (0, 3, b"\5"), ErrorCode.INVALID_REQUEST),
        ("a", (-(2**63), 2**63 - 1, ACCEPT), ErrorCode.INVALID_REQUEST),
        ("a", (-(2**63), 2**63 - 1, b"\1\1"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_refusal_is_a_kafka_error_and_changes_nothing(
    member: str, batch: tuple[int, int, bytes], code: ErrorCode
) -> None:
    partition = leased()
    with pytest.raises(KafkaError) as error:
        partition.acknowledge(0, member, [(5, 5, ACCEPT), batch] if member == "a" else [batch])
    assert code_of(error) == code
    told = str(error.value)
    assert any(what in told for what in (str(batch[0]), str(batch[1]), "acknowledge type"))
    assert partition.inflight() == [(0, 9, 1, 1)]
    partition.check()


def test_what_is_being_written_refuses_other_changes() -> None:
    partition = leased()
    write = partition.acknowledge(0, "a", [(0, 4, RELEASE)])
    assert write is not None
    with pytest.raises(KafkaError) as error:
        partition.acknowledge(0, "a", [(4, 5, ACCEPT)])
    assert code_of(error) == ErrorCode.INVALID_RECORD_STATE
    assert partition.next_fetch_offset == 10
    partition.rollback(write.id, 1)
    assert partition.inflight() == [(0, 9, 1, 1)]
    with pytest.raises(KafkaError) as error:
        partition.rollback(write.id, 1)
    assert code_of(error) == ErrorCode.INVALID_REQUEST


def test_a_lock_that_runs_out_during_a_write_that_fails() -> None:
    partition = leased()
    write = partition.acknowledge(0, "a", [(0, 4, ACCEPT)])
    assert write is not None
    expired = partition.advance(30000)
    assert expired is not None
    assert expired.batches() == [(5, 9, 0, 1)]
    partition.rollback(write.id, 30001)
    assert partition.inflight() == [(0, 9, 0, 1)]


def test_limits_change_at_run_time() -> None:
    partition = leased(max_delivery_count=5)
    partition.configure(max_delivery_count=1, renew_enabled=False)
    with pytest.raises(KafkaError) as error:
        partition.acknowledge(0, "a", [(0, 0, RENEW)])
    assert code_of(error) == ErrorCode.INVALID_RECORD_STATE
    write = partition.release(0, "a")
    assert write is not None
    assert write.batches() == [(0, 9, 4, 1)]
    with pytest.raises(ValueError, match="positive"):
        partition.configure(max_inflight=0)


def test_records_without_a_record_are_settled() -> None:
    partition = leased()
    partition.archive(0, 0, 4)
    assert partition.start_offset == 5
    partition.archive(0, 0, 2**63 - 1)
    assert (partition.start_offset, partition.inflight()) == (10, [])
    partition.check()


def test_state_is_loaded_or_refused() -> None:
    partition = Partition(3, [(5, 6, 2, 1), (8, 8, 0, 2)])
    assert partition.next_fetch_offset == 3
    assert partition.inflight() == [(5, 6, 2, 1), (8, 8, 0, 2)]
    for state in (
        [(2, 4, 2, 1)],
        [(5, 6, 2, 1), (6, 7, 2, 1)],
        [(5, 6, 1, 1)],
        [(5, 2**63 - 1, 2, 1)],
        [(5, 6, 0, 2**15)],
    ):
        with pytest.raises(KafkaError) as error:
            Partition(3, state)
        assert code_of(error) == ErrorCode.INVALID_REQUEST
    with pytest.raises(ValueError, match="unknown record state"):
        Partition(3, [(5, 6, 5, 1)])


def test_arguments_are_checked() -> None:
    partition = Partition()
    for batches in ([(5, 3)], [(0, 3), (3, 5)], [(-1, 5)], [(0, 2**63 - 1)], [(0, 2**31)]):
        with pytest.raises(ValueError, match="record batch"):
            partition.acquire(0, "a", batches, fetch_offset=0)
    with pytest.raises(TypeError):
        partition.acknowledge(0, "a", cast(Any, [(0, 1, "accept")]))
    wrong: list[dict[str, Any]] = [{"max_delivery_count": 0}, {"lock_ms": 0}, {"max_inflight": -1}]
    for limits in wrong:
        with pytest.raises(ValueError, match="positive"):
            Partition(**limits)


def test_extreme_numbers_harm_nobody() -> None:
    top = 2**63 - 1
    partition = Partition(0, lock_ms=top, max_inflight=top)
    assert partition.acquire(
        top, "a", ((5, 2**31 + 4),), fetch_offset=-(2**63), max_fetch_records=top, batch_size=-(2**63)
    ) == [(5, 2**31 + 4, 1)]
    partition.check()
    assert partition.advance(-(2**63)) is None
    partition.move_log_start(0, top)
    partition.check()


def test_combine_takes_any_sequence() -> None:
    assert combine(((0, 9, 0, 1),), [(5, 14, 2, 2)], 3) == [(3, 4, 0, 1), (5, 14, 2, 2)]
    assert combine([], [], -1) == []


def test_memory_is_counted_by_the_run() -> None:
    partition = Partition(max_inflight=10_000_000)
    empty = partition.memory_bytes
    for first in range(0, 1_000_000, 500):
        partition.acquire(0, "a", [(first, first + 499)], fetch_offset=first)
    assert partition.runs == 2000
    assert (partition.memory_bytes - empty) / 2000 <= 100
    for first in range(0, 1_000_000, 500):
        write = partition.acknowledge(0, "a", [(first, first + 499, (ACCEPT + RELEASE) * 250)])
        assert write is not None
        partition.commit(write.id, 0)
    assert partition.runs >= 999_999
    assert (partition.memory_bytes - empty) / partition.runs <= 48


@pytest.fixture
def switch_interval() -> Iterator[Callable[[float], None]]:
    """Set how long a thread may keep the interpreter from others."""
    before = sys.getswitchinterval()
    yield sys.setswitchinterval
    sys.setswitchinterval(before)


@pytest.mark.heavy
def test_one_request_may_settle_many_records_each_in_its_own_way() -> None:
    count = 1_000_000
    partition = Partition(max_inflight=count)
    partition.acquire(0, "a", [(0, count - 1)], fetch_offset=0, max_fetch_records=count, batch_size=count)
    write = partition.acknowledge(0, "a", [(0, count - 1, (RELEASE + ACCEPT) * (count // 2))])
    assert write is not None
    partition.commit(write.id, 0)
    partition.check()
    assert partition.runs == count
    assert partition.memory_bytes / partition.runs <= 48


def test_eight_threads_share_partitions(switch_interval: Callable[[float], None]) -> None:
    switch_interval(1e-6)
    partitions = [Partition(max_inflight=1_000_000) for _ in range(3)]
    together = Barrier(8, timeout=60)
    order: list[str] = []

    def work(member: str) -> int:
        accepted = 0
        for turn in range(300):
            if turn % 50 == 0:
                together.wait()
            partition = partitions[turn % 3]
            first = partition.next_fetch_offset
            acquired = partition.acquire(turn, member, [(first, first + 9)], fetch_offset=first)
            order.append(member)
            if acquired:
                batches = [(f, last, ACCEPT) for f, last, _ in acquired]
                write = partition.acknowledge(turn, member, batches)
                assert write is not None
                partition.commit(write.id, turn)
                accepted += sum(last - f + 1 for f, last, _ in acquired)
        return accepted

    with ThreadPoolExecutor(8) as pool:
        accepted = sum(pool.map(work, [f"m{i}" for i in range(8)]))
    for partition in partitions:
        partition.check()
        assert partition.inflight() == []
    assert sum(partition.start_offset for partition in partitions) == accepted
    turns = sum(1 for before, after in pairwise(order) if before != after)
    assert turns > 40, "the threads worked one after the other"


def test_a_long_call_lets_other_threads_run(switch_interval: Callable[[float], None]) -> None:
    partition = Partition(max_inflight=500_000)
    for first in range(0, 500_000, 500):
        partition.acquire(0, "a", [(first, first + 499)], fetch_offset=first)
        write = partition.acknowledge(0, "a", [(first, first + 499, (RELEASE + ACCEPT) * 250)])
        assert write is not None
    # no thread is forced to yield: only a call that releases the GIL is overtaken
    switch_interval(1000)
    started, ended = Event(), Event()

    def call() -> None:
        started.set()
        partition.check()
        ended.set()

    for _ in range(100):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(call)
            started.wait(60)
            overtaken = not ended.is_set()
        started.clear()
        ended.clear()
        if overtaken:
            return
    pytest.fail("no other thread ran during any of the calls")
