"""Whether the broker is alive, and whether it is ready to serve."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING

from sharecore.broker.topic_rules import INTERNAL_TOPICS
from sharecore.errors import KafkaError
from sharecore.metrics.listener import Page

if TYPE_CHECKING:
    from sharecore.broker.services import Services

_PROBE = b"health/probe"
_PROBE_SECONDS_MAX = 5.0
_NAMED_MAX = 20
"""How many damaged batches are named."""
_GOOD_FOR_S = 1.0
"""An answer about the disk stands so long: who asks more often does not write more often."""


class Health:
    """Answers /healthz and /readyz."""

    def __init__(self, broker: Services) -> None:
        self.started = False
        self._broker = broker
        self._looked_at = -_GOOD_FOR_S
        self._trouble = ""
        self._looking = asyncio.Lock()

    async def alive(self) -> Page:
        """Return the process answers."""
        return Page(200, b"ok\n")

    async def ready(self) -> Page:
        """The state is loaded and whole, this broker may lead, and what it keeps can be written: a
        write of
        a few bytes finds out. Damaged records of clients are named, and do not keep others from being served.
        """
        trouble = self._broker.backend.trouble()
        if not trouble and not self.started:
            trouble = "the broker has not read its state yet, or is stopping"
        if not trouble:
            async with self._looking:
                if time.monotonic() - self._looked_at >= _GOOD_FOR_S:
                    self._trouble = await self._disk_trouble()
                    self._looked_at = time.monotonic()
            trouble = self._trouble
        damage = self._broker.backend.damage() if self.started else ()
        if not trouble:
            own = [str(each) for each in damage if each.topic in INTERNAL_TOPICS]
            trouble = own[0] if own else ""
        told: dict[str, object] = {"ready": not trouble, "reason": trouble or None}
        if damage:
            told["damage"] = [str(each) for each in damage[:_NAMED_MAX]]
        body = json.dumps(told) + "\n"
        return Page(503 if trouble else 200, body.encode(), "application/json")

    async def _disk_trouble(self) -> str:
        async def write() -> None:
            await self._broker.catalogue.put(_PROBE, str(self._broker.clock.now_ms()).encode())

        try:
            await asyncio.wait_for(write(), _PROBE_SECONDS_MAX)
        except KafkaError as error:
            return f"the data directory cannot be written: {error.message or error.code.name}"
        except (asyncio.TimeoutError, TimeoutError):
            outage = self._broker.backend.trouble()
            return outage or f"the data directory has not taken a write for {_PROBE_SECONDS_MAX:g} s"
        return ""
