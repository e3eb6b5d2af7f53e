"""Cache of the upstream coordinators of groups and transactional IDs."""

from __future__ import annotations

from sharecore.errors import ErrorCode
from sharecore.tier.forward.remembered import NAME_BYTES, Remembered
from sharecore.upstream import Upstream

REMEMBERED_BYTES_MAX = 16 << 20
MOVED = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})


class UpstreamCoordinators:
    """Coordinators as reported by the cluster.

    Args:
        upstream: the cluster.
        bytes_max: memory limit; beyond it, the least recently used are dropped.
    """

    def __init__(self, upstream: Upstream, bytes_max: int = REMEMBERED_BYTES_MAX) -> None:
        self._upstream = upstream
        self._known: Remembered[tuple[int, str], int] = Remembered(bytes_max)

    async def find(self, kind: int, key: str) -> int:
        """Return the broker's ID.

        Raises:
            KafkaError: the cluster has none now, or does not let this user ask.
        """
        known = self._known.get((kind, key))
        if known is not None and known in self._upstream.metadata.nodes:
            return known
        node = await self._upstream.find_coordinator(kind, key)
        self._known.put((kind, key), node, 2 * NAME_BYTES + 4 * len(key))
        return node

    def forget(self, kind: int, key: str) -> None:
        """Forget a coordinator that has moved or cannot be reached."""
        self._known.pop((kind, key))
