from __future__ import annotations

import importlib
import queue
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.unit.coordinator_log.world import World
from tests.unit.partition.logs import MemoryLog

from sharecore._core import Partition
from sharecore.coordinator_log.runtime import CoordinatorRuntime
from sharecore.errors import ErrorCode, KafkaError
from sharecore.persister import (
    CoordinatorPersister,
    LoadedState,
    MemoryPersister,
    NoOpPersister,
    Persister,
    SharePartitionKey,
)
from sharecore.sharestate.coordinator import ShareCoordinator

KEY = SharePartitionKey("g", UUID(int=1), 0)


class Bench:
    """A persister, and the arguments of its callbacks."""

    def __init__(self, kind: str, directory: Path) -> None:
        self.world = World()
        self.calls: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.persister: Persister = MemoryPersister()
        if kind == "sqlite":
            self.persister = example()({"path": str(directory / "state.db")})
        if kind == "coordinator":
            logs: Any = [MemoryLog("__share_group_state")]
            coordinator = ShareCoordinator(CoordinatorRuntime(lambda: logs, self.world, self.world))
            self.persister = CoordinatorPersister(coordinator)

    def call(self, operation: str, *args: Any) -> Any:
        """Return the callback's argument of an operation; raise its error."""
        getattr(self.persister, operation)(*args, self.calls.put)
        self.world.run()
        result = self.calls.get(timeout=10)
        assert self.calls.empty()
        if isinstance(result, KafkaError):
            raise result
        return result


def example() -> Any:
    """Return the example persister."""
    directory = str(Path(__file__).resolve().parents[3] / "examples/persister")
    if directory not in sys.path:
        sys.path.append(directory)
    return importlib.import_module("sqlite_persister").SqlitePersister


@pytest.fixture(params=["memory", "coordinator", "sqlite"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(request.param, tmp_path)
    yield made
    made.persister.close()


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


def test_the_example_keeps_what_was_written_over_a_restart(tmp_path: Path) -> None:
    bench = Bench("sqlite", tmp_path)
    bench.call("initialize", KEY, 3, 0)
    bench.call("write_start", KEY, 3, 0, 7)
    bench.persister.close()
    again = Bench("sqlite", tmp_path)
    assert again.call("read", KEY, 0) == LoadedState(3, 7, [])
    again.persister.close()


def test_without_a_persister_everything_is_well_and_nothing_is_kept() -> None:
    bench = Bench("memory", Path())
    bench.persister = NoOpPersister()
    assert bench.call("initialize", KEY, 3, 7) is None
    assert bench.call("write_start", KEY, 3, 0, 9) is None
    assert bench.call("read", KEY, 0) == LoadedState(0, -1, [])
    assert bench.call("summary", KEY).start_offset == -1
    assert bench.call("delete", KEY) is None
