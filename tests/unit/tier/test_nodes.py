"""Nodes share the slots: each is released before another node owns it, and epochs never decrease."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from uuid import uuid4

import pytest
from tests.unit.coordinator_log.world import World
from tests.unit.tier.partition import TOPIC, Following, Partition, Writer

from sharecore.broker.cluster import NOBODY, Node
from sharecore.errors import ErrorCode, KafkaError
from sharecore.tier.membership import nodes as nodes_module
from sharecore.tier.membership.nodes import Nodes
from sharecore.tier.membership.view import TierView
from sharecore.tier.slots import leadership as module
from sharecore.tier.slots import slot_of_group, slot_of_partition
from sharecore.tier.slots.claim_watcher import ClaimWatcher
from sharecore.tier.slots.leadership import Leadership, Slot
from sharecore.tier.slots.lease import Lease
from sharecore.tier.slots.log import SlotLog
from sharecore.tier.slots.ownership import Assignment, Ownership, unpack_assignments
from sharecore.upstream import GroupMember

SLOTS = 6


class Member:
    """A node with its slot handling, and a record of it.

    Attributes:
        settling: once set, nothing is acquired any more; set initially.
    """

    def __init__(self, group: Group, node_id: int) -> None:
        self.node_id, self.group = node_id, group
        self.done: list[tuple[str, int]] = []
        self.heard_ms = 0
        self.settling = asyncio.Event()
        self.settling.set()
        slots = [
            Slot(
                SlotLog(TOPIC, index, node_id, each, Writer(each), World(), self._lost),
                World(),
            )
            for index, each in enumerate(group.partitions)
        ]
        self.leadership = Leadership(
            slots, Lease(lambda: self.heard_ms, lambda: 0), node_id, lambda: Following(group.partitions)
        )
        self.nodes = Nodes(
            node_id,
            lambda: {"PLAINTEXT": (f"host-{node_id}", 9092)},
            None,
            self.leadership,
            World(),
            rejoin=lambda: group.wanted.add(node_id),
            watch=lambda slots: claim_watcher.watch(slots),
            pins=lambda: group.pins,
        )
        claim_watcher = ClaimWatcher(
            [slot.log for slot in slots], lambda: Following(group.partitions), self.nodes.seen
        )
        self.view = TierView(node_id, self.nodes, self.leadership, partial(slot_of_partition, slots=SLOTS))
        self.leadership.begin(self, self.nodes.changed)

    def _lost(self, log: SlotLog, error: KafkaError) -> None:
        self.leadership.lost(log, error)

    async def look(self) -> None:
        await asyncio.sleep(0)

    def take_over(self, slot: int, *, was_released: bool) -> None:
        self.done.append(("take", slot))

    def resign(self, slot: int) -> None:
        self.done.append(("resign", slot))

    async def rest(self, slot: int) -> None:
        self.done.append(("rest", slot))
        await self.settling.wait()

    def resume(self, slot: int) -> None:
        self.done.append(("resume", slot))

    @property
    def owned(self) -> list[int]:
        return [slot for slot in range(SLOTS) if self.leadership.owns(slot)]


class Group:
    """The group upstream, with its members by node ID."""

    def __init__(self) -> None:
        self.partitions = [Partition() for _ in range(SLOTS)]
        self.members: dict[int, Member] = {}
        self.wanted: set[int] = set()
        self.pins: dict[int, int] = {}
        self._generations = itertools.count(1)
        self._ids = itertools.count(1)
        self.told: dict[int, bytes] = {}
        self.assignments: list[Assignment] = []

    def join(self) -> Member:
        member = Member(self, next(self._ids))
        self.members[member.node_id] = member
        return member

    def rebalance(self) -> None:
        """Let all members join, and assign slots; nothing else happens meanwhile."""
        self.wanted.clear()
        known = [
            GroupMember(str(node_id), None, member.nodes.metadata())
            for node_id, member in self.members.items()
        ]
        generation, leader = next(self._generations), next(iter(self.members.values()))
        given = leader.nodes.assign(generation, known)
        self.assignments = unpack_assignments(json.loads(given[str(leader.node_id)]))
        self.told = {int(member_id): assignment for member_id, assignment in given.items()}
        for node_id, member in list(self.members.items()):
            member.nodes.assigned(generation, given[str(node_id)])

    async def settle(self) -> None:
        """Run until nobody has anything to report."""
        self.rebalance()
        quiet = 0
        while quiet < 6:
            await asyncio.sleep(0.005)
            quiet += 1
            if self.wanted:
                self.rebalance()
                quiet = 0
            elif any(each.leadership.parts(slot) for each in self.members.values() for slot in range(SLOTS)):
                quiet = 0
        owned = Counter(slot for member in self.members.values() for slot in member.owned)
        assert max(owned.values(), default=0) <= 1, "one owner a slot"


def run(test: Callable[[Group], Awaitable[None]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_RETRY_S", 0.01)
    monkeypatch.setattr(nodes_module, "_GATHER_MS", 5)
    monkeypatch.setattr(nodes_module, "_PAUSE_MS", 0)

    async def main() -> None:
        await asyncio.wait_for(test(Group()), 20)

    asyncio.run(main())


def test_who_joins_takes_its_share_and_the_rest_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(group: Group) -> None:
        one = group.join()
        await group.settle()
        assert one.owned == [0, 1, 2, 3, 4, 5]
        before = [one.view.owner(slot).epoch for slot in range(SLOTS)]
        two = group.join()
        await group.settle()
        assert (one.owned, two.owned) == ([1, 3, 5], [0, 2, 4])
        assert [each for each in one.done if each[0] == "resign"] == [("resign", slot) for slot in (0, 2, 4)]
        for slot in range(SLOTS):
            assert one.view.owner(slot) == two.view.owner(slot)
            assert one.view.owner(slot).node_id == (2 if slot in two.owned else 1)
            assert one.view.owner(slot).epoch == before[slot] + (slot in two.owned)
        assert one.nodes.live("PLAINTEXT") == {
            1: Node(1, "host-1", 9092, None),
            2: Node(2, "host-2", 9092, None),
        }

    run(test, monkeypatch)


def test_who_has_not_heard_of_the_cluster_for_long_sends_clients_to_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(group: Group) -> None:
        one = group.join()
        await group.settle()
        one.heard_ms = -8_000
        assert [each.node_id for each in one.view.nodes("PLAINTEXT")] == [1], "there is nobody else"
        assert {one.view.owner(slot).node_id for slot in range(SLOTS)} == {NOBODY}
        one.heard_ms = 0
        group.join()
        await group.settle()
        epochs = [one.view.owner(slot).epoch for slot in range(SLOTS)]
        one.heard_ms = -8_000
        assert [each.node_id for each in one.view.nodes("PLAINTEXT")] == [2]
        assert one.view.controller() == 2
        assert [one.view.owner(slot) for slot in range(SLOTS)] == [
            (NOBODY if slot in one.owned else 2, epochs[slot]) for slot in range(SLOTS)
        ]
        one.heard_ms = 0
        assert [each.node_id for each in one.view.nodes("PLAINTEXT")] == [1, 2]
        assert {one.view.owner(slot).node_id for slot in one.owned} == {1}

    run(test, monkeypatch)


def test_a_slot_moves_only_when_nothing_of_it_is_leased(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(group: Group) -> None:
        one = group.join()
        await group.settle()
        one.settling.clear()
        two = group.join()
        await group.settle()
        assert (one.owned, two.owned) == ([0, 1, 2, 3, 4, 5], [])
        assert {two.view.owner(slot).node_id for slot in range(SLOTS)} == {1}
        one.settling.set()
        # the successor learns it from the partition itself, before the next rebalance
        while len(two.owned) < 3:  # noqa: ASYNC110 - there is nothing to wait for
            await asyncio.sleep(0)
        assert two.view.owner(0) == (2, 1)
        assert one.view.owner(0) == (2, 1)
        await group.settle()
        assert (one.owned, two.owned) == ([1, 3, 5], [0, 2, 4])

    run(test, monkeypatch)


def test_who_neither_gives_a_slot_up_nor_takes_it_sees_who_has_it_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before the next rebalance: otherwise it would send clients to the former owner until then."""

    async def test(group: Group) -> None:
        one, two = group.join(), group.join()
        await group.settle()
        for each in (one, two):
            each.settling.clear()
        three = group.join()
        await group.settle()
        moving = [slot for slot in range(SLOTS) if group.assignments[slot].next_id == three.node_id]
        assert len(moving) == 2
        topic_id = uuid4()
        places = {slot_of_partition(topic_id, index, SLOTS): index for index in range(SLOTS)}
        for each in (one, two):
            each.settling.set()
        former = one if moving[0] in one.owned else two
        while not former.leadership.parts(moving[0]):  # noqa: ASYNC110 - there is nothing to wait for
            await asyncio.sleep(0)
        assert former.view.leader(topic_id, places[moving[0]]).node_id == former.node_id, "not yet claimed"
        assert former.view.keeper(topic_id, places[moving[0]]).node_id == three.node_id
        while len(three.owned) < 2:  # noqa: ASYNC110 - there is nothing to wait for
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        for each in (one, two):
            leaders = [each.view.leader(topic_id, places[slot]).node_id for slot in moving]
            assert leaders == [three.node_id] * 2
        epochs = [three.view.owner(slot).epoch for slot in moving]
        assert [one.view.owner(slot).epoch for slot in moving] == epochs
        await group.settle()
        assert not any(partition.followers for partition in group.partitions), "nothing moves any more"

    run(test, monkeypatch)


