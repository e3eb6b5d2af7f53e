"""A leader writes to the known position of its state, and looks it up again after it has moved."""

from __future__ import annotations

from typing import Any, cast

from tests.unit.partition.bench import ACCEPT, LIMITS, Bench
from tests.unit.partition.logs import TOPIC, MemoryLog

from sharecore.coordinator_log.runtime import CoordinatorRuntime
from sharecore.errors import ErrorCode, KafkaError
from sharecore.persister import CoordinatorPersister, SharePartitionKey
from sharecore.sharestate.coordinator import ReadState, ShareCoordinator
from sharecore.sharestate.records import unpack_batches

KEY = SharePartitionKey("g", TOPIC, 0)


class Coordinated(Bench):
    """Share partitions with a share coordinator's state in a log in memory."""

    def __init__(self, records: int = 6) -> None:
        super().__init__()
        self.owned = True
        self.state_log = MemoryLog("__share_group_state")
        self.coordinator = ShareCoordinator(
            CoordinatorRuntime(
                lambda: cast(Any, [self.state_log]),
                self.world,
                self.world,
                attempts_max=1,
                compacted=False,
                owner_check=self._own,
            )
        )
        self.persister: Any = CoordinatorPersister(self.coordinator)
        self.initialize(0)
        self.leaders = self.fresh()
        self.logs[0].produce(*[1] * records)
        leader = self.leader()
        leader.load()
        self.world.run()

    def _own(self, partition: int) -> None:
        if not self.owned:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)

    def initialize(self, state_epoch: int) -> None:
        self.coordinator.initialize(KEY, state_epoch, 0, lambda error: None)
        self.world.run()

    def accept(self, offset: int) -> KafkaError | None:
        """Acquire and accept one record; return the result."""
        self.take("m", LIMITS._replace(max_records=1))
        self.settle("m", (offset, offset, ACCEPT))
        self.world.run()
        return self.ends.pop()

    def persisted(self) -> tuple[int, list[tuple[int, int, int, int]]]:
        """Start offset and batches, as read by a broker that has just started."""
        coordinator = ShareCoordinator(
            CoordinatorRuntime(lambda: cast(Any, [self.state_log]), self.world, self.world, compacted=False)
        )
        found: list[ReadState | KafkaError] = []
        coordinator.read(KEY, 0, found.append)
        self.world.run()
        (state,) = found
        assert isinstance(state, ReadState)
        return state.start_offset, list(unpack_batches(state.batches))


def test_each_write_is_found_in_the_log() -> None:
    bench = Coordinated()
    for offset in range(4):
        assert bench.accept(offset) is None
        assert bench.persisted() == (offset + 1, [])


def test_a_leader_whose_state_was_deleted_writes_no_more() -> None:
    bench = Coordinated()
    assert bench.accept(0) is None
    bench.coordinator.delete(KEY, lambda error: None)
    bench.world.run()
    refused = bench.accept(1)
    assert refused is not None
    bench.initialize(1)
    assert bench.persisted() == (0, []), "what came behind the end of the state is not written"


def test_a_leader_writes_no_state_that_was_begun_anew() -> None:
    bench = Coordinated()
    assert bench.accept(0) is None
    bench.coordinator.delete(KEY, lambda error: None)
    bench.initialize(1)
    refused = bench.accept(1)
    assert refused is not None
    assert bench.persisted() == (0, [])


def test_a_reset_state_fences_the_leader_before_it() -> None:
    bench = Coordinated()
    assert bench.accept(0) is None
    bench.initialize(1)
    refused = bench.accept(1)
    assert refused is not None
    assert bench.leaders.peek(*KEY) is None, "the leader has ended"
    assert bench.persisted() == (0, [])


def test_a_leader_asks_each_time_whether_its_state_is_still_here() -> None:
    bench = Coordinated()
    assert bench.accept(0) is None
    bench.owned = False
    assert bench.accept(1) is not None
    bench.owned = True
    assert bench.persisted() == (1, [])


def test_a_write_that_is_given_up_has_the_state_read_again() -> None:
    bench = Coordinated()
    assert bench.accept(0) is None
    bench.state_log.failing = True
    bench.take("m", LIMITS._replace(max_records=1))
    bench.settle("m", (1, 1, ACCEPT))
    bench.world.run()
    assert bench.ends.pop() is not None
    bench.state_log.failing = False
    bench.settle("m", (1, 1, ACCEPT))
    bench.world.run()
    assert bench.ends.pop() is None
    assert bench.persisted() == (2, [])
    assert bench.accept(2) is None
    assert bench.persisted() == (3, []), "memory is what the log says"
