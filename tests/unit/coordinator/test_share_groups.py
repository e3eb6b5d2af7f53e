from __future__ import annotations

from collections.abc import Callable, Collection
from uuid import UUID

import pytest
from tests.unit.coordinator_log.world import MemoryLog, World, record_log

from sharecore.config import GroupConfig
from sharecore.coordinator.classic import ClassicGroup
from sharecore.coordinator.registry import GroupRegistry
from sharecore.coordinator.share.coordinator import Heartbeat, HeartbeatAnswer, ShareGroupCoordinator
from sharecore.coordinator.share.group import Assignment, ShareGroup
from sharecore.coordinator.share.offsets import ShareOffsets, SharePartitionOffset
from sharecore.coordinator.share.topic_state import ShareTopicStates
from sharecore.coordinator.topics import TopicInfo
from sharecore.coordinator_log.runtime import CoordinatorRuntime
from sharecore.errors import ErrorCode, KafkaError
from sharecore.persister import MemoryPersister
from sharecore.sharestate.keys import SharePartitionKey

T, U = UUID(int=1), UUID(int=2)
AT_ONCE = GroupConfig(share_assignment_interval_ms=0)


class Topics:
    """Topics by name, changed by the test."""

    def __init__(self) -> None:
        self.version = 0
        self.topics: dict[str, TopicInfo] = {}
        self.awaited: list[Callable[[], object]] | None = None
        """Callbacks for the deletion of a topic, if it is not known at once."""

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

    def when_gone(self, topic_id: UUID, name: str, gone: Callable[[], object]) -> None:
        if self.awaited is None:
            gone()
        else:
            self.awaited.append(gone)


class Bench:
    """Share groups over a log in memory, with scripted members."""

    def __init__(
        self, config: GroupConfig = AT_ONCE, *, bytes_max: int = 1 << 20, groups_bytes_max: int = 1 << 20
    ) -> None:
        self.world = World()
        self.config, self.bytes_max, self.groups_bytes_max = config, bytes_max, groups_bytes_max
        self.log = MemoryLog()
        self.topics = Topics()
        self.topics.set("t", T, 3)
        self.persister = MemoryPersister()
        self.left: list[tuple[str, str]] = []
        self.gone: list[tuple[str, str]] = []
        self.held: set[UUID] = set()
        self.joined: list[tuple[str, str]] = []
        self.restart()

    def restart(self) -> None:
        """Create a broker that only knows the log."""
        self.registry = GroupRegistry(self.groups_bytes_max)
        records: CoordinatorRuntime = record_log(self.world, [self.log])
        self.states = ShareTopicStates(self.persister, records, self.topics)
        self.groups = ShareGroupCoordinator(
            self.registry,
            records,
            self.topics,
            self.states,
            lambda group_id: self.config,
            max_size=3,
            bytes_max=self.bytes_max,
            member_joined=lambda group_id, member_id: self.joined.append((group_id, member_id)),
            member_left=lambda group_id, member_id: self.left.append((group_id, member_id)),
            member_gone=lambda group_id, member_id: self.gone.append((group_id, member_id)),
        )
        self.offsets = ShareOffsets(
            self.registry,
            self.groups,
            self.states,
            self.persister,
            self.topics,
            lambda topic, partition, told: told(20 if partition < topic.partitions else None),
            self.hold,
        )
        records.load()
        self.groups.start()
        self.world.run()

    def hold(self, group_id: str, topics: Collection[UUID]) -> Callable[[], None]:
        """Keep share partitions of these topics without leaders until the result is called."""
        self.held |= set(topics)
        return lambda: self.held.difference_update(topics)

    def say(
        self,
        member: str,
        epoch: int = 0,
        topics: list[str] | None = None,
        *,
        group: str = "g",
        rack: str | None = None,
    ) -> HeartbeatAnswer:
        """Send a heartbeat, and return its response; a joining member subscribes to topic t by default."""
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

    def join(
        self, member: str, epoch: int = 0, topics: list[str] | None = None, *, group: str = "g"
    ) -> HeartbeatAnswer:
        """Send a heartbeat, and a second one that returns partitions whose state the first one
        initialized.
        """
        first = self.say(member, epoch, topics, group=group)
        second = self.say(member, first.member_epoch, group=group)
        return first if second.assignment is None else second

    def noted(self) -> set[str]:
        """Topics with state recorded by the group."""
        return {state.name for state in self.group().initialized.values()}

    def group(self, name: str = "g") -> ShareGroup:
        group = self.groups.find(name)
        assert group is not None
        return group

    def result(self, call: Callable[..., None], *args: object) -> object:
        """Return what a call passes to its callback."""
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


