"""Looks at a cluster for as long as somebody watches, and remembers the lag of an hour."""

from __future__ import annotations

import asyncio
import logging
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sharecore.admin.client import Admin
from sharecore.admin.watch import Look, Watch
from sharecore.client.wire.transport import Transport
from sharecore.errors import KafkaError
from sharecore.page.window import Leaders

log = logging.getLogger("sharecore.page")

_LINGER_S = 60.0
_PAUSE_TIMES, _PAUSE_MAX_S = 4, 30.0
"""A look that takes long is followed by a pause that is so many times as long, or that long."""
_GROUPS_REMEMBERED = 500
_POINTS = 600
_POINT_S = 6.0


class Trails:
    """Lag by group, a point each few seconds, for an hour; of the groups that lag most."""

    def __init__(self) -> None:
        self._points: dict[str, tuple[array[float], array[float]]] = {}

    def add(self, look: Look, now_s: float) -> None:
        """Add the results of a look."""
        lags = {
            name: lag
            for name, group in look.groups.items()
            if group.error is None and (lag := group.total_lag()) is not None
        }
        kept = sorted(lags, key=lambda name: (-lags[name], name))[:_GROUPS_REMEMBERED]
        fresh = {}
        for name in kept:
            times, values = self._points.get(name, (array("d"), array("d")))
            if times and now_s - times[-1] < _POINT_S * 0.9:
                fresh[name] = times, values
                continue
            times.append(now_s)
            values.append(lags[name])
            if len(times) > _POINTS:
                del times[0], values[0]
            fresh[name] = times, values
        self._points = fresh

    def of(self, group_id: str) -> list[tuple[float, float]]:
        """Seconds since the epoch and lag."""
        times, values = self._points.get(group_id, (array("d"), array("d")))
        return [(round(at, 1), value) for at, value in zip(times, values, strict=True)]


class Looker:
    """The newest look of one principal at the cluster.

    Args:
        transport: the principal's connections.
        interval_s: between two looks.
        leaders: reports acquired records, if the page belongs to a broker.
        standby: who leads, if the page's broker stands by; empty if it serves.
    """

    def __init__(
        self,
        transport: Transport,
        interval_s: float,
        leaders: Leaders | None = None,
        standby: Callable[[], str] = str,
    ) -> None:
        self.transport = transport
        self.admin = Admin.over(transport)
        self.leaders = leaders
        self.watch = Watch(transport, leaders.held if leaders is not None else None)
        self.trails = Trails()
        self.now: Look | None = None
        self.before: Look | None = None
        self.trouble = ""
        self.round = 0
        self._interval_s = interval_s
        self._standby = standby
        self._watchers = 0
        self._left_at = 0.0
        self._fresh = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Somebody watches: it looks again and again."""
        self._watchers += 1
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())
        try:
            yield
        finally:
            self._watchers -= 1
            self._left_at = time.monotonic()

    async def newer(self, seen: int, timeout_s: float) -> bool:
        """Wait for a round behind `seen`; false when the time passed before."""
        if self.round > seen:
            return True
        try:
            async with asyncio.timeout(timeout_s):
                await self._fresh.wait()
        except TimeoutError:
            return False
        return True

    async def close(self) -> None:
        """End the looks and all connections."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._fresh.set()
        await self.transport.close()

    async def _run(self) -> None:
        while self._watchers or time.monotonic() - self._left_at < _LINGER_S:
            began = time.monotonic()
            await self._look()
            took = time.monotonic() - began
            await asyncio.sleep(max(self._interval_s - took, min(took * _PAUSE_TIMES, _PAUSE_MAX_S)))

    async def _look(self) -> None:
        if leader := self._standby():
            # it closes connections that ask for more than who leads
            self.trouble = f"This broker stands by: {leader}. The page of that broker shows its groups."
        else:
            await self._look_at_cluster()
        self.round += 1
        fresh, self._fresh = self._fresh, asyncio.Event()
        fresh.set()

    async def _look_at_cluster(self) -> None:
        try:
            look = await self.watch.look()
        except (KafkaError, OSError) as error:
            self.trouble = str(error)
        except Exception:
            log.exception("the cluster could not be looked at")
            self.trouble = "the page failed; the log of its process says why"
        else:
            self.trouble = ""
            self.before, self.now = self.now, look
            self.trails.add(look, time.time())
