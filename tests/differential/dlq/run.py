"""Both brokers, and scenarios on them side by side."""

from __future__ import annotations

import secrets
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.differential.dlq import (
    answers,
    attempts,
    clients,
    edges,
    endings,
    queues,
    scenarios,
    sources,
    upheavals,
    waiting,
)
from tests.differential.dlq.gate import Gate
from tests.differential.dlq.known import Difference, unexplained
from tests.differential.dlq.registry import SCENARIOS
from tests.differential.dlq.side import Side
from tests.differential.dlq.world import Seen, World

_FILES = (scenarios, endings, waiting, edges, sources, queues, answers, upheavals, clients, attempts)
"""Where the scenarios stand."""


@contextmanager
def brokers(kinds: Sequence[str] = ("apache", "sharecore"), **more: str) -> Iterator[tuple[Side, Side]]:
    """Two brokers, new and ready; killed at the end."""
    with tempfile.TemporaryDirectory(prefix="dlq-") as home:
        settings = {key.replace("_", "."): value for key, value in more.items()}
        gates = [Gate() if kind == "apache" else None for kind in kinds]
        first, second = (
            Side(Path(home) / f"{at}-{kind}", kind, settings, gates[at]) for at, kind in enumerate(kinds)
        )
        try:
            with ThreadPoolExecutor(2) as both:
                list(both.map(Side.start, (first, second)))
            yield first, second
        finally:
            first.stop()
            second.stop()
            for gate in gates:
                if gate is not None:
                    gate.close()


def compare(
    sides: tuple[Side, Side],
    wanted: Sequence[str],
    say: Callable[[str], object],
    *,
    together: int = 1,
) -> tuple[dict[str, list[Difference]], Counter[str]]:
    """Plays scenarios on both brokers; gives the differences without a name, and counts of those with one.

    What differs is played again: the brokers differ where it does so twice.

    Args:
        together: how many at a time.
    """
    counts: Counter[str] = Counter()
    salt = secrets.token_hex(2)

    def one(name: str) -> tuple[str, list[Difference]]:
        found: list[Difference] = []
        for attempt in "ab":
            known: Counter[str] = Counter()
            try:
                seen = both(name, salt + attempt)
            except RuntimeError as error:  # such as a broker that has just started and is not ready yet
                say(f"{name}: {error!r}, by {error.__cause__!r}")
                found = [(("failed",), str(error), repr(error.__cause__))]
                continue
            found = unexplained(name, seen[0], seen[1], known)
            if not found:
                break
        counts.update(known)
        return name, found

    def both(name: str, salt: str) -> list[Any]:
        with ThreadPoolExecutor(2) as pair:
            return list(pair.map(lambda side: _played(side, name, salt), sides))

    differing = {}
    with ThreadPoolExecutor(together) as pool:
        for name, found in pool.map(one, wanted):
            say(f"{name}: {'differs' if found else 'the same'}")
            for path, apache, ours in found:
                say(f"  {'.'.join(map(str, path))}\n    apache: {_short(apache)}\n    ours:   {_short(ours)}")
            if found:
                differing[name] = found
    return differing, counts


def play(side: Side, name: str, salt: str) -> Seen:
    """Plays one scenario on one broker."""
    return SCENARIOS[name](World(side, f"{salt}-{name.replace('_', '-')}"))


def _played(side: Side, name: str, salt: str) -> Any:
    try:
        return play(side, name, salt)
    except Exception as error:
        raise RuntimeError(f"{name} on {side.kind}") from error


def _short(seen: Any) -> str:
    text = repr(seen)
    return text if len(text) < 600 else f"{text[:600]}..."