def test_who_was_to_get_slots_and_dies_leaves_them_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(group: Group) -> None:
        one = group.join()
        await group.settle()
        one.settling.clear()
        two = group.join()
        await group.settle()
        del group.members[two.node_id]
        await group.settle()
        assert one.owned == list(range(SLOTS))
        assert [each for each in one.done if each[0] == "resume"] == [("resume", slot) for slot in (0, 2, 4)]
        assert [each for each in one.done if each[0] == "resign"] == []

    run(test, monkeypatch)


def test_only_the_slots_of_a_dead_node_move(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(group: Group) -> None:
        one, two, three = group.join(), group.join(), group.join()
        await group.settle()
        kept = one.owned, three.owned
        del group.members[two.node_id]
        done = len(one.done), len(three.done)
        await group.settle()
        assert set(one.owned) > set(kept[0])
        assert set(three.owned) > set(kept[1])
        assert {kind for kind, _ in one.done[done[0] :] + three.done[done[1] :]} == {"take"}
        # it resumes without any news: its writes are void, and get errors
        with pytest.raises(KafkaError):
            await (
                two.leadership.slots[two.owned[0]].state.append_local([(b"\0\0k", b"late")], now_ms=1).ticket
            )
        two.nodes.lost(KafkaError(ErrorCode.UNKNOWN_MEMBER_ID))
        assert two.owned == []
        group.members[two.node_id] = two
        await group.settle()
        assert [len(each.owned) for each in (one, two, three)] == [2, 2, 2]

    run(test, monkeypatch)


def test_who_coordinated_a_group_before_another_node_changes_no_state_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However late: a suspended node asked before it was suspended."""

    async def test(group: Group) -> None:
        one, two = group.join(), group.join()
        await group.settle()
        slot = slot_of_group("g", SLOTS)
        former, other = (one, two) if slot in one.owned else (two, one)
        term = former.view.term("g")
        other.view.check_asker("g", term)
        other.view.check_asker("g", -1)
        three = group.join()
        del group.members[former.node_id]
        await group.settle()
        for each in (other, three):
            each.view.check_asker("g", term + 1)
            with pytest.raises(KafkaError) as refused:
                each.view.check_asker("g", term)
            assert refused.value.code is ErrorCode.NOT_COORDINATOR
        # a node asked by a coordinator unknown to it knows that there is one
        other.view.check_asker("g", term + 5)
        with pytest.raises(KafkaError):
            other.view.check_asker("g", term + 4)

    run(test, monkeypatch)


def test_who_leaves_hands_all_over(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(group: Group) -> None:
        one, two = group.join(), group.join()
        await group.settle()
        leaving = asyncio.create_task(two.nodes.leave())
        await asyncio.sleep(0)
        await group.settle()
        await leaving
        await two.leadership.left()
        assert (one.owned, two.owned) == (list(range(SLOTS)), [])
        assert one.view.owner(0).node_id == 1

    run(test, monkeypatch)


def test_a_drained_node_stays_without_slots_until_that_is_taken_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(group: Group) -> None:
        one, two = group.join(), group.join()
        await group.settle()
        two.nodes.drain(True)
        await group.settle()
        assert (one.owned, two.owned) == (list(range(SLOTS)), [])
        assert len(one.nodes.live("PLAINTEXT")) == 2
        two.nodes.drain(False)
        await group.settle()
        assert (len(one.owned), len(two.owned)) == (3, 3)

    run(test, monkeypatch)


def test_what_was_settled_before_a_hand_over_does_not_undo_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The old owner joined before it released a slot, and is told afterwards that it still owns it."""

    async def test(group: Group) -> None:
        one = group.join()
        await group.settle()
        one.settling.clear()
        two = group.join()
        await group.settle()
        group.rebalance()
        late = group.told
        one.settling.set()
        while len(two.owned) < 3:  # noqa: ASYNC110 - there is nothing to wait for
            await asyncio.sleep(0)
        group.wanted.clear()
        one.nodes.assigned(9, late[1])
        two.nodes.assigned(9, late[2])
        await asyncio.sleep(0.05)
        assert (one.owned, two.owned) == ([1, 3, 5], [0, 2, 4])
        assert group.wanted == {1, 2}, "both say that they know better"

    run(test, monkeypatch)


def test_a_node_that_was_started_again_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """The group sends it the assignment of its previous run, without notifying the others."""

    async def test(group: Group) -> None:
        one, two = group.join(), group.join()
        await group.settle()
        again = Member(group, two.node_id)
        again.nodes.metadata()
        again.nodes.assigned(9, group.told[2])
        await again.leadership.settled()
        assert again.owned == two.owned
        await asyncio.sleep(0.05)
        assert group.wanted == {2}
        group.members[2] = again
        await group.settle()
        assert (len(one.owned), len(again.owned)) == (3, 3)

    run(test, monkeypatch)


def test_an_old_assignment_takes_nothing_from_who_has_it_now(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(group: Group) -> None:
        one = group.join()
        await group.settle()
        old = group.told[1]
        two = group.join()
        await group.settle()
        again = Member(group, 1)
        again.nodes.metadata()
        again.nodes.assigned(9, old)
        await again.leadership.settled()
        assert (again.owned, two.owned) == ([1, 3, 5], [0, 2, 4])
        assert again.view.owner(0) == (NOBODY, two.view.owner(0).epoch), (
            "it has not heard of the other one yet"
        )
        assert one.owned == again.owned, "which its earlier life does not know"

    run(test, monkeypatch)


def test_nodes_that_remember_nothing_claim_above_what_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """All were stopped, and the group was deleted upstream."""

    async def test(group: Group) -> None:
        group.join()
        await group.settle()
        group.members.clear()
        two = group.join()
        await group.settle()
        assert two.owned == list(range(SLOTS))
        assert {two.view.owner(slot).epoch for slot in range(SLOTS)} == {1}
        three = group.join()
        await group.settle()
        assert three.view.owner(1) == two.view.owner(1) == (2, 1)

    run(test, monkeypatch)


def test_pins_move_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(group: Group) -> None:
        one, two = group.join(), group.join()
        await group.settle()
        group.pins = dict.fromkeys(two.owned[:2], 1)
        await group.settle()
        assert set(one.owned) >= group.pins.keys()
        assert (len(one.owned), len(two.owned)) == (3, 3)

    run(test, monkeypatch)


def test_who_finds_that_it_cannot_have_what_all_take_for_its_own_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(group: Group) -> None:
        one = group.join()
        await group.settle()
        assert not group.wanted
        one.nodes.changed(0, Ownership(2, one.nodes.ownerships[0].epoch - 1))
        await asyncio.sleep(0.05)
        assert group.wanted == {1}
        assert one.nodes.ownerships[0].node_id == 1

    run(test, monkeypatch)


def test_who_returns_gets_no_slot_that_another_is_about_to_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    """The leader may not have learned of its last claim, and give the slot away with the epoch of that."""

    async def test(group: Group) -> None:
        one, two = group.join(), group.join()
        await group.settle()
        slot = two.owned[0]
        epoch = two.nodes.ownerships[slot].epoch
        two.nodes.lost(KafkaError(ErrorCode.UNKNOWN_MEMBER_ID))
        one.nodes.ownerships[slot] = Ownership(one.node_id, epoch)
        group.rebalance()
        assert group.assignments[slot].node_id == one.node_id

    run(test, monkeypatch)


def test_who_is_no_member_any_more_has_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(group: Group) -> None:
        one, two = group.join(), group.join()
        await group.settle()
        one.nodes.lost(KafkaError(ErrorCode.UNKNOWN_MEMBER_ID))
        assert one.owned == []
        assert one.view.owner(0).node_id == NOBODY
        assert list(one.nodes.live("PLAINTEXT")) == [1, 2], "clients cannot be sent to the other"
        assert len(two.owned) == 3

    run(test, monkeypatch)
