"""Who may commit offsets to a consumer group, and which of them are in use."""

from __future__ import annotations

from uuid import UUID

from tests.unit.coordinator.consumer_cluster import A, B, Cluster, Member, refusal

from sharecore.coordinator.offset_records import CommittedOffset, TopicPartition
from sharecore.errors import ErrorCode


def test_offsets_of_a_topic_that_does_not_exist_yet_are_in_use() -> None:
    cluster = Cluster()
    Member(cluster, "m1").join("later")
    assert cluster.group.is_subscribed("later")
    assert not cluster.group.is_subscribed("a")


def test_a_commit_of_an_instance_is_not_one_from_outside() -> None:
    cluster = Cluster()
    Member(cluster, "m1", instance_id="i").join()
    commits = {TopicPartition("a", 0): CommittedOffset(1)}
    cluster.group.check_commit("", None, -1, commits, transactional=True, api_version=9)
    assert (
        refusal(cluster.group.check_commit, "", "i", -1, commits, transactional=True, api_version=9)
        is ErrorCode.UNKNOWN_MEMBER_ID
    )


def test_commits_come_from_members_of_the_epoch() -> None:
    cluster = Cluster()
    member = Member(cluster, "m1")
    member.join()

    def commit(member_id: str, epoch: int, api_version: int = 9) -> None:
        commits = {TopicPartition("nowhere", 0): CommittedOffset(1)}
        cluster.group.check_commit(
            member_id, None, epoch, commits, transactional=False, api_version=api_version
        )

    commit("m1", member.epoch)
    assert refusal(commit, "m1", member.epoch - 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert refusal(commit, "m1", member.epoch, 8) is ErrorCode.UNSUPPORTED_VERSION
    assert refusal(commit, "", -1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_late_commit_is_taken_for_what_the_member_has_had_since() -> None:
    """KIP-1251"""
    cluster = Cluster()
    member, other = Member(cluster, "m1"), Member(cluster, "m2")
    member.join()
    before = member.epoch
    cluster.topics.put("a", A, 6)
    member.beat()
    assert member.epoch == before + 1

    def commit(*partitions: int, epoch: int = before, topic_id: UUID | None = None) -> None:
        commits = {
            TopicPartition("a" if topic_id is None else "?", each): CommittedOffset(1, topic_id=topic_id)
            for each in partitions
        }
        cluster.group.check_commit("m1", None, epoch, commits, transactional=False, api_version=9)

    commit(0, 3)
    commit(0, 3, topic_id=A)
    for late in ((5,), (0, 5), (7,)):
        assert refusal(commit, *late) is ErrorCode.STALE_MEMBER_EPOCH
    assert refusal(commit, 0, topic_id=B) is ErrorCode.STALE_MEMBER_EPOCH
    assert refusal(commit, 0, epoch=before - 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert refusal(commit, 0, epoch=member.epoch + 1) is ErrorCode.STALE_MEMBER_EPOCH
    member.beat()
    other.join()
    member.beat()
    (_, lost), *_ = cluster.group.members["m1"].revoking
    commit(lost, epoch=member.epoch)
    (kept, *_) = [
        each for (_, each), epoch in cluster.group.members["m1"].assigned.items() if epoch == before
    ]
    cluster.restart()
    commit(kept)
