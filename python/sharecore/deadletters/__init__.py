"""Dead letters (KIP-1191): archived records are reported, or copied, to a topic of the group's."""

from __future__ import annotations

from sharecore.deadletters.counts import GroupCounts
from sharecore.deadletters.destination import Destinations, Unavailable
from sharecore.deadletters.letter import DeadLetter
from sharecore.deadletters.outbox import Outbox
from sharecore.deadletters.service import DeadLetterService

__all__ = ["DeadLetter", "DeadLetterService", "Destinations", "GroupCounts", "Outbox", "Unavailable"]
