"""Who has which slot: what nodes tell each other about that, and what of it counts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from sharecore.broker.cluster import NOBODY


class Standing(NamedTuple):
    """Who has a slot, as far as a node knows; `NOBODY` where it knows of none.

    Of two standings the one with the higher epoch counts: an epoch has one owner.
    """

    node_id: int
    epoch: int


UNKNOWN = Standing(NOBODY, -1)


class Seat(NamedTuple):
    """What the group's leader has settled for a slot.

    Attributes:
        node_id: its owner.
        epoch: the least of the owner's claims.
        next_id: who gets it once the owner has given it up; `NOBODY` where it stays.
    """

    node_id: int
    epoch: int
    next_id: int = NOBODY


class Report(NamedTuple):
    """What a node says of itself as it joins.

    Attributes:
        standings: of each slot.
        awaits: slots that it takes as soon as their owners have given them up; it may have them already.
        leaving: it wants no slots.
    """

    node_id: int
    standings: Sequence[Standing]
    awaits: Collection[int] = ()
    leaving: bool = False

    def pack(self) -> dict[str, Any]:
        """As it is sent."""
        return {
            "node_id": self.node_id,
            "owners": [each.node_id for each in self.standings],
            "epochs": [each.epoch for each in self.standings],
            "awaits": sorted(self.awaits),
            "leaving": self.leaving,
        }

    @classmethod
    def unpack(cls, told: Mapping[str, Any]) -> Report:
        """Out of what was sent."""
        standings = [Standing(*each) for each in zip(told["owners"], told["epochs"], strict=True)]
        return cls(told["node_id"], standings, frozenset(told["awaits"]), told["leaving"])


def pack_seats(seats: Sequence[Seat]) -> dict[str, Any]:
    """Seats as they are sent."""
    return {
        "owners": [each.node_id for each in seats],
        "epochs": [each.epoch for each in seats],
        "next": {str(slot): each.next_id for slot, each in enumerate(seats) if each.next_id != NOBODY},
    }


def unpack_seats(told: Mapping[str, Any]) -> list[Seat]:
    """Out of what was sent."""
    following = told["next"]
    return [
        Seat(node_id, epoch, following.get(str(slot), NOBODY))
        for slot, (node_id, epoch) in enumerate(zip(told["owners"], told["epochs"], strict=True))
    ]


def merge(reports: Sequence[Report], slots: int) -> list[Standing]:
    """Return the standing of each slot that counts, of those that nodes know; an owner's own word comes
    first.
    """
    merged = [UNKNOWN] * slots
    for report in reports:
        for slot, standing in enumerate(report.standings[:slots]):
            known = merged[slot]
            if standing.epoch > known.epoch or (
                standing.epoch == known.epoch and standing.node_id == report.node_id
            ):
                merged[slot] = standing
    return merged
