"""Who got which record when, and what of that breaks a promise of queue settings.

All clocks are one machine's.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import NamedTuple

Place = tuple[int, int]
"""Partition and offset."""
TICK_NS = 5_000_000
"""A clock is read before or after what it is read for."""


class Came(NamedTuple):
    """A record that a member got."""

    at_ns: int
    member: str
    place: Place
    delivery: int


class Sent(NamedTuple):
    """A record that was confirmed to its producer.

    Args:
        due_ms: its delivery time, since the epoch; 0 for none.
    """

    key: bytes | None
    due_ms: int


@dataclass
class Ledger:
    """Records that were sent, deliveries of them, and releases that were confirmed.

    Attributes:
        releases: by record, when each release was asked for that was confirmed.
    """

    sent: dict[Place, Sent] = field(default_factory=dict)
    came: list[Came] = field(default_factory=list)
    releases: dict[Place, list[int]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, came: Came) -> None:
        with self._lock:
            self.came.append(came)

    def released(self, place: Place, asked_ns: int) -> None:
        with self._lock:
            self.releases.setdefault(place, []).append(asked_ns)

    def places(self) -> set[Place]:
        """Records that somebody got."""
        with self._lock:
            return {came.place for came in self.came}

    def out_of_order(self, *, whole: bool) -> list[str]:
        """Deliveries that came after one of a later record with the same key.

        Args:
            whole: the records of a partition are one key.
        """
        latest: dict[tuple[int, bytes], Came] = {}
        found = []
        for came in sorted(self.came):
            key = b"" if whole else self.sent[came.place].key
            if key is None:
                continue
            order = came.place[0], key
            before = latest.get(order)
            if before is not None and came.place < before.place:
                found.append(f"{came} came after {before} with key {key!r}")
            if before is None or came.place > before.place:
                latest[order] = came
        return found

    def early(self, backoff_s: float) -> list[str]:
        """Deliveries before their time, or before the end of a back-off."""
        to_wall_ns = time.time_ns() - time.monotonic_ns()
        found = []
        for came in self.came:
            due_ns = self.sent[came.place].due_ms * 1_000_000
            if came.at_ns + to_wall_ns < due_ns - TICK_NS:
                found.append(f"{came} came {(due_ns - came.at_ns - to_wall_ns) / 1e9:.3f} s before its time")
            for asked_ns in self.releases.get(came.place, ()):
                if asked_ns < came.at_ns < asked_ns + backoff_s * 1e9 - TICK_NS:
                    waited_s = (came.at_ns - asked_ns) / 1e9
                    found.append(f"{came} came {waited_s:.3f} s after it was released")
        return found
