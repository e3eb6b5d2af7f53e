"""Who may commit and delete offsets, and when they expire."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.coordinator_log.world import MemoryLog, World, record_log

from sharecore.coordinator.classic import ClassicCoordinator, ClassicLimits
from sharecore.coordinator.commits import CommitRequest, OffsetCommits
from sharecore.coordinator.offset_records import CommittedOffset, TopicPartition
from sharecore.coordinator.offsets import Offsets
from sharecore.coordinator.registry import GroupRegistry, GroupType
from sharecore.coordinator_log.topic_log import Producer
from sharecore.errors import ErrorCode, KafkaError

P0 = TopicPartition("t", 0)


class ShareLike:
    type = GroupType.SHARE
    protocol_type = "share"
    state_name = "Empty"
    is_empty = True
    memory_bytes = 0

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id


class Service:
    def __init__(
        self,
        log: MemoryLog | None = None,
        *,
        groups_bytes_max: int = 1 << 20,
        offsets_bytes_max: int = 1 << 20,
    ) -> None:
        self.world = World()
        self.log = log or MemoryLog()
        self.registry = GroupRegistry(groups_bytes_max)
        records = record_log(self.world, [self.log])
        classic = ClassicCoordinator(self.registry, records, ClassicLimits())
        self.offsets = Offsets(records, offsets_bytes_max)
        self.commits = OffsetCommits(
            self.registry, records, self.offsets, classic, self.world, retention_ms=1000
        )
        records.load()
        classic.start()
        self.commits.start()

    def commit(
        self, group_id: str = "g", generation: int = -1, api_version: int = 9
    ) -> list[KafkaError | None]:
        ended: list[KafkaError | None] = []
        commits = {P0: CommittedOffset(5, commit_ms=self.world.now_ms())}
        self.commits.commit(CommitRequest(group_id, "", None, generation, api_version, commits), ended.append)
        self.world.run()
        return ended


def refusal(service: Service, **fields: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        service.commit(**fields)
    return refused.value.code


def test_a_consumer_without_a_group_makes_one_that_keeps_its_offsets() -> None:
    service = Service()
    assert service.commit() == [None]
    assert service.commits.fetch("g", None, -1)[P0].offset == 5
    again = Service(service.log)
    group = again.registry.get("g")
    assert group is not None
    assert (group.type, group.state_name, group.protocol_type) == (GroupType.CLASSIC, "Empty", "")


@pytest.mark.parametrize("committed", [False, True, None])
def test_a_group_that_only_a_transaction_has_offsets_for_is_there_after_a_restart(
    committed: bool | None,
) -> None:
    """Whatever the outcome of the transaction: the group was created by the commit."""
    service = Service()
    commits = {P0: CommittedOffset(5, commit_ms=service.world.now_ms())}
    service.commits.commit(
        CommitRequest("g", "", None, -1, 4, commits, producer=Producer(7, 0)), lambda error: None
    )
    service.world.run()
    if committed is not None:
        service.log.append_marker(7, commit=committed)
    again = Service(service.log)
    assert again.registry.get("g") is not None
    assert again.commits.fetch("g", None, -1).keys() == ({P0} if committed else set())
    assert [group.group_id for group in again.commits.expire()] == (["g"] if committed is False else [])


def test_a_group_whose_offsets_were_deleted_is_there_after_a_restart() -> None:
    service = Service()
    service.commit()
    service.commits.delete("g", [P0], lambda error: None)
    service.world.run()
    assert Service(service.log).registry.get("g") is not None


@pytest.mark.parametrize("kind", [2, 3, 11])
def test_a_group_of_any_type_that_was_deleted_is_not_there_after_a_restart(kind: int) -> None:
    service = Service()
    service.commit()
    service.commits.delete("g", [P0], lambda error: None)
    service.world.run()
    service.log.append_local([(bytes([0, kind, 0, 1]) + b"g", None)], now_ms=1)
    assert Service(service.log).registry.get("g") is None


def test_a_member_of_a_group_that_is_gone_is_told_so_in_its_versions_words() -> None:
    assert refusal(Service(), generation=3) is ErrorCode.GROUP_ID_NOT_FOUND
    assert refusal(Service(), generation=3, api_version=8) is ErrorCode.ILLEGAL_GENERATION


def test_share_groups_have_no_committed_offsets() -> None:
    service = Service()
    service.registry.add(ShareLike("s"))
    assert refusal(service, group_id="s") is ErrorCode.GROUP_ID_NOT_FOUND
    assert service.commits.fetch("s", None, -1) == {}


def test_offsets_are_deleted_and_forgotten() -> None:
    service = Service()
    service.commit()
    service.commit("other")
    ended: list[KafkaError | None] = []
    wanted = [P0, TopicPartition("t", 9)]
    assert service.commits.in_use("g", wanted) == set()
    service.commits.delete("g", wanted, ended.append)
    service.world.run()
    assert ended == [None]
    assert service.commits.fetch("g", None, -1) == {}
    assert [group.group_id for group in service.commits.expire()] == ["g"]
    service.world.run(1000)
    service.commits.expire()
    service.world.run()
    assert {group.group_id for group in service.commits.expire()} == {"g", "other"}


def test_offsets_go_with_their_topic() -> None:
    service = Service()
    service.commit()
    service.commits.topic_deleted("t")
    service.world.run()
    assert service.commits.fetch("g", None, -1) == {}


def test_the_groups_of_commits_are_bounded() -> None:
    """sharecore.groups.bytes.max"""
    service = Service(groups_bytes_max=4000)
    assert service.commit("a") == [None]
    assert service.commit("b") == [None]
    assert refusal(service, group_id="c") is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert service.registry.get("c") is None
    assert service.commit("b") == [None]
    group = service.registry.get("a")
    assert group is not None
    service.registry.remove(group)
    assert service.commit("c") == [None]


def test_offsets_are_bounded_and_a_refused_commit_leaves_no_group() -> None:
    """sharecore.group.offsets.bytes.max"""
    service = Service(offsets_bytes_max=1000)
    assert service.commit("a") == [None]
    assert service.commit("b") == [None]
    assert refusal(service, group_id="c") is ErrorCode.POLICY_VIOLATION
    assert service.registry.get("c") is None
    assert service.commit("a") == [None]
    service.commits.delete("a", [P0], lambda error: None)
    service.world.run(1000)
    assert service.commit("c") == [None]
    restarted = Service(service.log, offsets_bytes_max=1000)
    assert refusal(restarted, group_id="d") is ErrorCode.POLICY_VIOLATION
