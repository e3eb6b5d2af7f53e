"""A random walk of members of a share group, compared with a model."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.unit.coordinator.test_share_groups import AT_ONCE, Bench

from sharecore.coordinator.share.group import Assignment
from sharecore.errors import ErrorCode, KafkaError

NAMES = ("a", "b", "c")
MEMBERS = ("m1", "m2", "m3", "m4")
TIMEOUT_MS = AT_ONCE.share_session_timeout_ms


class Told:
    """A member's state: its epoch, and its partitions."""

    def __init__(self, subscribed: frozenset[str], heard_ms: float) -> None:
        self.subscribed = subscribed
        self.heard_ms = heard_ms
        self.epoch = 0
        self.assignment: Assignment = {}


class Walk(RuleBasedStateMachine):
    """Members join, send heartbeats, change subscriptions, leave, fall silent and return with old epochs;
    topics are created, grow and are deleted; the broker restarts.
    """

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench()
        self.bench.topics.drop("t")
        self.bench.groups.max_size = len(MEMBERS) - 1
        self.ids = 0
        self.members: dict[str, Told] = {}
        self.fenced: dict[str, int] = {}
        self.epochs = (0, 0)

    # what members do

    @rule(member=st.sampled_from(MEMBERS), wants=st.sets(st.sampled_from(NAMES), min_size=1))
    def join(self, member: str, wants: set[str]) -> None:
        known = self.members.get(member)
        full = known is None and len(self.members) >= self.bench.groups.max_size
        try:
            answer = self.bench.say(member, 0, sorted(wants))
        except KafkaError as error:
            assert (full, error.code) == (True, ErrorCode.GROUP_MAX_SIZE_REACHED)  # noqa: PT017
            return
        assert not full
        assert answer.assignment is not None, "whoever joins is told what it has"
        told = self.members[member] = Told(frozenset(wants), self.bench.world.ms)
        told.epoch, told.assignment = answer.member_epoch, answer.assignment
        self.fenced.pop(member, None)

    @rule(member=st.sampled_from(MEMBERS))
    def speak(self, member: str) -> None:
        told = self.members.get(member)
        if told is not None:
            self._hear(told, member, None)

    @rule(member=st.sampled_from(MEMBERS), wants=st.sets(st.sampled_from(NAMES)))
    def change_its_mind(self, member: str, wants: set[str]) -> None:
        told = self.members.get(member)
        if told is not None:
            told.subscribed = frozenset(wants)
            self._hear(told, member, sorted(wants))

    def _hear(self, told: Told, member: str, topics: list[str] | None) -> None:
        answer = self.bench.say(member, told.epoch, topics)
        assert answer.member_epoch >= told.epoch, "a member's epoch never falls"
        told.epoch, told.heard_ms = answer.member_epoch, self.bench.world.ms
        if answer.assignment is not None:
            told.assignment = answer.assignment

    @rule(member=st.sampled_from(MEMBERS))
    def leave(self, member: str) -> None:
        told = self.members.pop(member, None)
        if told is not None:
            assert self.bench.say(member, -1).member_epoch == -1
            self.fenced[member] = told.epoch

    @rule(member=st.sampled_from(MEMBERS), off=st.sampled_from((-3, -2, 1, 5)))
    def speak_with_a_wrong_epoch(self, member: str, off: int) -> None:
        """It is only told to rejoin, and everyone else's assignment is unchanged."""
        told = self.members.get(member)
        if told is None or told.epoch + off <= 0:
            return
        group = self.bench.group()
        if told.epoch + off in (group.members[member].epoch, group.members[member].previous_epoch):
            return
        assert self._refusal(member, told.epoch + off) is ErrorCode.FENCED_MEMBER_EPOCH

    @rule(member=st.sampled_from(MEMBERS))
    def speak_after_the_end(self, member: str) -> None:
        """A member that left or fell silent gets nothing; a full group checks no further, like Apache's."""
        if member in self.fenced:
            full = len(self.members) >= self.bench.groups.max_size
            expected = ErrorCode.GROUP_MAX_SIZE_REACHED if full else ErrorCode.UNKNOWN_MEMBER_ID
            assert self._refusal(member, self.fenced[member]) is expected

    def _refusal(self, member: str, epoch: int) -> ErrorCode | None:
        try:
            self.bench.say(member, epoch)
        except KafkaError as error:
            return error.code
        return None

    @rule(silent_ms=st.sampled_from((1_000, 20_000, TIMEOUT_MS + 1)))
    def time_passes(self, silent_ms: int) -> None:
        self.bench.world.run(silent_ms)
        for member, told in list(self.members.items()):
            if self.bench.world.ms - told.heard_ms >= TIMEOUT_MS:
                self.fenced[member] = self.members.pop(member).epoch
                assert ("g", member) in self.bench.gone

    # what happens around them

    @rule(name=st.sampled_from(NAMES), partitions=st.integers(1, 5))
    def a_topic_appears_or_grows(self, name: str, partitions: int) -> None:
        found = self.bench.topics.find(name)
        if found is None:
            self.ids += 1
            self.bench.topics.set(name, UUID(int=self.ids), partitions)
        else:
            self.bench.topics.set(name, found.topic_id, found.partitions + partitions)

    @rule(name=st.sampled_from(NAMES))
    def a_topic_goes(self, name: str) -> None:
        found = self.bench.topics.find(name)
        if found is not None:
            self.bench.topics.drop(name)
            self.bench.groups.topics_changed([found.topic_id])
            self.bench.world.run()

    @rule()
    def the_broker_starts_again(self) -> None:
        self.bench.world.run()
        self.bench.world.crash()
        self.bench.restart()
        self.bench.groups.max_size = len(MEMBERS) - 1
        for told in self.members.values():
            told.heard_ms = self.bench.world.ms

    @rule()
    def everybody_speaks_twice(self) -> None:
        """Then each subscribed partition has one member, and nobody has an unsubscribed one."""
        for _ in range(2):
            for member in sorted(self.members):
                self.speak(member)
        wanted = {name for told in self.members.values() for name in told.subscribed}
        held = {
            (topic_id, index)
            for told in self.members.values()
            for topic_id, some in told.assignment.items()
            for index in some
        }
        found = [topic for name in wanted if (topic := self.bench.topics.find(name)) is not None]
        assert held == {(topic.topic_id, index) for topic in found for index in range(topic.partitions)}
        for told in self.members.values():
            ids = {topic.topic_id for topic in found if topic.name in told.subscribed}
            assert told.assignment.keys() <= ids

    @invariant()
    def epochs_never_fall(self) -> None:
        group = self.bench.groups.find("g")
        if group is None:
            return
        now = group.epoch, group.assignment_epoch
        assert now[0] >= self.epochs[0]
        assert now[1] >= self.epochs[1]
        assert now[0] >= now[1], "an assignment is made for an epoch that there was"
        assert group.members.keys() == self.members.keys()
        assert group.state_name == ("Stable" if self.members else "Empty")
        self.epochs = now

    def teardown(self) -> None:
        self.everybody_speaks_twice()


TestWalk = pytest.mark.heavy(Walk.TestCase)
TestWalk.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
