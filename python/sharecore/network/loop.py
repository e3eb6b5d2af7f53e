"""Which event loop serves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

log = logging.getLogger("sharecore.network")


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """Return what makes the event loop: uvloop's where it is installed, else asyncio's own, which is
    slower.
    """
    try:
        import uvloop
    except ImportError:
        log.info("uvloop is not installed: asyncio's own event loop serves, more slowly")
        return asyncio.new_event_loop
    return uvloop.new_event_loop
