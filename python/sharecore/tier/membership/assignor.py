"""Assignment of slots to nodes: balanced, with few moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from sharecore.broker.cluster import NOBODY
from sharecore.tier.slots.ownership import Assignment, Ownership, Report, merge


def assign(reports: Sequence[Report], slots: int, pins: Mapping[int, int]) -> list[Assignment]:
    """Assign an owner to each slot.

    A slot whose owner is live is never assigned to another node: the owner learns its successor and releases.
    Until then the successor stays the same: it may have claimed the slot before this assignment arrives.

    Args:
        reports: the reports of all live nodes.
        slots: the number of slots.
        pins: preferred nodes by slot, used while they are live.
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
    """Return a slot's owner if it is live, else a node that awaits it and may own it already."""
    if ownership.node_id in live:
        return ownership
    for report in reports:
        if slot in report.awaits:
            return Ownership(report.node_id, ownership.epoch + 1)
    return Ownership(NOBODY, ownership.epoch)


def _successors(reports: Sequence[Report], owners: Sequence[Ownership]) -> dict[int, int]:
    """Return the successors of slots being released."""
    return {
        slot: report.node_id
        for report in reports
        for slot in report.awaits
        if slot < len(owners) and owners[slot].node_id != report.node_id
    }


def _wanted(
    owners: Sequence[int], takers: Sequence[int], pins: Mapping[int, int], successors: Mapping[int, int]
) -> list[int]:
    """Return the final owner of each slot; without available nodes, the current assignment."""
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
            # the node with most capacity; equal ones take turns, so that a topic's partitions are spread
            wanted[slot] = max(takers, key=lambda each: (shares[each] - held[each], -held[each], -each))
            held[wanted[slot]] += 1
    return wanted


def _shares(held: Counter[int], takers: Sequence[int], slots: int) -> dict[int, int]:
    """Return each node's number of slots; one more for those with most now."""
    share, more = divmod(slots, len(takers))
    most = sorted(takers, key=lambda node: (-held[node], node))
    return {node: share + (place < more) for place, node in enumerate(most)}


def _spread(slots: Sequence[int], count: int) -> list[int]:
    """Return evenly spaced slots, as adjacent ones are partitions of one topic."""
    count = min(count, len(slots))
    return [slots[number * len(slots) // count] for number in range(count)] if count > 0 else []
