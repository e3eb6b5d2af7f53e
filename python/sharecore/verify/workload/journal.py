"""Record IDs, and the history written by all parts of a workload."""

from __future__ import annotations

import itertools
import threading

from sharecore.clock import SystemClock
from sharecore.verify.history import Writer
from sharecore.verify.workload.plan import Plan

FOREIGN = -1


class Journal:
    """Assigns IDs, and records calls; thread-safe.

    Attributes:
        load: cleared when the load ends: producers stop, and the others process what is left.
        stopped: set when everything should end.
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
        """Return the ID of the next record; IDs of one caller increase."""
        return next(self._numbers)

    def value(self, ident: int) -> bytes:
        """Return the value of a record."""
        return self._prefix + b"%d" % ident + b"." * (ident % 100)

    def ident(self, value: bytes | None) -> int:
        """Return the ID of a record with this value; `FOREIGN` if this run did not write it."""
        text = (value or b"").rstrip(b".")
        if text.startswith(self._prefix) and text[len(self._prefix) :].isdigit():
            ident = int(text[len(self._prefix) :])
            if self.value(ident) == value:
                return ident
        return FOREIGN

    def trouble(self, who: str, error: object) -> None:
        """Report something that a part of the workload could not do; the first reports are shown."""
        if len(self.troubles) < 100:
            self.troubles.append(f"{who}: {error}")
