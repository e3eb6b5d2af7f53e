"""Liveness and readiness of the broker."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING

from sharecore.errors import KafkaError
from sharecore.metrics.listener import Page
from sharecore.topic_names import INTERNAL_TOPICS

if TYPE_CHECKING:
    from sharecore.broker.requests.services import Services

_PROBE = b"health/probe"
_PROBE_SECONDS_MAX = 5.0
_NAMED_MAX = 20
"""Maximum number of named damaged batches."""
_GOOD_FOR_S = 1.0
"""How long to cache the result of a disk check, so that frequent probes do not write more often."""


class Health:
    """Answer /healthz and /readyz."""

    def __init__(self, broker: Services) -> None:
        self.started = False
        self._broker = broker
        self._looked_at = -_GOOD_FOR_S
        self._trouble = ""
        self._looking = asyncio.Lock()

    async def alive(self) -> Page:
        """Return that the process responds."""
        return Page(200, b"ok\n")

    async def ready(self) -> Page:
        """Return whether the state is loaded and whole, the broker may lead, and its storage is writable.

        A write of a few bytes checks the latter. Damaged client records are reported, but do not prevent
        serving. A standby is ready if it could take over.
        """
        trouble = self._broker.backend.trouble()
        if not trouble and not self.started:
            trouble = "the broker is still loading its state, or is stopping"
        standby = self._broker.backend.standby() if self.started else ""
        if not trouble and not standby:
            async with self._looking:
                if time.monotonic() - self._looked_at >= _GOOD_FOR_S:
                    self._trouble = await self._disk_trouble()
                    self._looked_at = time.monotonic()
                trouble = self._trouble
        damage = self._broker.backend.damage() if self.started else ()
        if not trouble:
            own = [str(each) for each in damage if each.topic in INTERNAL_TOPICS]
            trouble = own[0] if own else ""
        status: dict[str, object] = {"ready": not trouble, "reason": trouble or None}
        if standby:
            status["standby"] = standby
        if use := self._broker.backend.cache_use() if self.started else None:
            status["cache"] = use._asdict()
        if damage:
            status["damage"] = [str(each) for each in damage[:_NAMED_MAX]]
        body = json.dumps(status) + "\n"
        return Page(503 if trouble else 200, body.encode(), "application/json")

    async def _disk_trouble(self) -> str:
        async def write() -> None:
            await self._broker.catalog.put(_PROBE, str(self._broker.clock.now_ms()).encode())

        try:
            await asyncio.wait_for(write(), _PROBE_SECONDS_MAX)
        except KafkaError as error:
            return f"cannot write to the data directory: {error.message or error.code.name}"
        except (asyncio.TimeoutError, TimeoutError):
            outage = self._broker.backend.trouble()
            return outage or f"the data directory has not taken a write for {_PROBE_SECONDS_MAX:g} s"
        return ""
