"""Dead letters (KIP-1191): archived records are reported, or copied, to a topic of the group's."""

from __future__ import annotations

from sharecore.deadletters.counts import GroupCounts
from sharecore.deadletters.destination import Destinations, Unavailable
from sharecore.deadletters.letter import DeadLetter
from sharecore.deadletters.office import DeadLetterOffice
from sharecore.deadletters.outbox import Outbox

__all__ = ["DeadLetter", "DeadLetterOffice", "Destinations", "GroupCounts", "Outbox", "Unavailable"]
