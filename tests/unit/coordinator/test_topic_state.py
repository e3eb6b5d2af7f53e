"""The state of a group's share partitions: initialized, kept, reset, deleted."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest
from tests.unit.coordinator.test_share_groups import Bench, T
from tests.unit.coordinator_log.world import GIVEN_UP_MS, MemoryLog

from sharecore.coordinator.share.coordinator import Heartbeat, HeartbeatAnswer
from sharecore.errors import ErrorCode, KafkaError
from sharecore.persister import MemoryPersister, StateSummary
from sharecore.sharestate.keys import SharePartitionKey


def test_state_that_cannot_be_made_is_made_later(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    refuse = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def fail(*args: object) -> None:
        raise refuse

    monkeypatch.setattr(bench.persister, "initialize", fail)
    answer = bench.say("m")
    assert answer.assignment == {}
    monkeypatch.undo()
    assert bench.join("m", answer.member_epoch).assignment == {T: (0, 1, 2)}


def test_state_is_made_once_it_is_written_down_that_it_will_be() -> None:
    bench = Bench()
    bench.log.failing = True
    answers: list[HeartbeatAnswer | KafkaError] = []
    bench.groups.heartbeat(Heartbeat("g", "m", 0, None, ["t"]), answers.append)
    bench.world.run(150)
    assert (answers, bench.persister._states) == ([], {})
    bench.log.failing = False
    bench.world.run(GIVEN_UP_MS)
    assert len(bench.persister._states) == 3
    assert bench.say("m", 2).assignment == {T: (0, 1, 2)}


def test_state_whose_plan_cannot_be_written_is_made_with_a_later_heartbeat() -> None:
    bench = Bench()
    bench.log.failing = True
    answers: list[HeartbeatAnswer | KafkaError] = []
    bench.groups.heartbeat(Heartbeat("g", "m", 0, None, ["t"]), answers.append)
    bench.world.run(GIVEN_UP_MS)
    (answer,) = answers
    assert isinstance(answer, KafkaError)
    assert bench.persister._states == {}
    bench.log.failing = False
    assert bench.join("m").assignment == {T: (0, 1, 2)}


def test_state_that_is_lost_where_nobody_tells_of_it_is_asked_for_and_made_anew() -> None:
    """Its leader is on another node, which cannot notify the group."""
    bench = Bench()
    epoch = bench.join("m").member_epoch
    bench.persister.initialize(SharePartitionKey("g", T, 1), 7, 15, lambda error: None)
    bench.persister.delete(SharePartitionKey("g", T, 2), lambda error: None)
    asked: list[SharePartitionKey] = []

    def doubted(key: SharePartitionKey) -> bool:
        asked.append(key)
        return key.partition < 2

    bench.groups.check_states(doubted)
    bench.say("m", epoch)
    assert sorted(key.partition for key in asked) == [0, 1, 2]
    assert SharePartitionKey("g", T, 2) not in bench.persister._states, "it was not asked for"
    bench.groups.check_states(lambda key: True)
    bench.say("m", epoch)
    states = [bench.persister._states[SharePartitionKey("g", T, index)] for index in range(3)]
    assert [state.start_offset for state in states] == [-1, 15, -1], "what is there stays"


def test_state_that_a_group_has_no_record_of_is_kept() -> None:
    """A salvage may lose a group's records and keep its share state."""
    bench = Bench()
    epoch = bench.join("m").member_epoch
    bench.say("m", epoch, ["t", "u"])  # epochs increase
    bench.persister.delete(SharePartitionKey("g", T, 2), lambda error: None)
    bench.persister.initialize(SharePartitionKey("g", T, 1), 7, 15, lambda error: None)
    bench.log = MemoryLog()
    bench.restart()
    assert bench.join("m").assignment == {T: (0, 1, 2)}
    states = [bench.persister._states[SharePartitionKey("g", T, index)] for index in range(3)]
    assert [state.start_offset for state in states] == [-1, 15, -1]
    assert [state.state_epoch for state in states] == [2, 7, 7]
    # so that clients that set its offsets are not fenced
    assert bench.group().epoch >= 7
    bench.restart()
    assert bench.group().epoch >= 7
    bench.say("m", -1)
    ends: list[KafkaError | None] = []
    topic = bench.topics.topics["t"]
    bench.offsets.alter("g", [topic], {(topic, 1): 3}, {(topic, 1): ends.append})
    bench.world.run()
    assert ends == [None]
    assert bench.persister._states[SharePartitionKey("g", T, 1)].start_offset == 3


