"""Effects of an abandoned write on groups: nothing that is not in the log."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.coordinator.consumer_cluster import Topics
from tests.unit.coordinator_log.world import GIVEN_UP_MS, MemoryLog, World

from sharecore.broker.coordinators.groups import Coordinators
from sharecore.config import BrokerConfig, GroupConfig
from sharecore.coordinator.classic import (
    ClassicGroup,
    JoinRequest,
    JoinResult,
    Leaving,
    SyncRequest,
    SyncResult,
)
from sharecore.coordinator.commits import CommitRequest
from sharecore.coordinator.consumer import ConsumerGroup, Heartbeat, HeartbeatAnswer
from sharecore.coordinator.offset_records import CommittedOffset, TopicPartition
from sharecore.coordinator.share.coordinator import Heartbeat as ShareHeartbeat
from sharecore.coordinator.share.coordinator import ShareGroupCoordinator
from sharecore.coordinator.share.group import ShareGroup
from sharecore.coordinator.share.offsets import ShareOffsets
from sharecore.coordinator.share.topic_state import ShareTopicStates
from sharecore.errors import KafkaError
from sharecore.persister import MemoryPersister
from sharecore.waiting import FairThread

P0 = TopicPartition("a", 0)
FAILED = "failed"


class BrokerTopics(Topics):
    """The broker's topics as coordinators see them."""

    def on_change(self, listener: object) -> None: ...

    def get(self, name: str) -> Any:
        found = self.find(name)
        return found and BrokerTopic(found.name, found.topic_id, found.partitions)

    def by_id(self, topic_id: Any) -> Any:
        found = self.find_id(topic_id)
        return found and self.get(found.name)

    def when_gone(self, topic_id: object, name: str, gone: Callable[[], object]) -> None: ...


class BrokerTopic:
    def __init__(self, name: str, topic_id: object, partitions: int) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = range(partitions)


class GroupSettings:
    def get(self, group_id: str) -> GroupConfig:
        return GroupConfig.resolve({}, BrokerConfig())


class Broker:
    """All group coordinators over one partition, which survives them."""

    self_compacting = False

    def __init__(self) -> None:
        self.world = World()
        self.log = MemoryLog()
        self.transactions = MemoryLog("__transaction_state")
        self.persister = MemoryPersister()
        self.topics = BrokerTopics()
        self.restart()

    def restart(self) -> None:
        self.world.crash()
        made: Any = partial(Coordinators, long_work=FairThread("test"))
        ids, world = SimpleNamespace(take=lambda: 7), self.world
        self.groups: Coordinators = made(BrokerConfig, self.topics, GroupSettings(), ids, self, world, world)
        states = ShareTopicStates(self.persister, self.groups.records, self.topics)
        self.share = ShareGroupCoordinator(
            self.groups.registry, self.groups.records, self.topics, states, GroupSettings().get
        )
        self.offsets = ShareOffsets(
            self.groups.registry,
            self.share,
            states,
            self.persister,
            self.topics,
            lambda topic, partition, told: told(10),
            lambda group_id, topics: lambda: None,
        )
        self.groups.start()
        self.share.start()
        self.world.run()

    def logs(self, topic: str) -> list[MemoryLog]:
        return [self.log if topic == "__consumer_offsets" else self.transactions]

    owner_check = None

    def result(self, call: Callable[..., object], *asked: object) -> Any:
        """Return an operation's result; FAILED for an error."""
        told: list[Any] = []
        call(*asked, told.append)
        self.world.run(GIVEN_UP_MS if self.log.failing else 0)
        (answer,) = told
        return FAILED if isinstance(answer, KafkaError) else answer

    def consumer(self, member: str, epoch: int = 0) -> Any:
        joins = epoch == 0
        request = Heartbeat(
            "g",
            member,
            epoch,
            rebalance_timeout_ms=30_000 if joins else -1,
            subscribed_names=["a"] if joins else None,
            owned=frozenset() if joins else None,
        )
        answer: HeartbeatAnswer | str = self.result(self.groups.consumer.heartbeat, request)
        return answer

    def share_member(self, member: str, epoch: int = 0) -> Any:
        request = ShareHeartbeat("g", member, epoch, None, ["a"] if epoch == 0 else None)
        return self.result(self.share.heartbeat, request)

    def classic(self) -> JoinResult:
        """Join, and sync."""
        joined: list[JoinResult] = []
        request = JoinRequest("g", "", None, "c", "/h", 60_000, 10_000, "consumer", [("range", b"")])
        self.groups.classic.join(request, joined.append)
        self.world.run(10_000)
        (result,) = joined
        synced: list[SyncResult] = []
        sync = SyncRequest(
            "g", result.member_id, None, result.generation, None, None, {result.member_id: b"x"}
        )
        self.groups.classic.sync(sync, synced.append)
        self.world.run()
        assert not synced[0].error
        return result

    def commit(self, offset: int = 5) -> Any:
        commits = {P0: CommittedOffset(offset, commit_ms=self.world.now_ms())}
        return self.result(self.groups.commits.commit, CommitRequest("g", "", None, -1, 9, commits))

    def now(self) -> object:
        """Return the state of the group."""
        group: Any = self.groups.registry.get("g")
        committed = dict(self.groups.offsets.get("g"))
        if isinstance(group, ClassicGroup):
            return "classic", group.state_name, group.generation, sorted(group.members), committed
        if isinstance(group, ConsumerGroup):
            members = {each.member_id: (each.epoch, dict(each.assigned)) for each in group.members.values()}
            return "consumer", group.epoch, members, dict(group.target), dict(group.holders), committed
        if isinstance(group, ShareGroup):
            told = {each.member_id: (each.epoch, each.assigned) for each in group.members.values()}
            topics = {each: sorted(state.partitions) for each, state in group.initialized.items()}
            return "share", group.epoch, told, dict(group.target), topics, dict(group.deleting)
        return None, committed


