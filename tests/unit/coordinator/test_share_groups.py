from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest
from tests.unit.coordinator.world import MemoryLog, World, record_log

from sharecore.config import GroupConfig
from sharecore.coordinator.keys import SharePartitionKey
from sharecore.coordinator.record_log import RecordLog
from sharecore.coordinator.registry import GroupRegistry, GroupType
from sharecore.coordinator.share_group import Assignment, ShareGroup
from sharecore.coordinator.share_groups import Heartbeat, HeartbeatAnswer, ShareGroups
from sharecore.coordinator.share_offsets import ShareOffsets, SharePartitionOffset
from sharecore.coordinator.share_topic_state import ShareTopicStates
from sharecore.coordinator.share_topics import TopicInfo
from sharecore.errors import ErrorCode, KafkaError
from sharecore.persister import MemoryPersister

T, U = UUID(int=1), UUID(int=2)
AT_ONCE = GroupConfig(share_assignment_interval_ms=0)


class Topics:
    """Topics by name, changed by the test."""

    def __init__(self) -> None:
        self.version = 0
        self.topics: dict[str, TopicInfo] = {}

    def set(self, name: str, topic_id: UUID, partitions: int) -> None:
        self.topics[name] = TopicInfo(name, topic_id, partitions)
        self.version += 1

    def drop(self, name: str) -> None:
        del self.topics[name]
        self.version += 1

    def find(self, name: str) -> TopicInfo | None:
        return self.topics.get(name)

    def find_id(self, topic_id: UUID) -> TopicInfo | None:
        return next((topic for topic in self.topics.values() if topic.topic_id == topic_id), None)


class Bench:
    """Share groups over a log in memory, and members who say what the test tells them to."""

    def __init__(self, config: GroupConfig = AT_ONCE) -> None:
        self.world = World()
        self.config = config
        self.log = MemoryLog()
        self.topics = Topics()
        self.topics.set("t", T, 3)
        self.persister = MemoryPersister()
        self.gone: list[tuple[str, str]] = []
        self.restarted: list[tuple[str, list[str]]] = []
        self.restart()

    def restart(self) -> None:
        """A broker that knows no more than the log."""
        self.registry = GroupRegistry()
        records: RecordLog = record_log(self.world, [self.log])
        self.states = ShareTopicStates(self.persister, records, self.topics)
        self.groups = ShareGroups(
            self.registry,
            records,
            self.topics,
            self.states,
            lambda group_id: self.config,
            self.world,
            self.world,
            max_size=3,
            member_gone=lambda group_id, member_id: self.gone.append((group_id, member_id)),
        )
        self.offsets = ShareOffsets(
            self.registry,
            self.groups,
            self.states,
            self.persister,
            self.topics,
            lambda topic, partition: 20 if partition < topic.partitions else None,
            lambda group_id, topics: self.restarted.append((group_id, [topic.name for topic in topics])),
        )
        records.load()
        self.groups.start()
        self.world.run()

    def say(
        self,
        member: str,
        epoch: int = 0,
        topics: list[str] | None = None,
        *,
        group: str = "g",
        rack: str | None = None,
    ) -> HeartbeatAnswer:
        """One heartbeat and its answer; joining, a member wants topic t unless told otherwise."""
        if topics is None and epoch == 0:
            topics = ["t"]
        answers: list[HeartbeatAnswer | KafkaError] = []
        self.groups.heartbeat(
            Heartbeat(group, member, epoch, rack, topics, "client", "/host"), answers.append
        )
        self.world.run()
        (answer,) = answers
        if isinstance(answer, KafkaError):
            raise answer
        return answer

    def group(self, name: str = "g") -> ShareGroup:
        group = self.groups.find(name)
        assert group is not None
        return group

    def result(self, call: Callable[..., None], *args: object) -> object:
        """What a call hands to its callback."""
        results: list[object] = []
        call(*args, results.append)
        self.world.run()
        (result,) = results
        return result


def refused(code: ErrorCode) -> pytest.RaisesExc[KafkaError]:
    return pytest.raises(KafkaError, match=code.name)


def partitions(assignment: Assignment | None) -> list[tuple[int, int]]:
    assert assignment is not None
    return [(topic.int, index) for topic, some in assignment.items() for index in some]


def test_the_first_member_has_its_partitions_with_the_first_answer() -> None:
    bench = Bench()
    answer = bench.say("m")
    assert (answer.member_id, answer.heartbeat_ms) == ("m", 5000)
    assert answer.member_epoch > 0
    assert answer.assignment == {T: (0, 1, 2)}
    again = bench.say("m", answer.member_epoch)
    assert again.assignment is None, "nothing has changed"
    assert again.member_epoch == answer.member_epoch
    assert bench.group().state_name == "Stable"


