"""The broker stops after any step of a share group's state changes, and completes them after a restart.

The store preserves write order: the durable part at a crash is a prefix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

import pytest
from tests.unit.coordinator.test_share_groups import Bench, T, U
from tests.unit.coordinator_log.world import Appended, MemoryLog, Ticket

from sharecore.coordinator_log.topic_log import Record
from sharecore.errors import KafkaError
from sharecore.persister import MemoryPersister
from sharecore.sharestate.keys import SharePartitionKey
from sharecore.waiting import Done

STEPS_MAX = 40


class Power:
    """Counts writes; after some write nothing reaches the disk, and nobody is notified."""

    def __init__(self) -> None:
        self.writes_left: int | None = None

    def write(self) -> bool:
        """Return whether one more write becomes durable."""
        if self.writes_left is None:
            return True
        self.writes_left -= 1
        return self.writes_left >= 0

    @property
    def is_out(self) -> bool:
        return self.writes_left is not None and self.writes_left < 0


class Silent(Ticket):
    """A write that never ends."""

    def add_done_callback(self, callback: object, /) -> None: ...


class FailingLog(MemoryLog):
    def __init__(self, power: Power) -> None:
        super().__init__()
        self.power = power

    def append_local(
        self,
        records: Sequence[Record],
        /,
        *,
        now_ms: int,
        producer: tuple[int, int] | None = None,
        lingers: bool = False,
    ) -> Appended:
        if not self.power.write():
            return Appended(Silent(None))
        return super().append_local(records, now_ms=now_ms, producer=producer, lingers=lingers)


class FailingPersister(MemoryPersister):
    def __init__(self, power: Power) -> None:
        super().__init__()
        self.power = power

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int, done: Done) -> None:
        if self.power.write():
            super().initialize(key, state_epoch, start_offset, done)

    def delete(self, key: SharePartitionKey, done: Done) -> None:
        if self.power.write():
            super().delete(key, done)

    @property
    def kept(self) -> dict[SharePartitionKey, int]:
        """Start offsets of everything with state."""
        return {key: state.start_offset for key, state in self._states.items()}


class CrashBench(Bench):
    """A bench whose power can fail."""

    def __init__(self) -> None:
        super().__init__()
        self.power = Power()
        self.log = FailingLog(self.power)
        self.persister = FailingPersister(self.power)
        self.topics.set("u", U, 2)
        self.restart()

    def kept(self) -> dict[SharePartitionKey, int]:
        assert isinstance(self.persister, FailingPersister)
        return self.persister.kept

    def crash_after(self, writes: int, operation: Callable[[CrashBench], object]) -> bool:
        """Run an operation with this many writes left, and restart the broker; return whether the operation
        was cut off.
        """
        self.power.writes_left = writes
        operation(self)
        self.world.run()
        cut = self.power.is_out
        self.power.writes_left = None
        self.world.crash()
        self.restart()
        return cut

    def assert_settled(self) -> None:
        """Check that the group's view matches the stored state."""
        group = self.groups.find("g")
        known = {
            SharePartitionKey("g", topic_id, index)
            for topic_id, state in (group.initialized if group is not None else {}).items()
            for index in state.partitions
        }
        assert set(self.kept()) == known
        assert group is None or (group.initializing, group.deleting) == ({}, {})


def silently(operation: Callable[[], object]) -> None:
    """For callers that never get a response."""
    try:
        operation()
    except ValueError:
        return  # `Bench` would wait for a response


def join(bench: CrashBench) -> None:
    silently(lambda: bench.say("m", 0, ["t", "u"]))


def alter(bench: CrashBench) -> None:
    t, u = bench.topics.topics["t"], bench.topics.topics["u"]
    told: list[KafkaError | None] = []
    bench.offsets.alter("g", [t, u], {(t, 1): 5, (u, 0): 6}, {(t, 1): told.append, (u, 0): told.append})


def delete_offsets(bench: CrashBench) -> None:
    bench.offsets.delete("g", [bench.topics.topics["t"]], lambda error: None)


def delete_group(bench: CrashBench) -> None:
    bench.groups.delete(bench.group(), lambda error: None)


def delete_topic(bench: CrashBench) -> None:
    bench.topics.drop("t")
    bench.groups.topics_changed([T])


def grow(bench: CrashBench) -> None:
    bench.topics.set("t", T, 5)
    silently(lambda: bench.say("m", bench.group().members["m"].epoch))


def settled_group() -> CrashBench:
    bench = CrashBench()
    join(bench)
    bench.say("m", -1)
    return bench


def with_member() -> CrashBench:
    bench = CrashBench()
    join(bench)
    return bench


CASES = {
    "join": (CrashBench, join),
    "set offsets of a new group": (CrashBench, alter),
    "set offsets": (settled_group, alter),
    "delete offsets": (settled_group, delete_offsets),
    "delete the group": (settled_group, delete_group),
    "delete a topic": (settled_group, delete_topic),
    "delete a topic of a member": (with_member, delete_topic),
    "a topic grows": (with_member, grow),
}


@pytest.mark.parametrize("name", CASES)
def test_what_was_cut_off_at_any_write_ends_after_a_restart(name: str) -> None:
    make, operation = CASES[name]
    for writes in range(STEPS_MAX):
        bench = make()
        cut = bench.crash_after(writes, operation)
        # unanswered callers retry; a group that needs its topics initializes them
        group = bench.groups.find("g")
        for member in list(group.members) if group is not None else ():
            bench.say(member, 0, ["t", "u"])
            bench.say(member, -1)
        bench.say("n", 0, ["t", "u"])
        bench.assert_settled()
        have: dict[UUID, set[int]] = {key.topic_id: set() for key in bench.kept()}
        for key in bench.kept():
            have[key.topic_id].add(key.partition)
        assert have == {
            topic.topic_id: set(range(topic.partitions)) for topic in bench.topics.topics.values()
        }
        bench.say("n", -1)
        assert bench.result(bench.groups.delete, bench.group()) is None
        assert bench.kept() == {}
        bench.restart()
        assert bench.groups.find("g") is None
        if not cut:
            assert writes > 1, "nothing was ever cut off"
            return
    raise AssertionError(f"{name} makes more than {STEPS_MAX} writes")


@pytest.mark.parametrize("name", ["delete offsets", "delete the group", "delete a topic"])
def test_a_deletion_that_was_written_down_ends_without_being_asked_again(name: str) -> None:
    make, operation = CASES[name]
    for writes in range(1, STEPS_MAX):
        bench = make()
        cut = bench.crash_after(writes, operation)
        bench.assert_settled()
        assert T not in {key.topic_id for key in bench.kept()}
        if not cut:
            return
    raise AssertionError(f"{name} makes more than {STEPS_MAX} writes")


def test_offsets_that_were_answered_survive() -> None:
    bench = settled_group()
    alter(bench)
    bench.world.run()
    bench.world.crash()
    bench.restart()
    assert bench.kept()[SharePartitionKey("g", T, 1)] == 5
    assert bench.kept()[SharePartitionKey("g", U, 0)] == 6


def test_a_deletion_that_failed_is_tried_again_with_the_next_heartbeat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = settled_group()

    def fail(key: SharePartitionKey, done: Done) -> None:
        raise bench.persister.failure

    monkeypatch.setattr(bench.persister, "delete", fail)
    assert bench.result(bench.offsets.delete, "g", [bench.topics.topics["t"]]) is bench.persister.failure
    assert bench.group().deleting == {T: "t"}
    monkeypatch.undo()
    assert bench.join("m", 0, ["t"]).assignment == {T: (0, 1, 2)}
    bench.assert_settled()
