"""How long things took: how many, all together, the longest."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Spans:
    """Counts of what takes time, in milliseconds.

    Attributes:
        count: how many there were.
        items: what they held together, writes of a batch for instance.
        total_ms: their time together.
        max_ms: the longest.
        failed: how many of them came to nothing.
    """

    count: int = 0
    items: int = 0
    total_ms: float = 0
    max_ms: float = 0
    failed: int = 0

    def add(self, took_ms: float, items: int = 1, *, failed: bool = False) -> None:
        """One more."""
        self.count += 1
        self.items += items
        self.total_ms += took_ms
        if took_ms > self.max_ms:
            self.max_ms = took_ms
        self.failed += failed