@pytest.mark.parametrize("deletes", [True, False])
def test_what_is_asked_for_while_state_is_made_counts(
    monkeypatch: pytest.MonkeyPatch, *, deletes: bool
) -> None:
    bench = Bench()
    topic = bench.topics.topics["t"]
    told: list[Callable[[], None]] = []
    monkeypatch.setattr(
        bench.persister,
        "summary",
        lambda key, done: told.append(lambda: MemoryPersister.summary(bench.persister, key, done)),
    )
    bench.say("m")
    bench.say("m", -1)
    assert len(told) == 3
    if deletes:
        assert bench.result(bench.offsets.delete, "g", [topic]) is None
    else:
        ends: list[KafkaError | None] = []
        bench.offsets.alter("g", [topic], {(topic, 1): 15}, {(topic, 1): ends.append})
        bench.world.run()
        assert ends == [None]
    for tell in told:
        tell()
    bench.world.run()
    monkeypatch.undo()
    if deletes:
        assert bench.persister._states == {}
        assert bench.offsets.initialized("g") == []
    else:
        assert bench.persister._states[SharePartitionKey("g", T, 1)].start_offset == 15
        assert bench.offsets.initialized("g") == [(topic, [1])]
    assert bench.join("m").assignment == {T: (0, 1, 2)}


def test_what_was_being_deleted_is_deleted_after_a_restart() -> None:
    bench = Bench()
    bench.say("m")
    bench.say("m", -1)
    group = bench.group()
    group.deleting[T] = "t"
    del group.initialized[T]
    bench.states._write(group, lambda error: None)
    bench.world.run()
    bench.restart()
    assert bench.persister._states == {}
    assert bench.group().deleting == {}


def _taken_anew(bench: Bench) -> None:
    """The group moved to another broker, and back."""
    bench.groups.resign(0)
    bench.groups._records.load()
    bench.groups.start()
    bench.world.run()


def test_what_is_heard_of_a_group_that_was_anothers_meanwhile_makes_no_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is no longer true that there was none: a reset would lose acknowledgements made since."""
    bench = Bench()
    told: list[Callable[[], None]] = []
    monkeypatch.setattr(
        bench.persister,
        "summary",
        lambda key, done: told.append(lambda: done(StateSummary(0, -1, -1, 0))),
    )
    bench.say("m")
    assert len(told) == 3
    _taken_anew(bench)
    monkeypatch.undo()
    assert bench.join("m").assignment == {T: (0, 1, 2)}, "who waits for an answer keeps nobody else waiting"
    settled = SharePartitionKey("g", T, 1)
    bench.persister.initialize(settled, 2, 15, lambda error: None)
    size = bench.log.high_watermark
    for tell in told:
        tell()
    bench.world.run()
    assert bench.persister._states[settled].start_offset == 15
    assert bench.log.high_watermark == size, "nor does it write what it knew"


def test_what_was_deleted_for_a_group_that_was_anothers_meanwhile_is_not_noted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench()
    bench.join("m")
    bench.say("m", -1)
    told: list[Callable[[], None]] = []
    monkeypatch.setattr(bench.persister, "delete", lambda key, done: told.append(lambda: done(None)))
    ends: list[KafkaError | None] = []
    bench.offsets.delete("g", [bench.topics.topics["t"]], ends.append)
    bench.world.run()
    assert len(told) == 3
    monkeypatch.undo()
    _taken_anew(bench)
    assert bench.join("m").assignment == {T: (0, 1, 2)}, "it was deleted for good, and is made anew"
    size = bench.log.high_watermark
    for tell in told:
        tell()
    bench.world.run()
    assert [error and error.code for error in ends] == [ErrorCode.NOT_COORDINATOR]
    assert bench.log.high_watermark == size
    assert bench.group().initialized


@pytest.mark.parametrize("deletes", [False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_nobody_leads_a_share_partition_while_its_offset_is_changed(*, deletes: bool, fails: bool) -> None:
    """A leader that loads the old state meanwhile would overwrite the new one."""
    bench = Bench()
    topic = bench.topics.topics["t"]
    bench.say("m")
    bench.say("m", -1)
    ends: list[tuple[bool, set[UUID]]] = []
    bench.log.holding = True
    told = lambda error: ends.append((error is None, set(bench.held)))  # noqa: E731
    if deletes:
        bench.offsets.delete("g", [topic], told)
    else:
        bench.offsets.alter("g", [topic], {(topic, 0): 15}, {(topic, 0): told})
    bench.world.run()
    for _ in range(5):
        if ends:
            break
        assert bench.held == {T}
        bench.log.release(KafkaError(ErrorCode.MESSAGE_TOO_LARGE) if fails else None)
        bench.log.holding = True
        bench.world.run()
    assert ends == [(not fails, set())]
