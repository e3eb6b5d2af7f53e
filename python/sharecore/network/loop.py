"""Choice of the event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

log = logging.getLogger("sharecore.network")


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """Return the event-loop factory: uvloop's if installed, else asyncio's, which is slower."""
    try:
        import uvloop
    except ImportError:
        log.info("uvloop is not installed: using asyncio's slower event loop")
        return asyncio.new_event_loop
    return uvloop.new_event_loop
