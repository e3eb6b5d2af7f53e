"""Callbacks, timers, and requests that are answered later."""

from __future__ import annotations

from sharecore._core import Spans
from sharecore.waiting.delayed import DelayedFetch
from sharecore.waiting.fair_thread import FairThread
from sharecore.waiting.hosts import HostAddresses
from sharecore.waiting.later import Done, Gather, Later, outcome, promise, reply, settle
from sharecore.waiting.movable import MovableTime
from sharecore.waiting.periodic import Periodic, PeriodicLook
from sharecore.waiting.threads import Blocked, BlockingWork
from sharecore.waiting.timers import CallLater, Deadline, Timer, Timers
from sharecore.waiting.turns import Begun, Steps, Turns, exhaust

__all__ = [
    "Begun",
    "Blocked",
    "BlockingWork",
    "CallLater",
    "Deadline",
    "DelayedFetch",
    "Done",
    "FairThread",
    "Gather",
    "HostAddresses",
    "Later",
    "MovableTime",
    "Periodic",
    "PeriodicLook",
    "Spans",
    "Steps",
    "Timer",
    "Timers",
    "Turns",
    "exhaust",
    "outcome",
    "promise",
    "reply",
    "settle",
]
