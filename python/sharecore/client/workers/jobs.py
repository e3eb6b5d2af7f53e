"""A job: one delivery of one record."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from enum import Enum
from typing import Any

from sharecore._core import Record
from sharecore.client.keeper import Kept


class State(Enum):
    """Where a job is."""

    BEHIND = "waits for the record before it in the group's order"
    READY = "waits for a slot"
    RUNNING = "its handler runs"
    WAITING = "waits for its next attempt"
    ENDED = "acknowledged, or lost"


class Job:
    """One delivery of one record, from its arrival until the broker has confirmed what became of it.

    Attributes:
        kept: renews the record's lock.
        attempts: calls of the handler so far, the present one included.
        began: the loop's time when the present attempt began.
        failed_at: the loop's time when the first attempt failed.
        error: what the last attempt raised.
        cancelled: why the worker cancelled the attempt; empty while it has not.
        is_last_attempt: it holds up others, and is not retried after this attempt.
        is_leaving: it is not tried again, and released when its wait ends.
        lane: what it shares with the records that it may not be worked on beside; None for no such records.
    """

    __slots__ = (
        "attempts",
        "began",
        "cancelled",
        "error",
        "failed_at",
        "failure",
        "is_last_attempt",
        "is_leaving",
        "kept",
        "lane",
        "minutes_logged",
        "others",
        "record",
        "state",
        "task",
        "timer",
        "told",
    )

    def __init__(self, record: Record, kept: Kept) -> None:
        self.record = record
        self.kept = kept
        self.state = State.READY
        self.attempts = 0
        self.began = 0.0
        self.failed_at = 0.0
        self.error: BaseException | None = None
        self.failure = ""
        """What the last failure said; the traceback of one that says the same is not logged again."""
        self.cancelled = ""
        self.is_last_attempt = False
        self.is_leaving = False
        self.lane: Hashable = None
        self.minutes_logged = 0
        self.others = (0, 0)
        """How many jobs had succeeded, and failed at their first attempt, when this one first failed."""
        self.told: tuple[int, str, bool, dict[str, Any]] | None = None
        """Level, event, whether with traceback, and fields of what is logged once the broker has answered."""
        self.task: asyncio.Task[BaseException | None] | None = None
        self.timer: asyncio.TimerHandle | None = None

    def stop_timer(self) -> None:
        """Cancel the retry or the time-out that is scheduled."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
