"""Runs all checks over a history, line by line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sharecore.verify.check.breach import Breach, Breaches
from sharecore.verify.check.counts import Counts
from sharecore.verify.check.given_up import GivenUp
from sharecore.verify.check.offsets import Offsets
from sharecore.verify.check.order import Order
from sharecore.verify.check.overlap import Overlap
from sharecore.verify.check.settled import Settled
from sharecore.verify.check.stuck import Stuck
from sharecore.verify.check.transactions import Transactions
from sharecore.verify.check.world import World
from sharecore.verify.check.writes import Writes
from sharecore.verify.history import HistoryError, Progress, pick, read
from sharecore.verify.timeline import Timeline

_EVERY = 1 << 12
_THIN_PAGES = 4096
_THIN = 16


@dataclass(frozen=True, slots=True)
class Result:
    """What a history shows.

    Args:
        header: the first line of the history.
        operations: how many lines there are, by operation and outcome.
        records: how often a record was sent, read, delivered or acknowledged.
        unchecked: confirmed records at offsets that nobody read, so that nothing is known of them.
        breaches: the first of each kind.
        counts: how many there are of each kind.
        shown: the lines that breaches name, as text.
        timeline: rates and latencies.
    """

    header: dict[str, Any]
    operations: Counter[tuple[str, str]]
    records: int
    unchecked: int
    breaches: Sequence[Breach]
    counts: Counter[str]
    shown: dict[int, str]
    timeline: Timeline


def check(paths: Sequence[Path], progress: Callable[[int], None] = lambda _: None) -> Result:
    """Check a history; several files are one history in parts.

    Args:
        progress: called from time to time with the number of bytes read.

    Raises:
        HistoryError: the files are no history.
        OSError: a file cannot be read.
    """
    breaches = Breaches()
    world = World(breaches)
    header: dict[str, Any] = {}
    operations: Counter[tuple[str, str]] = Counter()
    number = 0
    op: dict[str, Any] = {}
    writes, timeline = Writes(world), Timeline()
    checks: list[Any] = []
    try:
        for number, op in read(paths, Progress(progress)):
            if number == 1:
                header = op
                checks = _checks(world, writes, header)
            operations[op["op"], op.get("outcome", "ok")] += 1
            world.tell(number, op)
            timeline.add(op)
            if not number % _EVERY:
                _check_density(world)
        for each in checks:
            each.finish()
    except HistoryError:
        raise
    except KeyError as error:
        raise HistoryError(f"line {number} ({op.get('op')}) lacks {error}") from None
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        raise HistoryError(f"line {number} ({op.get('op')}) cannot be understood: {error}") from None
    named = frozenset(line for breach in breaches.kept for line in breach.lines)
    shown = pick(paths, named)
    return Result(
        header, operations, world.records, writes.unchecked, breaches.kept, breaches.counts, shown, timeline
    )


def _checks(world: World, writes: Writes, header: dict[str, Any]) -> list[Any]:
    transactions = Transactions(world)
    checks = [
        writes,
        Order(world),
        transactions,
        Offsets(world),
        Settled(world),
        Overlap(world, float(header.get("clock_uncertainty_ms", 1.0))),
        Counts(world),
        GivenUp(world, transactions),
        Stuck(world, transactions, float(header.get("bound_ms", 30_000.0))),
    ]
    world.attach(checks)
    return checks


def _check_density(world: World) -> None:
    """Refuse numbers that are spread so thin that the tables would take all memory."""
    pages = world.pages_made()
    if pages > _THIN_PAGES and pages * _THIN > world.records:
        raise HistoryError(
            f"ids or offsets are spread too thin: {world.records} of them on {pages} pages. "
            "Number the records from 0 on"
        )
