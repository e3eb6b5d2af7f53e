from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from tests.unit.coordinator.world import World
from tests.unit.partition.logs import MemoryLog

from sharecore._core import Partition
from sharecore.coordinator.share_coordinator import ShareCoordinator
from sharecore.errors import ErrorCode, KafkaError
from sharecore.persister import (
    CoordinatorPersister,
    LoadedState,
    MemoryPersister,
    Persister,
    SharePartitionKey,
)

KEY = SharePartitionKey("g", UUID(int=1), 0)


class Bench:
    """A persister, and what its callbacks are called with."""

    def __init__(self, kind: str) -> None:
        self.world = World()
        self.calls: list[Any] = []
        self.persister: Persister = MemoryPersister()
        if kind == "coordinator":
            logs: Any = [MemoryLog("__share_group_state")]
            coordinator = ShareCoordinator(lambda: logs, self.world, self.world)
            self.persister = CoordinatorPersister(coordinator)

    def call(self, operation: str, *args: Any) -> Any:
        """What the callback of an operation gets."""
        self.calls.clear()
        getattr(self.persister, operation)(*args, self.calls.append)
        self.world.run()
        (result,) = self.calls
        return result


@pytest.fixture(params=["memory", "coordinator"])
def bench(request: pytest.FixtureRequest) -> Bench:
    return Bench(request.param)


def test_state_is_made_written_read_and_deleted(bench: Bench) -> None:
    assert bench.call("initialize", KEY, 3, -1) is None
    assert bench.call("read", KEY, 0) == LoadedState(3, -1, [])
    engine = Partition(10)
    engine.acquire(0, "m", [(10, 29)], fetch_offset=10)
    write = engine.acknowledge(0, "m", [(10, 14, b"\1"), (20, 24, b"\2")])
    assert bench.call("write", KEY, 3, 0, write) is None
    loaded = bench.call("read", KEY, 0)
    again = Partition(loaded.start_offset, loaded.batches)
    assert again.start_offset == 15
    assert (20, 24, 0, 1) in again.inflight()
    summary = bench.call("summary", KEY)
    assert summary.start_offset + summary.delivery_complete_count == 15
    assert bench.call("delete", KEY) is None
    with pytest.raises(KafkaError, match="INVALID_REQUEST"):
        bench.call("read", KEY, 0)
    assert bench.call("summary", KEY).start_offset == -1


def test_a_start_offset_is_written_by_itself(bench: Bench) -> None:
    bench.call("initialize", KEY, 0, -1)
    assert bench.call("write_start", KEY, 0, 0, 7) is None
    assert bench.call("read", KEY, 0) == LoadedState(0, 7, [])
    assert bench.call("summary", KEY).delivery_complete_count == 0


def test_old_leaders_and_old_states_are_fenced(bench: Bench) -> None:
    bench.call("initialize", KEY, 3, 0)
    bench.call("read", KEY, 2)
    for operation, code in (
        (("read", KEY, 1), ErrorCode.FENCED_LEADER_EPOCH),
        (("write_start", KEY, 3, 1, 0), ErrorCode.FENCED_LEADER_EPOCH),
        (("write_start", KEY, 2, 2, 0), ErrorCode.FENCED_STATE_EPOCH),
        (("initialize", KEY, 2, 0), ErrorCode.FENCED_STATE_EPOCH),
    ):
        with pytest.raises(KafkaError, match=code.name):
            bench.call(*operation)


def test_without_state_nothing_is_written(bench: Bench) -> None:
    with pytest.raises(KafkaError, match="INVALID_REQUEST"):
        bench.call("write_start", KEY, 0, 0, 7)