def nothing(broker: Broker) -> None:
    """Check that there is no group."""


def consumers(broker: Broker) -> None:
    epoch = broker.consumer("m1").epoch
    broker.consumer("m2")
    broker.consumer("m1", epoch)


def emptied_consumers(broker: Broker) -> None:
    broker.consumer("m1")
    broker.consumer("m1", -1)
    broker.commit()


def sharers(broker: Broker) -> None:
    epoch = broker.share_member("m1").member_epoch
    broker.share_member("m1", epoch)


def emptied_sharers(broker: Broker) -> None:
    sharers(broker)
    broker.share_member("m1", -1)


def offsets_alone(broker: Broker) -> None:
    broker.commit()


def emptied_classic(broker: Broker) -> None:
    member = broker.classic()
    broker.groups.classic.leave("g", [Leaving(member.member_id)])
    broker.world.run()
    broker.commit()


def alter(broker: Broker) -> Any:
    topic = broker.topics.topics["a"]
    return broker.result(lambda done: broker.offsets.alter("g", [topic], {(topic, 0): 3}, {(topic, 0): done}))


def forget_unused(broker: Broker) -> str:
    broker.world.run(10 * 24 * 3600 * 1000)
    broker.groups.forget_unused()
    broker.world.run(GIVEN_UP_MS)
    return FAILED


CASES: list[tuple[Callable[[Broker], None], Callable[[Broker], Any]]] = [
    (nothing, lambda broker: broker.consumer("m3")),
    (consumers, lambda broker: broker.consumer("m3")),
    (consumers, lambda broker: broker.consumer("m1", -1)),
    (emptied_classic, lambda broker: broker.consumer("m3")),
    (offsets_alone, lambda broker: broker.consumer("m3")),
    (nothing, lambda broker: broker.share_member("m3")),
    (sharers, lambda broker: broker.share_member("m3")),
    (sharers, lambda broker: broker.share_member("m1", -1)),
    (nothing, alter),
    (emptied_sharers, alter),
    (emptied_sharers, lambda broker: broker.result(broker.offsets.delete, "g", [broker.topics.topics["a"]])),
    (emptied_sharers, lambda broker: broker.result(broker.share.delete, broker.groups.registry.get("g"))),
    (nothing, lambda broker: broker.commit()),
    (offsets_alone, lambda broker: broker.commit(9)),
    (offsets_alone, lambda broker: broker.result(broker.groups.commits.delete, "g", [P0])),
    (offsets_alone, lambda broker: broker.result(broker.groups.delete, "g")),
    (emptied_classic, lambda broker: broker.result(broker.groups.delete, "g")),
    (emptied_consumers, lambda broker: broker.result(broker.groups.delete, "g")),
    (offsets_alone, forget_unused),
]


