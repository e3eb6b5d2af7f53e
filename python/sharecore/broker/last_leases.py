"""Which groups had records out when a broker stopped: nothing else is known of leases after a start."""

from __future__ import annotations

import json
import logging
from contextlib import suppress

from sharecore.clock import Clock
from sharecore.errors import KafkaError
from sharecore.partition import SharePartitions
from sharecore.storage import Catalogue

logger = logging.getLogger(__name__)

_KEY = b"share/last-leases"


class LastLeases:
    """Notes at a stop which groups with `share.ordering.takeover.wait` have leases; reads that at a start.

    Without a note the broker before this one has not stopped but ended.
    """

    def __init__(self, catalogue: Catalogue, partitions: SharePartitions, clock: Clock) -> None:
        self._catalogue, self._partitions, self._clock = catalogue, partitions, clock

    async def begin(self, *, has_topics: bool) -> None:
        """Read the note of the last stop, and delete it before anything is leased.

        Args:
            has_topics: whether there were topics to lease records of.

        Raises:
            KafkaError: it cannot be deleted.
        """
        noted = self._catalogue.get(_KEY)
        groups: list[str] | None = None
        ago_ms = 0
        if noted is not None:
            await self._catalogue.change(deletes=[_KEY])
            with suppress(ValueError, KeyError, TypeError):
                found = json.loads(noted)
                ago_ms = max(0, self._clock.now_ms() - int(found["stoppedMs"]))
                groups = [str(group) for group in found["groups"]]
        if has_topics and groups != []:
            lost = self._partitions.predecessors.lost
            lost(0, lambda topic_id, partition: True, groups=groups, ago_ms=ago_ms)

    async def end(self) -> None:
        """Lease nothing more, and note whose members hold records."""
        self._partitions.rest(0, lambda topic_id, partition: True)
        note = {"stoppedMs": self._clock.now_ms(), "groups": sorted(self._partitions.groups_with_leases())}
        try:
            await self._catalogue.put(_KEY, json.dumps(note).encode())
        except KafkaError as error:
            logger.warning("the next start takes this stop for a crash: %s", error)
