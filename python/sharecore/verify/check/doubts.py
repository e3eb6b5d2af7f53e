"""Suspected breaches that a later line may explain: a lost lease, a departed member, a fault."""

from __future__ import annotations

from typing import NamedTuple

from sharecore.verify.check.world import World

_HOLDER_MS = 60_000.0
"""How long after a delivery its holder may report that it lost the lease earlier."""


class Doubt(NamedTuple):
    """A suspected breach, unless the holder had lost its lease or a fault came between.

    Args:
        since_ms: when the holder certainly had the lease.
        until_ms: when another member had it.
    """

    kind: str
    text: str
    lines: tuple[int, ...]
    holder: int
    group: str
    since_ms: float
    until_ms: float


class Doubts:
    """Keeps suspicions until the end."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._open: dict[tuple[int, str], list[Doubt]] = {}
        self._settled: list[Doubt] = []

    def add(self, doubt: Doubt) -> None:
        """Keep a suspicion, unless it is explained already."""
        key = (doubt.holder, doubt.group)
        if self._world.lost_at.get(key, -1.0) < doubt.since_ms:
            self._open.setdefault(key, []).append(doubt)

    def explain(self, holder: int, group: str, start_ms: float) -> None:
        """Drop the suspicions that a lost lease or a departure explains."""
        key = (holder, group)
        for doubt in self._open.pop(key, ()):
            if start_ms > doubt.until_ms + _HOLDER_MS:
                self._settled.append(doubt)

    def report(self) -> None:
        """Report the unexplained suspicions."""
        left = [doubt for doubts in self._open.values() for doubt in doubts] + self._settled
        for doubt in sorted(left, key=lambda each: each.until_ms):
            if not self._world.faults.touch(doubt.since_ms, doubt.until_ms):
                self._world.breaches.add(doubt.kind, doubt.text, doubt.lines, doubt.until_ms)
