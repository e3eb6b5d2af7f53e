"""A job: one delivery of one record."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from enum import Enum

from sharecore._core import Record
from sharecore.client.keeper import Kept


class State(Enum):
    """The state of a job."""

    BEHIND = "waits for the record before it in the group's order"
    READY = "waits for a slot"
    RUNNING = "its handler runs"
    WAITING = "waits for its next attempt"
    ENDED = "acknowledged, or lost"


class Job:
    """One delivery of one record, from its arrival until its acknowledgement is confirmed.

    Attributes:
        kept: renews the record's lock.
        attempts: handler calls so far, including the current one.
        began: the loop time at the start of the current attempt.
        failed_at: the loop time when the first attempt failed.
        error: the exception of the last attempt.
        cancelled: why the worker cancelled the attempt; empty if it did not.
        is_last_attempt: it blocks other jobs, and is not retried after this attempt.
        is_leaving: it is not retried, and released when its wait ends.
        lane: shared by records that must be processed one at a time; None for unordered records.
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
        "log_line",
        "minutes_logged",
        "others",
        "record",
        "state",
        "task",
        "timer",
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
        """The text of the last failure; the traceback of an identical one is not logged again."""
        self.cancelled = ""
        self.is_last_attempt = False
        self.is_leaving = False
        self.lane: Hashable = None
        self.minutes_logged = 0
        self.others = (0, 0)
        """How many jobs had succeeded, and failed at their first attempt, when this one first failed."""
        self.log_line: tuple[int, str, bool, dict[str, object]] | None = None
        """Level, event, whether with traceback, and fields to log once the broker has responded."""
        self.task: asyncio.Task[BaseException | None] | None = None
        self.timer: asyncio.TimerHandle | None = None

    def stop_timer(self) -> None:
        """Cancel the scheduled retry or timeout."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
