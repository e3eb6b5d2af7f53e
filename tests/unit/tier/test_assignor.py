"""Slots are shared evenly, stay where they are where that can be, and are given up before they are given."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from sharecore.broker.cluster import NOBODY
from sharecore.tier.assignor import assign
from sharecore.tier.seats import UNKNOWN, Report, Seat, Standing, pack_seats, unpack_seats

SLOTS = 8


def report(
    node_id: int,
    standings: Sequence[Standing] | None = None,
    awaits: Collection[int] = (),
    *,
    leaving: bool = False,
) -> Report:
    return Report(node_id, standings or [UNKNOWN] * SLOTS, awaits, leaving)


def standings_of(seats: Sequence[Seat]) -> list[Standing]:
    return [Standing(seat.node_id, seat.epoch) for seat in seats]


def settle(
    nodes: Sequence[int], seats: Sequence[Seat] = (), pins: Mapping[int, int] | None = None
) -> list[Seat]:
    """What is settled in the end, once every node has given up what it was told to."""
    standings = standings_of(seats) or [UNKNOWN] * SLOTS
    for _ in range(3):
        seats = assign([report(node, standings) for node in nodes], SLOTS, pins or {})
        standings = [
            Standing(seat.node_id, seat.epoch)
            if seat.next_id == NOBODY
            else Standing(seat.next_id, seat.epoch + 1)
            for seat in seats
        ]
    assert all(seat.next_id == NOBODY for seat in seats)
    return list(seats)


def counts(seats: Sequence[Seat]) -> list[int]:
    return sorted(Counter(seat.node_id for seat in seats).values())


def test_slots_that_nobody_has_are_shared_in_turn() -> None:
    seats = assign([report(1), report(2), report(3)], SLOTS, {})
    assert [seat.node_id for seat in seats] == [1, 2, 3, 1, 2, 3, 1, 2]
    assert {seat.epoch for seat in seats} == {0}


def test_who_joins_gets_slots_only_once_they_are_given_up() -> None:
    before = settle([1])
    seats = assign([report(1, standings_of(before)), report(2)], SLOTS, {})
    assert [(seat.node_id, seat.epoch) for seat in seats] == [(1, 0)] * SLOTS
    # partitions of one topic lie in slots one behind the other: of those, each node gets some
    assert [slot for slot, seat in enumerate(seats) if seat.next_id == 2] == [0, 2, 4, 6]
    assert counts(settle([1, 2], before)) == [4, 4]


def test_what_is_under_way_stays_as_it_was_told() -> None:
    before = settle([1])
    first = assign([report(1, standings_of(before)), report(2)], SLOTS, {})
    going = {slot for slot, seat in enumerate(first) if seat.next_id == 2}
    # a third one joins; slot 0 has been given up meanwhile, which its old owner alone has told
    told = standings_of(first)
    told[0] = Standing(2, 1)
    second = assign([report(1, told), report(2, standings_of(first), going), report(3)], SLOTS, {})
    assert second[0][:2] == (2, 1)
    assert {slot for slot, seat in enumerate(second) if seat.next_id == 2} == going - {0}


def test_the_slots_of_a_node_that_is_gone_are_given_at_once_and_nothing_else_moves() -> None:
    before = settle([1, 2, 3])
    seats = assign([report(node, standings_of(before)) for node in (1, 3)], SLOTS, {})
    for was, seat in zip(before, seats, strict=True):
        if was.node_id == 2:
            assert seat.node_id in (1, 3)
            assert seat.epoch == was.epoch + 1
            assert seat.next_id == NOBODY
        else:
            assert seat == was
    assert counts(seats) == [4, 4]


def test_who_awaits_a_slot_may_have_it_when_its_owner_is_gone() -> None:
    before = settle([1])
    first = assign([report(1, standings_of(before)), report(2)], SLOTS, {})
    going = {slot for slot, seat in enumerate(first) if seat.next_id == 2}
    seats = assign([report(2, standings_of(first), going), report(3)], SLOTS, {})
    assert {slot for slot, seat in enumerate(seats) if seat.node_id == 2} >= going
    assert all(seat.epoch > 0 for seat in seats)


def test_who_leaves_gets_nothing_and_gives_all_up() -> None:
    before = settle([1, 2])
    seats = assign([report(1, standings_of(before)), report(2, leaving=True)], SLOTS, {})
    assert all(seat.node_id == 1 or seat.next_id == 1 for seat in seats)
    alone = assign([report(2, standings_of(settle([2])), leaving=True)], SLOTS, {})
    assert alone == settle([2]), "there is nobody to take them"
    assert {seat.node_id for seat in assign([report(1, leaving=True)], SLOTS, {})} == {NOBODY}


def test_pins_hold_as_long_as_their_node_is_there() -> None:
    seats = settle([1, 2], pins={0: 2, 1: 2, 2: 2, 3: 2, 4: 2})
    assert [seat.node_id for seat in seats[:5]] == [2] * 5
    assert [seat.node_id for seat in seats[5:]] == [1] * 3
    assert counts(settle([1, 3], seats, pins={0: 2})) == [4, 4]


def test_the_highest_epoch_counts_and_among_equals_the_owners_word() -> None:
    stale = [Standing(1, 5)] * SLOTS
    moved = [Standing(2, 6)] * SLOTS
    assert {seat.node_id for seat in assign([report(1, stale), report(2, moved)], SLOTS, {})} == {2}
    rumour = [Standing(3, 6)] * SLOTS
    for reports in ([report(1, rumour), report(2, moved)], [report(2, moved), report(1, rumour)]):
        assert {seat.node_id for seat in assign([*reports, report(3)], SLOTS, {})} == {2}


def test_seats_are_read_as_they_were_sent() -> None:
    seats = [Seat(1, 5), Seat(NOBODY, -1), Seat(2, 7, 3)]
    assert unpack_seats(pack_seats(seats)) == seats
    sent = report(4, [Standing(1, 2)] * SLOTS, {3, 1}, leaving=True)
    assert Report.unpack(sent.pack()) == sent._replace(awaits=frozenset({1, 3}))


def test_any_coming_and_going_ends_evenly_and_never_gives_away_what_somebody_may_have() -> None:
    chance = random.Random(7)
    seats: list[Seat] = settle([1])
    nodes = {1}
    for _ in range(300):
        nodes ^= {chance.randint(1, 5)}
        nodes = nodes or {1}
        told = assign([report(node, standings_of(seats)) for node in sorted(nodes)], SLOTS, {})
        for was, seat in zip(seats, told, strict=True):
            assert seat.epoch >= was.epoch
            assert was.node_id not in nodes or seat.node_id == was.node_id
        seats = settle(sorted(nodes), seats)
        assert max(counts(seats)) - min(counts(seats)) <= 1 or len(nodes) > SLOTS
