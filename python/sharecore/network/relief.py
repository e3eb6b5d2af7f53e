"""What happens when parts of requests fill the memory, so that no client could send the rest of its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sharecore._core import MemoryBudget
from sharecore.network.connection import Connection

log = logging.getLogger("sharecore.network")

_LOOK_S = 0.05
_FINISH_FACTOR = 6


class Relief:
    """Lets one connection after the other read beyond the budget while nothing else makes progress.

    The one that has sent the most of a request comes first. It is closed when it stalls or takes its time; so
    the budget is overstepped by one request at most, and one that is larger than the budget still gets
    through.

    Args:
        budget: the budget that may be exhausted.
        connections: all connections.
        stalled_ms: after so long without a byte a connection has stalled.
    """

    def __init__(
        self, budget: MemoryBudget, connections: Callable[[], Collection[Connection]], stalled_ms: int
    ) -> None:
        self._budget = budget
        self._connections = connections
        self._stalled_s = stalled_ms / 1000
        self._timer: asyncio.TimerHandle | None = None
        self._favoured: Connection | None = None
        self._favoured_since = self._progress_at = 0.0
        self._progress = (0, 0)

    def look(self) -> None:
        """Called when a connection found the budget exhausted; looks again until it is not."""
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._progress_at = loop.time()
            self._timer = loop.call_later(_LOOK_S, self._look)

    def stop(self) -> None:
        """Stops looking."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        favoured = self._favoured
        if favoured is not None and (favoured.closed or not favoured.held_bytes):
            self._favoured = favoured = None
        if not self._budget.exhausted:
            return
        now = asyncio.get_running_loop().time()
        progress = (self._budget.released_bytes, favoured.held_bytes if favoured is not None else 0)
        if progress != self._progress:
            self._progress, self._progress_at = progress, now
        stalled = now - self._progress_at >= self._stalled_s
        if favoured is None:
            self._favour(now, stalled=stalled)
        elif stalled or now - self._favoured_since >= self._stalled_s * _FINISH_FACTOR:
            log.warning(
                "closing %s: others wait for the %d bytes of a request that it does not finish "
                "(queued.max.request.bytes)",
                favoured,
                favoured.held_bytes,
            )
            favoured.abort()
        self._timer = asyncio.get_running_loop().call_later(_LOOK_S, self._look)

    def _favour(self, now: float, *, stalled: bool) -> None:
        connections = self._connections()
        if not stalled and any(each.in_flight for each in connections):
            return
        partial = [each for each in connections if each.held_bytes and not each.in_flight]
        if partial:
            self._favoured = max(partial, key=lambda each: each.held_bytes)
            self._favoured_since = self._progress_at = now
            self._favoured.read_beyond_budget()
