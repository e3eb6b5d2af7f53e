"""Memory for objects that clients create in coordinators is bounded: groups, members, offsets,
transactional IDs.
"""

from __future__ import annotations

from uuid import UUID

import pytest
from tests.unit.coordinator.consumer_cluster import Cluster as ConsumerCluster
from tests.unit.coordinator.consumer_cluster import Member, refusal
from tests.unit.coordinator.test_share_groups import Bench, refused
from tests.unit.coordinator.test_transactions import P0, P1
from tests.unit.coordinator.test_transactions import Cluster as Transactions

from sharecore.coordinator.memory_limit import MemoryLimit
from sharecore.coordinator.offset_records import TopicPartition
from sharecore.errors import ErrorCode, KafkaError


class Shelf:
    """Objects of some bytes each, in a bounded room."""

    def __init__(self, bytes_max: int, *, grows: bool = False) -> None:
        self.sizes: list[int] = []
        self.counted = 0
        self.now_ms = 0
        self.room = MemoryLimit(
            "some.bytes.max",
            bytes_max,
            self._count,
            ErrorCode.POLICY_VIOLATION,
            lambda: self.now_ms,
            grows=grows,
        )

    def _count(self) -> int:
        self.counted += 1
        return sum(self.sizes)

    def put(self, size: int) -> None:
        self.room.take(size)
        self.sizes.append(size)

    def is_full(self, size: int) -> bool:
        try:
            self.put(size)
        except KafkaError as error:
            return error.code is ErrorCode.POLICY_VIOLATION and "some.bytes.max" in error.message
        return False


def test_no_more_is_taken_than_there_is_room_for() -> None:
    shelf = Shelf(100)
    shelf.put(60)
    assert shelf.is_full(41)
    shelf.put(40)
    assert shelf.is_full(1)


def test_what_existed_before_counts() -> None:
    shelf = Shelf(100)
    shelf.sizes = [90]
    assert shelf.is_full(11)
    shelf.put(10)


def test_what_was_given_back_may_be_taken_again() -> None:
    shelf = Shelf(100)
    shelf.put(100)
    shelf.sizes.clear()
    shelf.put(100)


def test_a_full_room_is_counted_once_a_second() -> None:
    shelf = Shelf(100)
    shelf.put(100)
    counted = shelf.counted
    for _ in range(50):
        assert shelf.is_full(1)
    assert shelf.counted == counted + 1
    shelf.sizes.clear()
    shelf.now_ms += 1000
    shelf.put(100)


def test_growth_that_nobody_asked_for_shows_after_some_time() -> None:
    shelf = Shelf(10_000, grows=True)
    shelf.put(1)
    shelf.sizes = [10_000]
    assert any(shelf.is_full(1) for _ in range(2000))


def test_the_members_of_all_consumer_groups_are_bounded() -> None:
    """sharecore.groups.bytes.max"""
    cluster = ConsumerCluster()
    cluster.groups_bytes_max = 9_000
    cluster.restart()
    first, second = Member(cluster, "m1"), Member(cluster, "m2")
    first.join("t")
    second.join("t")
    assert refusal(Member(cluster, "m3").join, "t") is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert refusal(second.beat, subscribed_names=["y" * 5000]) is ErrorCode.GROUP_MAX_SIZE_REACHED
    second.leave()
    Member(cluster, "m3").join("t")
    cluster.restart()
    assert refusal(Member(cluster, "m4").join, "t") is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_the_partitions_that_a_new_group_is_assigned_count() -> None:
    cluster = ConsumerCluster()
    cluster.topics.put("wide", UUID(int=9), 1000)
    cluster.groups_bytes_max = 100_000
    cluster.restart()
    assert refusal(Member(cluster, "m1").join, "wide") is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert cluster.registry.get("g") is None


def test_all_groups_with_their_members_and_partitions_are_bounded() -> None:
    """sharecore.groups.bytes.max"""
    bench = Bench(groups_bytes_max=10_000)
    bench.say("a", topics=["t"])
    bench.say("b", topics=["t"])
    with refused(ErrorCode.GROUP_MAX_SIZE_REACHED):
        bench.say("c", topics=["t"])
    with refused(ErrorCode.GROUP_MAX_SIZE_REACHED):
        bench.say("b", topics=["y" * 5000])
    bench.say("b", -1)
    bench.say("c", topics=["t"])
    bench.restart()
    with refused(ErrorCode.GROUP_MAX_SIZE_REACHED):
        bench.say("d", topics=["t"])


def test_transactional_ids_and_the_partitions_of_transactions_are_bounded() -> None:
    """sharecore.transactional.ids.bytes.max"""
    cluster = Transactions(bytes_max=2000)
    producer = cluster.begin()
    with pytest.raises(KafkaError) as too_many:
        cluster.transactions.initialize("tx2", 10_000, None, lambda answer: None)
    assert too_many.value.code is ErrorCode.POLICY_VIOLATION
    assert [each.transactional_id for each in cluster.transactions.all()] == ["tx"]
    cluster.write(producer, P0, P1)
    with pytest.raises(KafkaError) as too_many:
        cluster.write(producer, *(TopicPartition("t", index) for index in range(10)))
    assert too_many.value.code is ErrorCode.POLICY_VIOLATION
    cluster.end(producer)
