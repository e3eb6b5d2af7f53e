"""Rates, latencies and faults of a history over time, in bounded memory."""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple

from sharecore.verify.history import Op

_BUCKETS_MAX = 600
_FAULTS_MAX = 10_000
_STEPS = 8
"""Latency steps per doubling."""


class Fault(NamedTuple):
    """A fault in the report; times are milliseconds since the start of the history."""

    kind: str
    start_ms: float
    end_ms: float


class Timeline:
    """Aggregates all lines of a history.

    Attributes:
        start_ms: the start of the history, by its own clock.
        width_ms: the time per bucket, which doubles when there are too many.
    """

    def __init__(self) -> None:
        self.start_ms = 0.0
        self.end_ms = 0.0
        self.width_ms = 1000.0
        self.faults: list[Fault] = []
        self._buckets: list[Counter[tuple[str, str]]] = []
        self._latencies: dict[str, Counter[int]] = {}

    def add(self, op: Op) -> None:
        """Add a line."""
        name, start, end = op["op"], op["start"], op["end"]
        if name == "history":
            self.start_ms = self.end_ms = start
            return
        self.end_ms = end
        if name == "fault":
            if len(self.faults) < _FAULTS_MAX:
                kind = str(op.get("kind", "fault"))
                self.faults.append(Fault(kind, start - self.start_ms, end - self.start_ms))
            return
        at = max(0, int((end - self.start_ms) / self.width_ms))
        while at >= _BUCKETS_MAX:
            self._halve()
            at //= 2
        while at >= len(self._buckets):
            self._buckets.append(Counter())
        self._buckets[at][name, op.get("outcome", "ok")] += 1
        took = end - start
        step = int(math.log2(took) * _STEPS) if took >= 1 else -1
        latencies = self._latencies.get(name)
        if latencies is None:
            latencies = self._latencies[name] = Counter()
        latencies[step] += 1

    def _halve(self) -> None:
        pairs = zip(self._buckets[::2], [*self._buckets[1::2], Counter[tuple[str, str]]()], strict=False)
        self._buckets = [one + two for one, two in pairs]
        self.width_ms *= 2

    def rates(self, outcome: str) -> list[float]:
        """Return calls per second with an outcome, by bucket."""
        seconds = self.width_ms / 1000
        return [
            sum(count for (_, how), count in bucket.items() if how == outcome) / seconds
            for bucket in self._buckets
        ]

    def latency_ms(self, op: str, quantile: float) -> float:
        """Return the time within which this fraction of the calls ended, to about 10 %."""
        latencies = self._latencies.get(op, Counter())
        left = quantile * sum(latencies.values())
        for step in sorted(latencies):
            left -= latencies[step]
            if left <= 0:
                return 1.0 if step < 0 else 2 ** ((step + 1) / _STEPS)
        return 0.0
