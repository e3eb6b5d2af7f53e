"""The clock of workers in virtual time, and their log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import pytest
from tests.unit.client.virtual import LoopClock
from tests.unit.client.workers.harness import Events

from sharecore.client import consumer as consumers


@pytest.fixture
def virtual_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker creates its consumer itself."""
    monkeypatch.setattr(consumers, "SystemClock", lambda: LoopClock(asyncio.get_running_loop()))


@pytest.fixture
def events() -> Iterator[Events]:
    """Return the log of workers during the test."""
    handler, logger = Events(), logging.getLogger("sharecore.worker")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False  # pytest would print every traceback
    yield handler
    logger.propagate = True
    logger.removeHandler(handler)
    logger.setLevel(level)
