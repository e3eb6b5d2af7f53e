"""Groups with acquired records at shutdown: leases are not persisted otherwise."""

from __future__ import annotations

import json
import logging
from contextlib import suppress

from sharecore.clock import Clock
from sharecore.errors import KafkaError
from sharecore.partition import SharePartitions
from sharecore.storage import Catalog

logger = logging.getLogger("sharecore.broker")

_KEY = b"share/last-leases"


class LastLeases:
    """Store groups with `share.ordering.takeover.wait` and leases at shutdown; read them at startup.

    A missing note means that the previous broker did not shut down cleanly.
    """

    def __init__(self, catalog: Catalog, partitions: SharePartitions, clock: Clock) -> None:
        self._catalog, self._partitions, self._clock = catalog, partitions, clock

    async def begin(self, *, has_topics: bool) -> None:
        """Read and delete the note of the last shutdown, before any record is acquired.

        Args:
            has_topics: whether topics existed whose records could be acquired.

        Raises:
            KafkaError: it cannot be deleted.
        """
        noted = self._catalog.get(_KEY)
        groups: list[str] | None = None
        ago_ms = 0
        if noted is not None:
            await self._catalog.change(deletes=[_KEY])
            with suppress(ValueError, KeyError, TypeError):
                found = json.loads(noted)
                ago_ms = max(0, self._clock.now_ms() - int(found["stoppedMs"]))
                groups = [str(group) for group in found["groups"]]
        if has_topics and groups != []:
            lost = self._partitions.predecessors.lost
            lost(0, lambda topic_id, partition: True, groups=groups, ago_ms=ago_ms)

    async def end(self) -> None:
        """Stop acquiring records, and note the groups whose members hold some."""
        self._partitions.rest(0, lambda topic_id, partition: True)
        note = {"stoppedMs": self._clock.now_ms(), "groups": sorted(self._partitions.groups_with_leases())}
        try:
            await self._catalog.put(_KEY, json.dumps(note).encode())
        except KafkaError as error:
            logger.warning(
                "cannot store leases; the next start will assume a crash: %s",
                error,
            )