@pytest.mark.heavy
@pytest.mark.parametrize(("before", "operation"), CASES)
def test_what_could_not_be_written_is_taken_back(
    before: Callable[[Broker], None], operation: Callable[[Broker], Any]
) -> None:
    broker = Broker()
    before(broker)
    known = broker.now()
    broker.log.failing = True
    assert operation(broker) == FAILED
    broker.log.failing = False
    assert broker.now() == known
    broker.restart()
    assert broker.now() == known
    assert operation(broker) is not FAILED or operation is forget_unused


def test_a_consumer_group_is_back_where_a_classic_one_could_not_take_its_name() -> None:
    broker = Broker()
    emptied_consumers(broker)
    known = broker.now()
    broker.log.failing = True
    joined: list[JoinResult] = []
    request = JoinRequest("g", "", None, "c", "/h", 60_000, 10_000, "consumer", [("range", b"")])
    broker.groups.classic.join(request, joined.append)
    broker.world.run(GIVEN_UP_MS)
    assert [result.error.name for result in joined] == ["UNKNOWN_MEMBER_ID"], "it joins again"
    assert broker.now() == known


def test_a_member_is_answered_once_what_it_was_told_is_durable() -> None:
    """Its heartbeat changes nothing, but its response may depend on undurable state."""
    broker = Broker()
    consumers(broker)
    group: Any = broker.groups.registry.get("g")
    broker.log.holding = True
    answers: list[Any] = []
    beat = Heartbeat("g", "m1", group.members["m1"].epoch)
    broker.groups.consumer.heartbeat(Heartbeat("g", "m2", -1), lambda answer: None)
    for _ in range(2):
        broker.groups.consumer.heartbeat(beat, answers.append)
        broker.world.run()
    assert answers == []
    broker.log.release()
    broker.world.run()
    assert [type(answer) for answer in answers] == [HeartbeatAnswer, HeartbeatAnswer]


def test_other_groups_of_the_partition_go_on() -> None:
    broker = Broker()
    consumers(broker)
    broker.log.failing = True
    commits = {P0: CommittedOffset(5)}
    lost = broker.result(broker.groups.commits.commit, CommitRequest("other", "", None, -1, 9, commits))
    broker.log.failing = False
    assert lost == FAILED
    assert broker.groups.registry.get("other") is None
    group: Any = broker.groups.registry.get("g")
    assert broker.consumer("m1", group.members["m1"].epoch) != FAILED
    broker.world.run(29_000)
    assert len(group.members) == 2, "their sessions have begun anew"
    broker.world.run(17_000)
    assert len(group.members) == 0


def test_a_commit_beside_a_deletion_is_not_lost() -> None:
    broker = Broker()
    broker.commit()
    broker.log.holding = True
    ended: list[KafkaError | None] = []
    broker.groups.delete("g", ended.append)
    commits = {P0: CommittedOffset(9)}
    broker.groups.commits.commit(CommitRequest("g", "", None, -1, 9, commits), ended.append)
    broker.world.run()
    broker.log.release()
    assert ended == [None, None]
    for _ in range(2):
        assert {at: each.offset for at, each in broker.groups.commits.fetch("g", None, -1).items()} == {P0: 9}
        broker.restart()


def test_a_commit_on_its_way_is_deleted_with_its_group() -> None:
    broker = Broker()
    broker.log.holding = True
    ended: list[KafkaError | None] = []
    commits = {P0: CommittedOffset(9)}
    broker.groups.commits.commit(CommitRequest("g", "", None, -1, 9, commits), ended.append)
    broker.groups.delete("g", ended.append)
    broker.world.run()
    broker.log.release()
    broker.world.run()
    assert ended == [None, None]
    for _ in range(2):
        assert broker.now() == (None, {})
        broker.restart()
