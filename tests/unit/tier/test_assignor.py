"""Slots are distributed evenly, stay in place if possible, and are released before they are reassigned."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from sharecore.broker.cluster import NOBODY
from sharecore.tier.membership.assignor import assign
from sharecore.tier.slots.ownership import (
    UNKNOWN,
    Assignment,
    Ownership,
    Report,
    pack_assignments,
    unpack_assignments,
)

SLOTS = 8


def report(
    node_id: int,
    ownerships: Sequence[Ownership] | None = None,
    awaits: Collection[int] = (),
    *,
    leaving: bool = False,
) -> Report:
    return Report(node_id, ownerships or [UNKNOWN] * SLOTS, awaits, leaving)


def ownerships_of(assignments: Sequence[Assignment]) -> list[Ownership]:
    return [Ownership(assignment.node_id, assignment.epoch) for assignment in assignments]


def settle(
    nodes: Sequence[int], assignments: Sequence[Assignment] = (), pins: Mapping[int, int] | None = None
) -> list[Assignment]:
    """Return the final assignment, after every node has released its slots."""
    ownerships = ownerships_of(assignments) or [UNKNOWN] * SLOTS
    for _ in range(3):
        assignments = assign([report(node, ownerships) for node in nodes], SLOTS, pins or {})
        ownerships = [
            Ownership(assignment.node_id, assignment.epoch)
            if assignment.next_id == NOBODY
            else Ownership(assignment.next_id, assignment.epoch + 1)
            for assignment in assignments
        ]
    assert all(assignment.next_id == NOBODY for assignment in assignments)
    return list(assignments)


def counts(assignments: Sequence[Assignment]) -> list[int]:
    return sorted(Counter(assignment.node_id for assignment in assignments).values())


def test_of_one_epoch_an_owner_is_known_before_nobody() -> None:
    nobody, two = [Ownership(NOBODY, 4)] * SLOTS, [Ownership(2, 4)] * SLOTS
    for reports in ([report(1, nobody), report(2, two)], [report(2, two), report(1, nobody)]):
        assert {each.node_id for each in assign(reports, SLOTS, {})} == {2}
    # the former owner has given them up, and a third node has not learned of anything else
    for reports in ([report(2, nobody), report(1, two)], [report(1, two), report(2, nobody)]):
        assert {each.node_id for each in assign(reports, SLOTS, {})} == {2}


def test_slots_that_nobody_has_are_shared_in_turn() -> None:
    assignments = assign([report(1), report(2), report(3)], SLOTS, {})
    assert [assignment.node_id for assignment in assignments] == [1, 2, 3, 1, 2, 3, 1, 2]
    assert {assignment.epoch for assignment in assignments} == {0}


def test_who_joins_gets_slots_only_once_they_are_given_up() -> None:
    before = settle([1])
    assignments = assign([report(1, ownerships_of(before)), report(2)], SLOTS, {})
    assert [(assignment.node_id, assignment.epoch) for assignment in assignments] == [(1, 0)] * SLOTS
    # the partitions of a topic are in consecutive slots: each node gets some of them
    assert [slot for slot, assignment in enumerate(assignments) if assignment.next_id == 2] == [0, 2, 4, 6]
    assert counts(settle([1, 2], before)) == [4, 4]


def test_what_is_under_way_stays_as_it_was_told() -> None:
    before = settle([1])
    first = assign([report(1, ownerships_of(before)), report(2)], SLOTS, {})
    going = {slot for slot, assignment in enumerate(first) if assignment.next_id == 2}
    # a third one joins; slot 0 has been released meanwhile, as only its old owner has reported
    told = ownerships_of(first)
    told[0] = Ownership(2, 1)
    second = assign([report(1, told), report(2, ownerships_of(first), going), report(3)], SLOTS, {})
    assert second[0][:2] == (2, 1)
    assert {slot for slot, assignment in enumerate(second) if assignment.next_id == 2} == going - {0}


def test_the_slots_of_a_node_that_is_gone_are_given_at_once_and_nothing_else_moves() -> None:
    before = settle([1, 2, 3])
    assignments = assign([report(node, ownerships_of(before)) for node in (1, 3)], SLOTS, {})
    for was, assignment in zip(before, assignments, strict=True):
        if was.node_id == 2:
            assert assignment.node_id in (1, 3)
            assert assignment.epoch == was.epoch + 1
            assert assignment.next_id == NOBODY
        else:
            assert assignment == was
    assert counts(assignments) == [4, 4]


def test_who_awaits_a_slot_may_have_it_when_its_owner_is_gone() -> None:
    before = settle([1])
    first = assign([report(1, ownerships_of(before)), report(2)], SLOTS, {})
    going = {slot for slot, assignment in enumerate(first) if assignment.next_id == 2}
    assignments = assign([report(2, ownerships_of(first), going), report(3)], SLOTS, {})
    assert {slot for slot, assignment in enumerate(assignments) if assignment.node_id == 2} >= going
    assert all(assignment.epoch > 0 for assignment in assignments)


def test_who_leaves_gets_nothing_and_gives_all_up() -> None:
    before = settle([1, 2])
    assignments = assign([report(1, ownerships_of(before)), report(2, leaving=True)], SLOTS, {})
    assert all(assignment.node_id == 1 or assignment.next_id == 1 for assignment in assignments)
    alone = assign([report(2, ownerships_of(settle([2])), leaving=True)], SLOTS, {})
    assert alone == settle([2]), "there is nobody to take them"
    assert {assignment.node_id for assignment in assign([report(1, leaving=True)], SLOTS, {})} == {NOBODY}


def test_pins_hold_as_long_as_their_node_is_there() -> None:
    assignments = settle([1, 2], pins={0: 2, 1: 2, 2: 2, 3: 2, 4: 2})
    assert [assignment.node_id for assignment in assignments[:5]] == [2] * 5
    assert [assignment.node_id for assignment in assignments[5:]] == [1] * 3
    assert counts(settle([1, 3], assignments, pins={0: 2})) == [4, 4]


def test_the_highest_epoch_counts_and_among_equals_the_owners_word() -> None:
    stale = [Ownership(1, 5)] * SLOTS
    moved = [Ownership(2, 6)] * SLOTS
    assert {assignment.node_id for assignment in assign([report(1, stale), report(2, moved)], SLOTS, {})} == {
        2
    }
    rumour = [Ownership(3, 6)] * SLOTS
    for reports in ([report(1, rumour), report(2, moved)], [report(2, moved), report(1, rumour)]):
        assert {assignment.node_id for assignment in assign([*reports, report(3)], SLOTS, {})} == {2}


def test_seats_are_read_as_they_were_sent() -> None:
    assignments = [Assignment(1, 5), Assignment(NOBODY, -1), Assignment(2, 7, 3)]
    assert unpack_assignments(pack_assignments(assignments)) == assignments
    sent = report(4, [Ownership(1, 2)] * SLOTS, {3, 1}, leaving=True)
    assert Report.unpack(sent.pack()) == sent._replace(awaits=frozenset({1, 3}))


def test_any_coming_and_going_ends_evenly_and_never_gives_away_what_somebody_may_have() -> None:
    chance = random.Random(7)
    assignments: list[Assignment] = settle([1])
    nodes = {1}
    for _ in range(300):
        nodes ^= {chance.randint(1, 5)}
        nodes = nodes or {1}
        told = assign([report(node, ownerships_of(assignments)) for node in sorted(nodes)], SLOTS, {})
        for was, assignment in zip(assignments, told, strict=True):
            assert assignment.epoch >= was.epoch
            assert was.node_id not in nodes or assignment.node_id == was.node_id
        assignments = settle(sorted(nodes), assignments)
        assert max(counts(assignments)) - min(counts(assignments)) <= 1 or len(nodes) > SLOTS