def test_the_first_member_comes_back_for_its_partitions_as_soon_as_they_have_state() -> None:
    bench = Bench()
    first = bench.say("m")
    assert (first.member_id, first.member_epoch, first.assignment) == ("m", 2, {})
    assert first.heartbeat_ms < 100
    answer = bench.say("m", first.member_epoch)
    assert (answer.member_epoch, answer.assignment, answer.heartbeat_ms) == (3, {T: (0, 1, 2)}, 5000)
    again = bench.say("m", answer.member_epoch)
    assert again.assignment is None, "nothing has changed"
    assert (again.member_epoch, again.heartbeat_ms) == (answer.member_epoch, 5000)
    assert bench.group().state_name == "Stable"


def test_a_member_that_joins_too_soon_comes_back_when_the_assignment_is_due() -> None:
    bench = Bench(GroupConfig())
    bench.join("a")
    bench.say("a", -1)
    bench.world.run(300)
    joined = bench.say("b")
    assert (joined.assignment, joined.heartbeat_ms) == ({}, 700)
    bench.world.run(700)
    answer = bench.say("b", joined.member_epoch)
    assert (answer.assignment, answer.heartbeat_ms) == ({T: (0, 1, 2)}, 5000)


def test_members_who_wait_for_nothing_keep_their_interval() -> None:
    bench = Bench(GroupConfig())
    epoch = bench.join("a").member_epoch
    assert bench.say("b").heartbeat_ms == 1000
    assert bench.say("a", epoch).heartbeat_ms == 5000
    bench.world.run(1000)
    assert bench.say("a", epoch).heartbeat_ms == 5000
    assert bench.say("b", epoch).heartbeat_ms == 5000


def test_members_come_back_the_later_the_longer_their_state_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    monkeypatch.setattr(bench.persister, "initialize", lambda key, epoch, start, done: None)
    epoch = bench.say("m").member_epoch
    for waited_ms in (200, 1_800, 10_000):
        bench.world.run(waited_ms)
        told_ms = bench.say("m", epoch).heartbeat_ms
    assert told_ms == 5000, "at last as rarely as configured"


def test_a_member_that_joins_twice_with_the_same_wishes_changes_no_epoch() -> None:
    bench = Bench()
    epoch = bench.join("m").member_epoch
    again = bench.say("m", rack="r")
    assert (again.member_epoch, again.assignment) == (epoch, {T: (0, 1, 2)})
    assert bench.group().epoch == epoch, "a rack alone changes nothing either"
    assert bench.group().members["m"].rack_id == "r"
    bench.restart()
    assert bench.group().members["m"].rack_id == "r"


def test_state_that_is_made_while_others_join_takes_no_epoch_of_its_own() -> None:
    bench = Bench()
    assert bench.say("a").member_epoch == 2
    assert bench.say("b").member_epoch == 3, "one new epoch for the new member and the new state"
    assert bench.say("b", 3).member_epoch == 3


def test_topics_that_changed_before_a_restart_are_noticed_after_it() -> None:
    bench = Bench()
    epoch = bench.join("m", 0, ["t", "u"]).member_epoch
    bench.topics.set("u", U, 1)
    bench.restart()
    assert bench.say("m", epoch).member_epoch == epoch + 1
    bench.restart()
    assert bench.join("m", epoch + 1).assignment == {T: (0, 1, 2), U: (0,)}
    assert bench.group().epoch == epoch + 2


def test_the_interval_counts_over_a_restart() -> None:
    bench = Bench(GroupConfig())
    bench.join("a")
    bench.restart()
    assert bench.say("b").assignment == {}
    bench.world.run(1000)
    assert bench.join("b").assignment != {}


