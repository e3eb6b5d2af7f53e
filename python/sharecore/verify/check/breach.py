"""Breaches: findings of a check, with the lines of the history that show them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

_KEPT_MAX = 20
"""Breaches per kind kept in full."""


@dataclass(frozen=True, slots=True)
class Breach:
    """A broken guarantee.

    Args:
        kind: the check that found it.
        text: what happened to which record.
        lines: numbers of the history lines that show it.
        at_ms: when it became visible, by the history's clock.
    """

    kind: str
    text: str
    lines: Sequence[int]
    at_ms: float = 0.0


class Breaches:
    """Collects breaches; keeps the first of each kind, and counts all."""

    def __init__(self) -> None:
        self.kept: list[Breach] = []
        self.counts: Counter[str] = Counter()

    def add(self, kind: str, text: str, lines: Sequence[int], at_ms: float = 0.0) -> None:
        """Add a breach."""
        self.counts[kind] += 1
        if self.counts[kind] <= _KEPT_MAX:
            self.kept.append(Breach(kind, text, tuple(sorted({line for line in lines if line})), at_ms))
