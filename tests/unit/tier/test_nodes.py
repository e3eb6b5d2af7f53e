"""One node of a tier has all slots, as long as it is there; then another has them under a higher epoch."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from tests.unit.coordinator_log.world import World
from tests.unit.tier.partition import TOPIC, Partition, Writer

from sharecore.broker.cluster import NOBODY, Node
from sharecore.errors import ErrorCode, KafkaError
from sharecore.tier.leadership import Leadership, Slot
from sharecore.tier.lease import Lease
from sharecore.tier.nodes import Nodes
from sharecore.tier.slot_log import SlotLog
from sharecore.upstream import GroupMember


class Member:
    """A node, and what its clients are told."""

    def __init__(self, node_id: int, partitions: list[Partition]) -> None:
        self.done: list[str] = []
        self.told: list[tuple[int, int]] = []
        slots = [
            Slot(
                SlotLog(TOPIC, index, node_id, each, Writer(each), World(), lambda log, error: None), World()
            )
            for index, each in enumerate(partitions)
        ]
        self.leadership = Leadership(slots, Lease(lambda: 0, lambda: 0))
        self.leadership.begin(self)
        self.nodes = Nodes(
            node_id,
            lambda: {"PLAINTEXT": (f"host-{node_id}", 9092)},
            None,
            self.leadership,
            lambda *told: self.told.append(told),
        )

    def take_over(self, slot: int) -> None:
        self.done.append("take")

    def resign(self, slot: int) -> None:
        self.done.append("resign")


async def rebalance(generation: int, *members: Member) -> dict[str, Any]:
    """The first of them leads the group."""
    known = [GroupMember(str(id(each)), None, each.nodes.metadata()) for each in members]
    given = members[0].nodes.assign(generation, known)
    assert len(set(given.values())) == 1, "all are told the same"
    for each in members:
        each.nodes.assigned(generation, given[str(id(each))])
        await each.leadership.settled()
    told: dict[str, Any] = json.loads(next(iter(given.values())))
    return told


def test_who_has_the_slots_keeps_them_and_epochs_grow_with_each_owner() -> None:
    async def test() -> None:
        partitions = [Partition(), Partition()]
        one, two = Member(1, partitions), Member(2, partitions)
        first = await rebalance(1, two)
        assert first["owner"] == 2
        second = await rebalance(2, one, two)
        assert (second["owner"], second["epoch"]) == (2, first["epoch"])
        assert (one.done, two.done) == ([], ["take", "take"])
        assert one.nodes.live("PLAINTEXT") == {
            1: Node(1, "host-1", 9092, None),
            2: Node(2, "host-2", 9092, None),
        }
        third = await rebalance(3, one)
        assert third["owner"] == 1
        assert third["epoch"] > second["epoch"]
        assert one.done == ["take", "take"]
        assert [each[0] for each in one.told] == [2, 1]
        # the group was deleted upstream: its generations begin anew, epochs do not
        fourth = await rebalance(1, one)
        assert fourth["epoch"] >= third["epoch"]

    asyncio.run(test())


def test_who_is_no_member_any_more_has_nothing() -> None:
    async def test() -> None:
        one = Member(1, [Partition()])
        await rebalance(1, one)
        one.nodes.lost(KafkaError(ErrorCode.UNKNOWN_MEMBER_ID))
        assert one.done == ["take", "resign"]
        assert one.told[-1][0] == NOBODY
        assert list(one.nodes.live("PLAINTEXT")) == [1]

    asyncio.run(test())
