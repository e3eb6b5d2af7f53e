"""What happened, in words, in the order of the events; the same seed tells the same story."""

from __future__ import annotations

import hashlib
from collections import deque

from tests.simulation.loop import SimulatedLoop

_KEPT = 4000
_AT_ONCE = 500


class Violation(Exception):
    """A promise was broken."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind


class Story:
    """Lines of who did what and when; the newest are kept, all count for the digest.

    Attributes:
        violations: what was found broken, the first of which ends the simulation.
    """

    def __init__(self, loop: SimulatedLoop) -> None:
        self.lines: deque[str] = deque(maxlen=_KEPT)
        self.violations: list[Violation] = []
        self._loop = loop
        self._digest = hashlib.sha256()
        self._pending: list[str] = []

    def tell(self, who: str, what: str) -> None:
        """One thing that happened."""
        line = f"{self._loop.now - 1000:11.4f} s  #{self._loop.events:<8} {who:14} {what}"
        self.lines.append(line)
        self._pending.append(line)
        if len(self._pending) >= _AT_ONCE:
            self._take()

    def broken(self, kind: str, text: str) -> None:
        """A promise was found broken."""
        self.tell("AUDITOR", f"{kind}: {text}")
        self.violations.append(Violation(kind, text))

    @property
    def digest(self) -> str:
        """Of every line."""
        self._take()
        return self._digest.hexdigest()

    def _take(self) -> None:
        self._digest.update("".join(f"{line}\n" for line in self._pending).encode())
        self._pending.clear()
