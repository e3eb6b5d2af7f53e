"""Which broker of the cluster coordinates a group or a transactional id, as long as that is true."""

from __future__ import annotations

from collections import OrderedDict

from sharecore.errors import ErrorCode
from sharecore.upstream import Upstream

REMEMBERED_MAX = 10_000
MOVED = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})


class UpstreamCoordinators:
    """Coordinators as the cluster names them.

    Args:
        upstream: the cluster.
        remembered_max: those that were not asked for longest are forgotten first.
    """

    def __init__(self, upstream: Upstream, remembered_max: int = REMEMBERED_MAX) -> None:
        self._upstream = upstream
        self._max = remembered_max
        self._known: OrderedDict[tuple[int, str], int] = OrderedDict()

    async def find(self, kind: int, key: str) -> int:
        """Return the broker's id.

        Raises:
            KafkaError: the cluster names none now, or does not let this user ask.
        """
        known = self._known.get((kind, key))
        if known is not None and known in self._upstream.metadata.nodes:
            self._known.move_to_end((kind, key))
            return known
        node = await self._upstream.find_coordinator(kind, key)
        self._known[kind, key] = node
        if len(self._known) > self._max:
            self._known.popitem(last=False)
        return node

    def forget(self, kind: int, key: str) -> None:
        """It was another one, or cannot be reached."""
        self._known.pop((kind, key), None)
