"""Ids of records, and the history that all parts of a workload write."""

from __future__ import annotations

import itertools
import threading

from sharecore.clock import SystemClock
from sharecore.verify.history import Writer
from sharecore.verify.workload.plan import Plan

FOREIGN = -1


class Journal:
    """Gives out ids, and takes down calls; safe to use from any thread.

    Attributes:
        load: cleared when the load ends: producers stop, and everybody else settles what is left.
        stopped: set when all is to end.
    """

    def __init__(self, plan: Plan, writer: Writer) -> None:
        self.plan, self.write = plan, writer.write
        self.now_ms = SystemClock.monotonic_ms
        self.load, self.stopped = threading.Event(), threading.Event()
        self.load.set()
        self.sent = self.taken = self.settled = 0
        self.troubles: list[str] = []
        self._numbers = itertools.count()
        self._prefix = f"{plan.run}:".encode()

    def new_id(self) -> int:
        """Return the id of the next record; ids of one caller ascend."""
        return next(self._numbers)

    def value(self, ident: int) -> bytes:
        """Return the value of a record."""
        return self._prefix + b"%d" % ident + b"." * (ident % 100)

    def ident(self, value: bytes | None) -> int:
        """Return the id of a record with this value; `FOREIGN` if this run did not write it."""
        text = (value or b"").rstrip(b".")
        if text.startswith(self._prefix) and text[len(self._prefix) :].isdigit():
            ident = int(text[len(self._prefix) :])
            if self.value(ident) == value:
                return ident
        return FOREIGN

    def trouble(self, who: str, error: object) -> None:
        """Note what a part of the workload could not do; the first ones are shown."""
        if len(self.troubles) < 100:
            self.troubles.append(f"{who}: {error}")
