"""Workers in virtual time: their consumer runs in the handlers' loop, on a broker in memory."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import asynccontextmanager
from typing import Any

from sharecore.client import Worker


@asynccontextmanager
async def running(work: Worker, **settings: Any) -> Any:
    """Run a worker while the block runs, and stop it."""
    work.has_thread = False
    task = asyncio.ensure_future(work.run(bootstrap_servers="broker:9092", group_id="group", **settings))
    try:
        yield task
    finally:
        work.stop()
        await task


async def until(done: Callable[[], bool]) -> None:
    """Wait until a condition is true."""
    while not done():  # noqa: ASYNC110 - in virtual time that costs nothing
        await asyncio.sleep(0.1)


class Events(logging.Handler):
    """The fields of log lines, and the records themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def of(self, event: str) -> list[dict[str, Any]]:
        """Return the fields of each line with this event."""
        return [fields for fields in self.all if fields["event"] == event]

    def levels_of(self, event: str) -> set[int]:
        return {record.levelno for record in self.records if vars(record)["fields"]["event"] == event}

    def traced(self, event: str) -> list[bool]:
        """Return whether each line with this event has a traceback."""
        found = [record for record in self.records if vars(record)["fields"]["event"] == event]
        return [record.exc_info is not None for record in found]

    @property
    def all(self) -> list[dict[str, Any]]:
        return [vars(record)["fields"] for record in self.records]
