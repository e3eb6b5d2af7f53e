"""Shared dead-letter services of all share partitions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from sharecore.clock import Clock
from sharecore.config import GroupConfig
from sharecore.deadletters.counts import GroupCounts
from sharecore.deadletters.destination import Destinations, Unavailable
from sharecore.deadletters.outbox import Outbox
from sharecore.waiting import CallLater

if TYPE_CHECKING:
    from sharecore.storage import Log

logger = logging.getLogger(__name__)

_SAY_AGAIN_MS = 60_000
_CAUSES_MAX = 1_000
_CAUSE_CHARACTERS_MAX = 255


class DeadLetterService:
    """Create the outboxes of share partitions, and count results.

    Args:
        destinations: finds the dead-letter topics of groups.
        served: returns whether share groups may have dead letters (`share.version` 2).
        clock: its `now_ms` is the timestamp of dead-letter records.
        call_later: schedules retries.
        leads: returns whether this broker may act as the leader of a topic partition.

    Attributes:
        counts: counters since startup by group; groups without dead letters are absent.
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
        self._said_ms: dict[tuple[str, str], int] = {}
        self.counts: dict[str, GroupCounts] = {}

    def wanted(self, group_id: str, config: GroupConfig) -> bool:
        """Return whether a group with this configuration has dead letters."""
        is_named, is_served = bool(config.errors_deadletterqueue_topic_name), self._served()
        if is_named and not is_served:
            self.warn(group_id)
        return is_named and is_served

    def trouble(self, group_id: str) -> str:
        """Return why no dead-letter record of a group can be written now; empty if one can, or none is
        wanted.
        """
        if not self._destinations.group_config(group_id).errors_deadletterqueue_topic_name:
            return ""
        if not self._served():
            return "the feature share.version is below 2"
        try:
            self._destinations.find(group_id)
        except Unavailable as refusal:
            return str(refusal)
        return ""

    def warn(self, group_id: str) -> None:
        """Log why no dead-letter record of a group can be written now, once a minute per cause."""
        trouble = self.trouble(group_id)
        if trouble and self.may_say(group_id, f"as things are set: {trouble}"):
            logger.warning(
                "group %s: cannot write its dead-letter records: %s",
                group_id,
                trouble,
                extra={"group": group_id},
            )

    def may_say(self, group_id: str, cause: str) -> bool:
        """Return whether a cause may be logged for a group, which limits it to once a minute."""
        now_ms = self._clock.monotonic_ms()
        if len(self._said_ms) >= _CAUSES_MAX:
            self._said_ms.clear()
        about = group_id[:_CAUSE_CHARACTERS_MAX], cause[:_CAUSE_CHARACTERS_MAX]
        last_ms = self._said_ms.get(about)
        if last_ms is not None and now_ms - last_ms < _SAY_AGAIN_MS:
            return False
        self._said_ms[about] = now_ms
        return True

    def outbox(
        self,
        group_id: str,
        topic_id: UUID,
        source: Log,
        archive: Callable[[Sequence[tuple[int, int]]], None],
    ) -> Outbox:
        """Return the outbox of one share partition.

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
            may_say=self.may_say,
            waiting=self._waiting,
            clock=self._clock,
            call_later=self._call_later,
        )

    def changed(self) -> None:
        """Retry waiting outboxes after a change of topics or settings."""
        for outbox in list(self._waiting):
            outbox.try_again()

    def stop(self) -> None:
        """Stop: after the next start, the loaded state resumes pending dead letters."""
        for outbox in list(self._waiting):
            outbox.close()

    def _counts(self, group_id: str) -> GroupCounts:
        return self.counts.setdefault(group_id, GroupCounts())
