"""Hot calls from Python, conversions included: `make bench-calls` (pytest-benchmark)."""

from __future__ import annotations

from itertools import count

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from sharecore._core import Partition, combine, combine_state_batches
from sharecore.sharestate.records import pack_batches

BATCH = 500
ACCEPT = b"\1"


@pytest.fixture
def partition() -> Partition:
    """Four batches of 500 records, leased."""
    partition = Partition(max_inflight=10**9, max_delivery_count=2**15 - 1)
    for first in range(0, 4 * BATCH, BATCH):
        partition.acquire(0, "m", [(first, first + BATCH - 1)], fetch_offset=first)
    return partition


def test_turn_over(benchmark: BenchmarkFixture, partition: Partition) -> None:
    """Accept the oldest batch and lease a new one, as a consumer that keeps up does."""

    def turn() -> None:
        first = partition.start_offset
        write = partition.acknowledge(0, "m", [(first, first + BATCH - 1, ACCEPT)])
        assert write is not None
        partition.commit(write.id, 0)
        first = partition.next_fetch_offset
        partition.acquire(0, "m", [(first, first + BATCH - 1)], fetch_offset=first)

    benchmark(turn)


def test_acknowledge_one_record(benchmark: BenchmarkFixture, partition: Partition) -> None:
    offsets = count(1, 7)

    def acknowledge() -> None:
        offset = next(offsets) % (4 * BATCH)
        write = partition.acknowledge(0, "m", [(offset, offset, ACCEPT)])
        assert write is not None
        partition.rollback(write.id, 0)

    benchmark(acknowledge)


def test_acknowledge_each_record_of_a_batch(benchmark: BenchmarkFixture, partition: Partition) -> None:
    types = b"\1\2" * (BATCH // 2)

    def acknowledge() -> None:
        write = partition.acknowledge(0, "m", [(0, BATCH - 1, types)])
        assert write is not None
        partition.rollback(write.id, 0)

    benchmark(acknowledge)


def test_advance_with_nothing_to_expire(benchmark: BenchmarkFixture, partition: Partition) -> None:
    benchmark(partition.advance, 1)


def test_inflight(benchmark: BenchmarkFixture, partition: Partition) -> None:
    partition.acknowledge(0, "m", [(0, BATCH - 1, b"\1\2" * (BATCH // 2))])
    assert len(benchmark(partition.inflight)) == BATCH + 1


EXISTING = [(first, first + 9, 0, 1) for first in range(0, 1000, 10)]
NEW = [(first, first + 4, 2, 1) for first in range(5, 1000, 20)]


def test_combine(benchmark: BenchmarkFixture) -> None:
    assert benchmark(combine, EXISTING, NEW, 0)


def test_combine_packed(benchmark: BenchmarkFixture) -> None:
    parts = [pack_batches(EXISTING), pack_batches(NEW)]
    assert benchmark(combine_state_batches, parts, 0)