@pytest.mark.parametrize(
    ("heartbeat", "code"),
    [
        (Heartbeat("", "m", 0, None, ["t"]), ErrorCode.INVALID_REQUEST),
        (Heartbeat("  ", "m", 0, None, ["t"]), ErrorCode.INVALID_REQUEST),
        (Heartbeat("g", "", 0, None, ["t"]), ErrorCode.INVALID_REQUEST),
        (Heartbeat("g", "m" * 256, 0, None, ["t"]), ErrorCode.INVALID_REQUEST),
        (Heartbeat("g", "m", -2, None, ["t"]), ErrorCode.INVALID_REQUEST),
        (Heartbeat("g", "m", 0, "", ["t"]), ErrorCode.INVALID_REQUEST),
        (Heartbeat("g", "m", 0), ErrorCode.INVALID_REQUEST),
        (Heartbeat("g", "m", 0, None, []), ErrorCode.INVALID_REQUEST),
        (Heartbeat("g", "m", -1), ErrorCode.GROUP_ID_NOT_FOUND),
        (Heartbeat("g", "m", 5), ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_a_heartbeat_that_makes_no_sense_is_refused(heartbeat: Heartbeat, code: ErrorCode) -> None:
    bench = Bench()
    with refused(code):
        bench.groups.heartbeat(heartbeat, lambda answer: None)
    assert bench.groups.find("g") is None


def test_members_with_a_wrong_epoch_are_fenced() -> None:
    bench = Bench()
    first = bench.say("m").member_epoch
    bench.say("n")
    second = bench.say("m", first).member_epoch
    assert second > first
    assert bench.say("m", first).member_epoch == second, "the answer may have been lost"
    for wrong in (first - 1, second + 1):
        with refused(ErrorCode.FENCED_MEMBER_EPOCH):
            bench.say("m", wrong)
    with refused(ErrorCode.UNKNOWN_MEMBER_ID):
        bench.say("stranger", second)
    assert bench.say("m", 0).member_epoch == second, "a member may join again at any time"


def test_the_group_has_a_largest_size() -> None:
    bench = Bench()
    for member in "abc":
        bench.say(member)
    with refused(ErrorCode.GROUP_MAX_SIZE_REACHED):
        bench.say("d")
    bench.say("c")
    bench.say("a", -1)
    bench.say("d")


def test_every_partition_has_a_member_and_every_member_a_partition() -> None:
    bench = Bench()
    members = {name: bench.say(name).member_epoch for name in "ab"}
    for _ in range(2):
        for name, epoch in members.items():
            members[name] = bench.say(name, epoch).member_epoch
    told = [partitions(bench.group().members[name].assigned) for name in members]
    assert sorted(each for some in told for each in some) == [(1, 0), (1, 1), (1, 2)]
    assert all(told)
    bench.say("a", -1)
    answer = bench.say("b", members["b"])
    assert partitions(answer.assignment) == [(1, 0), (1, 1), (1, 2)]


def test_a_changed_subscription_changes_the_assignment() -> None:
    bench = Bench()
    bench.topics.set("u", U, 1)
    epoch = bench.say("m").member_epoch
    answer = bench.say("m", epoch, ["u", "t", "u", "nowhere"])
    assert answer.assignment == {T: (0, 1, 2), U: (0,)}
    answer = bench.say("m", answer.member_epoch, ["u"])
    assert answer.assignment == {U: (0,)}
    answer = bench.say("m", answer.member_epoch, [])
    assert answer.assignment == {}


def test_topics_that_appear_grow_and_go_change_the_assignment() -> None:
    bench = Bench()
    epoch = bench.say("m", 0, ["t", "u"]).member_epoch
    bench.topics.set("u", U, 1)
    answer = bench.say("m", epoch)
    assert answer.assignment == {T: (0, 1, 2), U: (0,)}
    bench.topics.set("u", U, 2)
    answer = bench.say("m", answer.member_epoch)
    assert answer.assignment == {T: (0, 1, 2), U: (0, 1)}
    assert bench.persister._states[SharePartitionKey("g", U, 0)].start_offset == -1
    assert bench.persister._states[SharePartitionKey("g", U, 1)].start_offset == 0, "a new partition is new"
    bench.topics.drop("t")
    bench.groups.topics_changed([T])
    answer = bench.say("m", answer.member_epoch)
    assert answer.assignment == {U: (0, 1)}
    assert SharePartitionKey("g", T, 0) not in bench.persister._states


def test_assignments_are_made_no_more_often_than_the_interval() -> None:
    bench = Bench(GroupConfig(share_assignment_interval_ms=1000))
    first = bench.say("a")
    assert bench.say("b").assignment == {}
    assert bench.say("a", first.member_epoch).assignment is None
    bench.world.run(1000)
    assert bench.say("a", first.member_epoch).assignment not in (None, {T: (0, 1, 2)})


def test_a_silent_member_is_removed() -> None:
    bench = Bench()
    epoch = bench.say("a").member_epoch
    bench.say("b")
    bench.world.run(44_000)
    epoch = bench.say("a", epoch).member_epoch
    bench.world.run(2_000)
    assert bench.gone == [("g", "b")]
    assert bench.say("a", epoch).assignment == {T: (0, 1, 2)}
    bench.world.run(46_000)
    assert bench.group().state_name == "Empty"
    with refused(ErrorCode.UNKNOWN_MEMBER_ID):
        bench.say("a", epoch)


def test_a_restart_knows_the_groups_and_their_members() -> None:
    bench = Bench()
    bench.say("a", rack="r")
    epoch = bench.say("b").member_epoch
    bench.say("c")
    bench.say("c", -1)
    before = bench.group()
    bench.restart()
    after = bench.group()
    assert after is not before
    assert (after.epoch, after.assignment_epoch) == (before.epoch, before.assignment_epoch)
    assert set(after.members) == {"a", "b"}
    assert after.members["a"].rack_id == "r"
    assert after.target == {name: assigned for name, assigned in before.target.items() if name != "c"}
    bench.say("b", epoch)
    bench.world.run(46_000)
    assert bench.group().state_name == "Empty"


def test_state_that_cannot_be_made_is_made_later(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    refuse = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def fail(*args: object) -> None:
        raise refuse

    monkeypatch.setattr(bench.persister, "initialize", fail)
    answer = bench.say("m")
    assert answer.assignment == {}
    monkeypatch.undo()
    assert bench.say("m", answer.member_epoch).assignment == {T: (0, 1, 2)}


def test_only_an_empty_group_is_deleted_and_its_state_with_it() -> None:
    bench = Bench()
    bench.say("m")
    with refused(ErrorCode.NON_EMPTY_GROUP):
        bench.groups.delete(bench.group(), lambda error: None)
    bench.say("m", -1)
    assert bench.result(bench.groups.delete, bench.group()) is None
    assert bench.groups.find("g") is None
    assert bench.persister._states == {}
    bench.restart()
    assert bench.groups.find("g") is None


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


def test_a_name_that_belongs_to_another_type_is_refused() -> None:
    class Classic:
        group_id, type, protocol_type, state_name, is_empty = (
            "g",
            GroupType.CLASSIC,
            "consumer",
            "Empty",
            True,
        )

    bench = Bench()
    bench.registry.add(Classic())
    with refused(ErrorCode.GROUP_ID_NOT_FOUND):
        bench.say("m")


def test_offsets_are_described_with_their_lag() -> None:
    bench = Bench()
    topic = bench.topics.topics["t"]
    bench.say("m")
    assert bench.offsets.initialized("g") == [(topic, [0, 1, 2])]
    assert bench.offsets.initialized("nobody") == []
    assert bench.result(bench.offsets.describe, "g", topic, 0) == SharePartitionOffset(-1, 0, -1)
    bench.say("m", -1)
    ends: list[KafkaError | None] = []
    bench.offsets.alter("g", {(topic, 0): 15}, {(topic, 0): ends.append})
    bench.world.run()
    assert ends == [None]
    assert bench.restarted == [("g", ["t"])]
    assert bench.result(bench.offsets.describe, "g", topic, 0) == SharePartitionOffset(15, 0, 5)
    assert bench.result(bench.offsets.describe, "g", topic, 1) == SharePartitionOffset(-1, 0, -1)


def test_offsets_are_changed_and_deleted_without_members_only() -> None:
    bench = Bench()
    topic = bench.topics.topics["t"]
    bench.say("m")
    with refused(ErrorCode.NON_EMPTY_GROUP):
        bench.offsets.alter("g", {(topic, 0): 15}, {})
    with refused(ErrorCode.NON_EMPTY_GROUP):
        bench.offsets.deletable("g")
    with refused(ErrorCode.INVALID_GROUP_ID):
        bench.offsets.alter("", {(topic, 0): 15}, {})
    with refused(ErrorCode.GROUP_ID_NOT_FOUND):
        bench.offsets.deletable("nobody")
    bench.say("m", -1)
    assert bench.result(bench.offsets.delete, "g", [topic]) is None
    assert bench.offsets.initialized("g") == []
    assert bench.persister._states == {}
    bench.restart()
    assert bench.offsets.initialized("g") == []


def test_setting_offsets_makes_a_group() -> None:
    bench = Bench()
    topic = bench.topics.topics["t"]
    bench.offsets.alter("new", {(topic, 2): 7}, {(topic, 2): lambda error: None})
    bench.world.run()
    bench.restart()
    assert bench.offsets.initialized("new") == [(topic, [2])]
    assert bench.group("new").state_name == "Empty"
    assert bench.say("m", group="new").assignment == {T: (0, 1, 2)}
    assert bench.persister._states[SharePartitionKey("new", T, 2)].start_offset == 7
