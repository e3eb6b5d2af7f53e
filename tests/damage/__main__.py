"""Damage copies of a data directory: the broker says so or has all that was confirmed; doctor agrees."""

from __future__ import annotations

import argparse
import multiprocessing
import random
import re
import shutil
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, TimeoutError
from pathlib import Path
from typing import NamedTuple

from tests.damage.directory import DAMAGES, SETTINGS, broken, load, make, save, small_segments
from tests.harness.running import RunningBroker

from sharecore.admin.doctor import data_directory

_SECONDS_MAX = 120
_PLACE = re.compile(r"[0-9a-f]{16}\.\w+|meta\.properties|\bformat\b|\.journal|\.lock|offset \d+")
_REMEDY = re.compile(r"sharecore store|salvage|restore|backup|remove|put .* back|delete", re.IGNORECASE)


class Outcome(NamedTuple):
    """What became of a damaged directory.

    Args:
        kind: whole, told (a client or the log is told of the damage), refused, or what is wrong.
        text: where the damage is, and what was said.
    """

    damage: str
    kind: str
    text: str


def judge(base: str, seed: int) -> Outcome:
    """Damage a copy, ask doctor, and start a broker on it."""
    rng = random.Random(seed)
    name = rng.choice(list(DAMAGES))
    with tempfile.TemporaryDirectory(prefix="damage-") as directory:
        copy = Path(directory) / "data"
        shutil.copytree(Path(base) / "data", copy)
        where = DAMAGES[name](copy, rng)
        promise = load(Path(base) / "promise.json")
        bad = [each for each in data_directory(copy) if each.level == "bad"]
        doctor = "; ".join(f"{each.what} {each.advice}" for each in bad)
        with small_segments():
            broker = RunningBroker(copy, SETTINGS)
            try:
                broker.start()
            except Exception as refusal:
                return _refused(name, where, str(refusal), doctor)
            try:
                missing = broken(broker, promise)
            finally:
                broker.stop()
    said = f"{where}; missing: {missing[:3]}; doctor: {doctor or 'good'}"
    silent = [each for each in missing if "told" not in each]
    if silent and not bad:
        return Outcome(name, "LOST IN SILENCE", said)
    if missing and not bad:
        return Outcome(name, "DOCTOR SAYS GOOD", said)
    return Outcome(name, "told" if missing else "whole", said)


def _refused(name: str, where: str, refusal: str, doctor: str) -> Outcome:
    said = f"{where}; refused: {refusal}; doctor: {doctor or 'good'}"
    if not doctor:
        return Outcome(name, "DOCTOR SAYS GOOD", said)
    if not _PLACE.search(refusal):
        return Outcome(name, "REFUSED WITHOUT A PLACE", said)
    if not _REMEDY.search(refusal):
        return Outcome(name, "REFUSED WITHOUT A REMEDY", said)
    return Outcome(name, "refused", said)


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
