"""Damage copies of a data directory: the broker says so or has all that was confirmed; doctor agrees."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, TimeoutError
from pathlib import Path

from tests.damage.directory import make, save
from tests.damage.judge import Outcome, judge

_SECONDS_MAX = 120


def main() -> int:
    """Run as the options say; return 1 where something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.damage", description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="directories")
    parser.add_argument("--seed", type=int, default=1, help="of the first one; the next one has the next")
    options = parser.parse_args()
    outcomes: Counter[tuple[str, str]] = Counter()
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="damage-base-") as base:
        save(make(Path(base) / "data"), Path(base) / "promise.json")
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(2, mp_context=spawn) as pool:
            seeds = range(options.seed, options.seed + options.count)
            running = [(seed, pool.submit(judge, base, seed)) for seed in seeds]
            for seed, future in running:
                try:
                    outcome = future.result(_SECONDS_MAX)
                except TimeoutError:
                    outcome = Outcome("?", "HANGS", "")
                except Exception as error:
                    outcome = Outcome("?", "FAILS", "".join(traceback.format_exception(error)))
                outcomes[outcome.damage, outcome.kind] += 1
                if outcome.kind.isupper():
                    wrong += 1
                    print(f"seed {seed}: {outcome.damage}: {outcome.kind}: {outcome.text}", flush=True)
    print("| damage | outcome | directories |\n|---|---|---|")
    for (damage, kind), count in sorted(outcomes.items()):
        print(f"| {damage.replace('_', ' ')} | {kind} | {count} |")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