@pytest.mark.parametrize(
    ("heartbeat", "code"),
    [
        (Heartbeat("", "m", 0, None, ["t"]), ErrorCode.INVALID_REQUEST),
        (Heartbeat("  ", "m", 0, None, ["t"]), ErrorCode.INVALID_REQUEST),
        (Heartbeat("g", "", 0, None, ["t"]), ErrorCode.INVALID_REQUEST),
        (Heartbeat("g", "m" * 37, 0, None, ["t"]), ErrorCode.INVALID_REQUEST),
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


def test_the_subscriptions_of_a_group_are_bounded() -> None:
    """sharecore.group.bytes.max"""
    bench = Bench(bytes_max=1500)
    bench.say("a", topics=["x" * 300])
    with refused(ErrorCode.GROUP_MAX_SIZE_REACHED):
        bench.say("b", topics=["x" * 300, "y" * 300])
    bench.say("b", topics=["x" * 300])
    bench.say("b", topics=["y" * 400])


def test_the_group_has_a_largest_size() -> None:
    bench = Bench()
    for member in "abc":
        bench.say(member)
    for epoch in (0, 3):
        with refused(ErrorCode.GROUP_MAX_SIZE_REACHED):
            bench.say("d", epoch)
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
    epoch = bench.join("m").member_epoch
    answer = bench.join("m", epoch, ["u", "t", "u", "nowhere"])
    assert answer.assignment == {T: (0, 1, 2), U: (0,)}
    answer = bench.say("m", answer.member_epoch, ["u"])
    assert answer.assignment == {U: (0,)}
    answer = bench.say("m", answer.member_epoch, [])
    assert answer.assignment == {}


def test_topics_that_appear_grow_and_go_change_the_assignment() -> None:
    bench = Bench()
    epoch = bench.join("m", 0, ["t", "u"]).member_epoch
    bench.topics.set("u", U, 1)
    answer = bench.join("m", epoch)
    assert answer.assignment == {T: (0, 1, 2), U: (0,)}
    bench.topics.set("u", U, 2)
    answer = bench.join("m", answer.member_epoch)
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
    first = bench.join("a")
    assert bench.say("b").assignment == {}
    assert bench.say("a", first.member_epoch).assignment is None
    bench.world.run(1000)
    assert bench.say("a", first.member_epoch).assignment not in (None, {T: (0, 1, 2)})


def test_a_silent_member_is_removed() -> None:
    """share.session.timeout.ms"""
    bench = Bench()
    epoch = bench.say("a").member_epoch
    bench.say("b")
    bench.world.run(44_000)
    epoch = bench.say("a", epoch).member_epoch
    bench.world.run(2_000)
    assert (bench.gone, bench.left) == ([("g", "b")], [])
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
    assert (bench.gone, bench.left) == ([], [("g", "c")])
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


def test_state_of_a_topic_that_is_not_known_yet_stays_until_it_is_sure_that_it_is_gone() -> None:
    """The current coordinator may not know of a topic just created through another node."""
    bench = Bench()
    bench.topics.set("u", U, 1)
    bench.join("m", topics=["t", "u"])
    before = bench.persister._states.copy()
    topic = bench.topics.topics["u"]
    bench.topics.drop("u")
    bench.topics.awaited = []
    bench.restart()
    bench.groups.resign(0)
    bench.restart()
    assert bench.persister._states == before
    assert bench.noted() == {"t", "u"}
    bench.topics.set("u", U, 1)
    assert bench.offsets.initialized("g")[1] == (topic, [0])
    bench.topics.drop("u")
    of_a_former_coordinator, gone = bench.topics.awaited
    of_a_former_coordinator()
    bench.world.run()
    assert bench.persister._states == before
    gone()
    bench.world.run()
    assert {key.topic_id for key in bench.persister._states} == {T}
    assert bench.noted() == {"t"}


def test_a_name_that_belongs_to_another_type_is_refused() -> None:
    bench = Bench()
    bench.registry.add(ClassicGroup("g", 0))
    with refused(ErrorCode.GROUP_ID_NOT_FOUND):
        bench.say("m")


def test_offsets_are_described_with_their_lag() -> None:
    bench = Bench()
    topic = bench.topics.topics["t"]
    bench.say("m")
    assert bench.offsets.initialized("g") == [(topic, [0, 1, 2])]
    assert bench.offsets.initialized("nobody") == []
    assert bench.result(bench.offsets.describe, "g", topic, [0]) == {0: SharePartitionOffset(-1, 0, -1)}
    bench.say("m", -1)
    ends: list[KafkaError | None] = []
    bench.offsets.alter("g", [topic], {(topic, 0): 15}, {(topic, 0): ends.append})
    bench.world.run()
    assert ends == [None]
    described = bench.result(bench.offsets.describe, "g", topic, [1, 0])
    assert isinstance(described, dict)
    assert list(described.items()) == [
        (1, SharePartitionOffset(-1, 0, -1)),
        (0, SharePartitionOffset(15, 0, 5)),
    ]


def test_offsets_are_changed_and_deleted_without_members_only() -> None:
    bench = Bench()
    topic = bench.topics.topics["t"]
    bench.say("m")
    with refused(ErrorCode.NON_EMPTY_GROUP):
        bench.offsets.alter("g", [topic], {(topic, 0): 15}, {})
    with refused(ErrorCode.NON_EMPTY_GROUP):
        bench.offsets.deletable("g")
    with refused(ErrorCode.INVALID_GROUP_ID):
        bench.offsets.alter("", [topic], {(topic, 0): 15}, {})
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
    bench.offsets.alter("new", [topic], {(topic, 2): 7}, {(topic, 2): lambda error: None})
    bench.world.run()
    bench.restart()
    assert bench.offsets.initialized("new") == [(topic, [2])]
    assert bench.group("new").state_name == "Empty"
    assert bench.join("m", group="new").assignment == {T: (0, 1, 2)}
    assert bench.persister._states[SharePartitionKey("new", T, 2)].start_offset == 7
