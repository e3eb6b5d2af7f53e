"""Which node is to have which slot: even by their number, and as it is where that can be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from sharecore.broker.cluster import NOBODY
from sharecore.tier.ownership import Assignment, Ownership, Report, merge


def assign(reports: Sequence[Report], slots: int, pins: Mapping[int, int]) -> list[Assignment]:
    """Assign an owner to each slot.

    A slot whose owner is live is never assigned to another node: the owner learns its successor and releases.
    Until then the successor stays the same: it may have claimed the slot before this assignment arrives.

    Args:
        reports: of all nodes that are there, each one once.
        slots: how many there are.
        pins: nodes that are to have certain slots, by slot, as long as they are there.
    """
    live = {report.node_id for report in reports}
    takers = sorted(report.node_id for report in reports if not report.leaving)
    owners = [_owner(ownership, live, slot, reports) for slot, ownership in enumerate(merge(reports, slots))]
    wanted = _wanted([owner.node_id for owner in owners], takers, pins, _successors(reports, owners))
    return [
        Assignment(owner.node_id, owner.epoch, NOBODY if want == owner.node_id else want)
        if owner.node_id != NOBODY
        else Assignment(want, owner.epoch + 1)
        for owner, want in zip(owners, wanted, strict=True)
    ]


def _owner(ownership: Ownership, live: set[int], slot: int, reports: Sequence[Report]) -> Ownership:
    """Who has a slot: its owner where that is there, else who awaits it, as it may have it already."""
    if ownership.node_id in live:
        return ownership
    for report in reports:
        if slot in report.awaits:
            return Ownership(report.node_id, ownership.epoch + 1)
    return Ownership(NOBODY, ownership.epoch)


def _successors(reports: Sequence[Report], owners: Sequence[Ownership]) -> dict[int, int]:
    """Who gets slots that are being given up."""
    return {
        slot: report.node_id
        for report in reports
        for slot in report.awaits
        if slot < len(owners) and owners[slot].node_id != report.node_id
    }


def _wanted(
    owners: Sequence[int], takers: Sequence[int], pins: Mapping[int, int], successors: Mapping[int, int]
) -> list[int]:
    """Who is to have each slot in the end; everything stays where nobody takes slots."""
    if not takers:
        return [successors.get(slot, owner) for slot, owner in enumerate(owners)]
    fixed = {slot: node for slot, node in pins.items() if node in takers and slot < len(owners)}
    fixed |= successors
    wanted = [fixed.get(slot, owner if owner in takers else NOBODY) for slot, owner in enumerate(owners)]
    held = Counter(wanted)
    shares = _shares(held, takers, len(owners))
    for node in takers:
        surplus = held[node] - shares[node]
        free = [slot for slot, each in enumerate(wanted) if each == node and slot not in fixed]
        for slot in _spread(free, surplus):
            wanted[slot] = NOBODY
    held = Counter(wanted)
    for slot, node in enumerate(wanted):
        if node == NOBODY:
            # the one with most room; in turn where that is the same, so that a topic's partitions are shared
            wanted[slot] = max(takers, key=lambda each: (shares[each] - held[each], -held[each], -each))
            held[wanted[slot]] += 1
    return wanted


def _shares(held: Counter[int], takers: Sequence[int], slots: int) -> dict[int, int]:
    """How many slots each node is to have; one more for those that have most now."""
    share, more = divmod(slots, len(takers))
    most = sorted(takers, key=lambda node: (-held[node], node))
    return {node: share + (place < more) for place, node in enumerate(most)}


def _spread(slots: Sequence[int], count: int) -> list[int]:
    """So many of them, from all over: slots that lie together are partitions of one topic."""
    count = min(count, len(slots))
    return [slots[number * len(slots) // count] for number in range(count)] if count > 0 else []
