"""What all share partitions share that have dead letters to write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from sharecore.clock import Clock
from sharecore.config import GroupConfig
from sharecore.deadletters.counts import GroupCounts
from sharecore.deadletters.destination import Destinations
from sharecore.deadletters.outbox import Outbox
from sharecore.waiting import CallLater

if TYPE_CHECKING:
    from sharecore.storage import Log


class DeadLetterOffice:
    """Makes the outboxes of share partitions, and counts what becomes of the letters.

    Args:
        destinations: which topic takes the letters of which group.
        served: whether share groups may have dead letters (`share.version` 2).
        clock: `now_ms` is the time of a letter.
        call_later: for what is tried again.
        leads: whether this broker may act as the leader of a topic's partition, by topic id and index.

    Attributes:
        counts: by group, since the start; groups that had nothing to write are not there.
    """

    def __init__(
        self,
        destinations: Destinations,
        served: Callable[[], bool],
        clock: Clock,
        call_later: CallLater,
        leads: Callable[[UUID, int], bool],
    ) -> None:
        self._leads = leads
        self._destinations = destinations
        self._served = served
        self._clock = clock
        self._call_later = call_later
        self._waiting: dict[Outbox, None] = {}
        self.counts: dict[str, GroupCounts] = {}

    def wanted(self, config: GroupConfig) -> bool:
        """Whether a group with this configuration has dead letters."""
        return bool(config.errors_deadletterqueue_topic_name) and self._served()

    def outbox(
        self,
        group_id: str,
        topic_id: UUID,
        source: Log,
        archive: Callable[[Sequence[tuple[int, int]]], None],
    ) -> Outbox:
        """The outbox of one share partition.

        Args:
            source: the log of the records.
            archive: called with the offsets whose letters are written, or never will be.
        """
        return Outbox(
            group_id,
            source,
            archive,
            leads=lambda: self._leads(topic_id, source.index),
            destinations=self._destinations,
            counts=self._counts,
            waiting=self._waiting,
            clock=self._clock,
            call_later=self._call_later,
        )

    def changed(self) -> None:
        """Topics or settings have changed: letters that wait for a topic may have one now."""
        for outbox in list(self._waiting):
            outbox.try_again()

    def stop(self) -> None:
        """The broker stops: what waits is gone on with after the next start."""
        for outbox in list(self._waiting):
            outbox.close()

    def _counts(self, group_id: str) -> GroupCounts:
        return self.counts.setdefault(group_id, GroupCounts())
