"""Detects handlers that run very long, and handlers that block the event loop."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Collection
from types import FrameType

from sharecore.client.workers.jobs import Job
from sharecore.client.workers.log import WorkerLog
from sharecore.client.workers.mailbox import Mailbox

BLOCKED_SECONDS = 1.0
_MINUTE = 60.0


class Watch:
    """Checks a run several times a second, from the thread of the worker's consumer.

    Must be created in the thread of the handlers' loop.

    Args:
        running: the jobs whose handlers run.
        to_run: the way to their loop.
    """

    def __init__(self, running: Collection[Job], to_run: Mailbox, log: WorkerLog) -> None:
        self._running, self._to_run, self._log = running, to_run, log
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._asked_at: float | None = None
        self._lag = 0.0
        self._named = False

    def tick(self) -> None:
        """Check the run."""
        now = self._loop.time()
        self._log_long(now)
        if self._asked_at is None:
            self._asked_at = now
            self._to_run.post(self._answered)
        elif now - self._asked_at > BLOCKED_SECONDS and not self._named:
            self._named = True
            self._name(now)

    def lag_seconds(self) -> float:
        """Return the lag of the loop; thread-safe."""
        asked_at = self._asked_at
        return self._lag if asked_at is None else max(self._lag, self._loop.time() - asked_at)

    def _answered(self) -> None:
        if self._asked_at is not None:
            self._lag = self._loop.time() - self._asked_at
        self._asked_at = None

    def _log_long(self, now: float) -> None:
        for job in list(self._running):
            minutes = int((now - job.began) // _MINUTE)
            if minutes > job.minutes_logged:
                job.minutes_logged = minutes
                seconds = round(now - job.began)
                self._log(
                    logging.WARNING,
                    "still running",
                    record=job.record,
                    seconds=seconds,
                    attempt=job.attempts,
                )

    def _name(self, now: float) -> None:
        """Log which handler blocks the loop and where; once, as it would do so with every record."""
        task = asyncio.current_task(self._loop)
        job = next((job for job in list(self._running) if job.task is task and task is not None), None)
        frame = sys._current_frames().get(self._thread)
        self._log(
            logging.WARNING,
            "event loop blocked",
            record=job.record if job is not None else None,
            seconds=round(now - (self._asked_at or now), 1),
            at=_place(frame) if frame is not None else "unknown",
            advice="await the blocking call, or write the handler without async, so that it runs in a thread",
        )


def _place(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
