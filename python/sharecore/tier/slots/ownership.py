"""Slot ownership: what nodes report to each other, and how reports are merged."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, TypedDict

from sharecore.broker.cluster import NOBODY


class Ownership(NamedTuple):
    """The owner of a slot, as far as a node knows; `NOBODY` if it knows of none.

    Of two ownerships the one with the higher epoch counts: an epoch has one owner.
    """

    node_id: int
    epoch: int


UNKNOWN = Ownership(NOBODY, -1)


class Assignment(NamedTuple):
    """The slot's owner as the group's leader assigned it.

    Attributes:
        node_id: its owner.
        epoch: the lowest epoch that the owner may claim with.
        next_id: the node that takes over once the owner has released it; `NOBODY` if it stays.
    """

    node_id: int
    epoch: int
    next_id: int = NOBODY


class ReportFields(TypedDict):
    """A report on the wire; owners and epochs by slot."""

    node_id: int
    owners: list[int]
    epochs: list[int]
    awaits: list[int]
    leaving: bool


class NodeFields(TypedDict):
    """A node on the wire."""

    endpoints: dict[str, tuple[str, int]]
    rack: str | None
    life: str


class MemberFields(NodeFields, ReportFields):
    """What a node joins with, on the wire."""

    joins: int


class AssignmentFields(TypedDict):
    """The assignments on the wire; owners and epochs by slot, and the nodes that take over."""

    owners: list[int]
    epochs: list[int]
    next: dict[str, int]


class Report(NamedTuple):
    """What a node reports when it joins.

    Attributes:
        ownerships: of each slot.
        awaits: slots that it takes as soon as their owners release them; it may own them already.
        leaving: it wants no slots.
    """

    node_id: int
    ownerships: Sequence[Ownership]
    awaits: Collection[int] = ()
    leaving: bool = False

    def pack(self) -> ReportFields:
        """Encode for the wire."""
        return {
            "node_id": self.node_id,
            "owners": [each.node_id for each in self.ownerships],
            "epochs": [each.epoch for each in self.ownerships],
            "awaits": sorted(self.awaits),
            "leaving": self.leaving,
        }

    @classmethod
    def unpack(cls, fields: ReportFields) -> Report:
        """Decode a report."""
        ownerships = [Ownership(*each) for each in zip(fields["owners"], fields["epochs"], strict=True)]
        return cls(fields["node_id"], ownerships, frozenset(fields["awaits"]), fields["leaving"])


def pack_assignments(assignments: Sequence[Assignment]) -> AssignmentFields:
    """Encode the assignments for the wire."""
    return {
        "owners": [each.node_id for each in assignments],
        "epochs": [each.epoch for each in assignments],
        "next": {str(slot): each.next_id for slot, each in enumerate(assignments) if each.next_id != NOBODY},
    }


def unpack_assignments(fields: AssignmentFields) -> list[Assignment]:
    """Decode the assignments."""
    following = fields["next"]
    return [
        Assignment(node_id, epoch, following.get(str(slot), NOBODY))
        for slot, (node_id, epoch) in enumerate(zip(fields["owners"], fields["epochs"], strict=True))
    ]


def merge(reports: Sequence[Report], slots: int) -> list[Ownership]:
    """Return the current ownership of each slot from all reports.

    Of ownerships with one epoch, an owner's own report wins; one without an owner loses.
    """
    merged = [UNKNOWN] * slots
    for report in reports:
        for slot, ownership in enumerate(report.ownerships[:slots]):
            known = merged[slot]
            if ownership.epoch > known.epoch or (
                ownership.epoch == known.epoch
                and (ownership.node_id == report.node_id or known.node_id == NOBODY)
            ):
                merged[slot] = ownership
    return merged
