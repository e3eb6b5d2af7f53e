"""Run all checks over a history, line by line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sharecore.verify.check.breach import Breach, Breaches
from sharecore.verify.check.counts import Counts
from sharecore.verify.check.given_up import GivenUp
from sharecore.verify.check.offsets import Offsets
from sharecore.verify.check.order import Order
from sharecore.verify.check.overlap import Overlap
from sharecore.verify.check.settled import Settled
from sharecore.verify.check.stuck import Stuck
from sharecore.verify.check.transactions import Transactions
from sharecore.verify.check.world import Check, World
from sharecore.verify.check.writes import Writes
from sharecore.verify.history import HistoryError, Op, Progress, pick, read
from sharecore.verify.timeline import Timeline

_EVERY = 1 << 12
_THIN_PAGES = 4096
_THIN = 16


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a check.

    Args:
        header: the first line of the history.
        operations: line counts by operation and outcome.
        records: how often records were sent, read, delivered or acknowledged.
        unchecked: confirmed records at offsets that no reader reached, so that they are unchecked.
        breaches: the first of each kind.
        counts: the number of each kind.
        shown: the text of the lines that breaches refer to.
        timeline: rates and latencies.
    """

    header: Op
    operations: Counter[tuple[str, str]]
    records: int
    unchecked: int
    breaches: Sequence[Breach]
    counts: Counter[str]
    shown: dict[int, str]
    timeline: Timeline


def check(paths: Sequence[Path], progress: Callable[[int], None] = lambda _: None) -> Result:
    """Check a history; several files are parts of one history.

    Args:
        progress: called now and then with the number of bytes read.

    Raises:
        HistoryError: the files are not a history.
        OSError: a file cannot be read.
    """
    breaches = Breaches()
    world = World(breaches)
    header: Op = {}
    operations: Counter[tuple[str, str]] = Counter()
    number = 0
    op: Op = {}
    writes, timeline = Writes(world), Timeline()
    checks: list[Check] = []
    try:
        for number, op in read(paths, Progress(progress)):
            if number == 1:
                header = op
                checks = _checks(world, writes, header)
            operations[op["op"], op.get("outcome", "ok")] += 1
            world.process(number, op)
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
        raise HistoryError(f"line {number} ({op.get('op')}) is invalid: {error}") from None
    named = frozenset(line for breach in breaches.kept for line in breach.lines)
    shown = pick(paths, named)
    return Result(
        header, operations, world.records, writes.unchecked, breaches.kept, breaches.counts, shown, timeline
    )


def _checks(world: World, writes: Writes, header: Op) -> list[Check]:
    transactions = Transactions(world)
    checks: list[Check] = [
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
    """Refuse sparse numbers, for which the tables would take all memory."""
    pages = world.pages_made()
    if pages > _THIN_PAGES and pages * _THIN > world.records:
        raise HistoryError(
            f"ids or offsets are too sparse: {world.records} of them on {pages} pages. Number the records "
            "from 0"
        )
