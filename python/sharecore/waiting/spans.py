"""Durations: count, total and maximum."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Spans:
    """Durations of repeated work, in milliseconds.

    Attributes:
        count: number of durations.
        items: total number of items, such as the writes of a batch.
        total_ms: total time.
        max_ms: the longest duration.
        failed: number of failures.
    """

    count: int = 0
    items: int = 0
    total_ms: float = 0
    max_ms: float = 0
    failed: int = 0

    def add(self, took_ms: float, items: int = 1, *, failed: bool = False) -> None:
        """Add a duration."""
        self.count += 1
        self.items += items
        self.total_ms += took_ms
        if took_ms > self.max_ms:
            self.max_ms = took_ms
        self.failed += failed
