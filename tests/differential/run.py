"""Random traces through the Rust engine, the reference and Apache Kafka."""

from __future__ import annotations

import argparse
import json
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.differential.compare import Count, Difference, against_apache, against_rust, operations
from tests.differential.generate import Generator
from tests.differential.minimize import minimize
from tests.differential.oracle import Oracle, OracleError
from tests.differential.profiles import PROFILES
from tests.differential.step import Operation, Step, replay

_TRACE_OPERATIONS = 150


@dataclass(slots=True)
class Run:
    """One comparison of many traces.

    Attributes:
        oracle: None leaves Apache Kafka out.
        rust: whether the Rust engine takes part.
        out: where failing traces are written.
    """

    oracle: Oracle | None
    rust: bool
    out: Path
    count: Count = field(default_factory=Count)
    differences: int = 0

    def trace(self, profile: str, seed: int) -> str | None:
        """Compare one trace; a text that tells how to see the difference again, None when there is none."""
        steps = list(Generator(seed, profile).run(_TRACE_OPERATIONS))
        self.count.operations += len(steps)
        ours_only = PROFILES[profile].ours_only
        oracle = None if ours_only else self.oracle
        difference, differs = self._compare(steps, oracle, self.count)
        if difference is None or differs is None:
            return None
        self.differences += 1
        short = minimize(operations(steps)[: difference.index + 1], differs, apache=not ours_only)
        shown, _ = self._compare(replay(short), oracle, Count())
        return self._report(profile, seed, short, shown or difference)

    def _compare(
        self, steps: Sequence[Step], oracle: Oracle | None, count: Count
    ) -> tuple[Difference | None, Callable[[list[Operation]], bool] | None]:
        if self.rust:
            difference = against_rust(steps)
            if difference is not None:
                return difference, lambda trace: against_rust(replay(trace)) is not None
        if oracle is not None:
            difference = against_apache(steps, oracle.run(operations(steps)), count)
            if difference is not None:
                return (
                    difference,
                    lambda trace: against_apache(replay(trace), oracle.run(trace), Count()) is not None,
                )
        return None, None

    def _report(self, profile: str, seed: int, trace: Sequence[Operation], difference: Difference) -> str:
        file = self.out / f"{profile}-{seed}.jsonl"
        file.write_text("".join(json.dumps(operation) + "\n" for operation in trace))
        left, right = (
            f"tests/oracle/oracle.sh trace {file}"
            if name == "apache"
            else f"python -m sharecore.trace --engine {name} {file}"
            for name in difference.names
        )
        return "\n".join(
            [
                f"DIFFERENCE in profile {profile}, seed {seed}; in short:",
                *(f"  {json.dumps(operation)}" for operation in trace),
                str(difference),
                f"see it again: diff <({left}) <({right})",
                f"the whole: python -m tests.differential.run --profiles {profile} --seed {seed} --traces 1",
            ]
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; 0 without a difference, 1 with one, 2 when it could not run."""
    arguments = _parser().parse_args(argv)
    seed = secrets.randbits(40) if arguments.seed is None else arguments.seed
    profiles = arguments.profiles or list(PROFILES)
    engines = set(arguments.engines)
    out = arguments.out or Path(tempfile.mkdtemp(prefix="differential-"))
    out.mkdir(parents=True, exist_ok=True)
    print(f"seed {seed}, profiles {' '.join(profiles)}", flush=True)
    try:
        oracle = Oracle() if "apache" in engines else None
        run = Run(oracle, "rust" in engines, out)
        _traces(run, profiles, seed, arguments)
    except OracleError as error:
        print(error, file=sys.stderr)
        return 2
    for name, times in sorted(run.count.known.items()):
        print(f"kept on purpose: {name}, {times} times (docs/decisions/differences-from-apache.md)")
    apache = f" ({run.count.apache} of them also by Apache Kafka)" if oracle else ""
    print(f"{run.count.operations} operations{apache}, {run.differences} differences")
    return 1 if run.differences else 0


def _traces(run: Run, profiles: Sequence[str], seed: int, arguments: argparse.Namespace) -> None:
    started = told = time.monotonic()
    for number in range(sys.maxsize):
        if run.count.operations >= arguments.operations or number == arguments.traces:
            break
        if arguments.seconds is not None and time.monotonic() - started > arguments.seconds:
            break
        text = run.trace(profiles[number % len(profiles)], seed + number // len(profiles))
        if text is not None:
            print(text, flush=True)
            if run.differences >= arguments.differences:
                break
        if time.monotonic() - told > 30:
            told = time.monotonic()
            print(f"  {run.count.operations} operations, {told - started:.0f} s", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.differential.run", description=__doc__)
    parser.add_argument("--operations", type=int, default=100_000, metavar="N", help="at least so many")
    parser.add_argument("--traces", type=int, metavar="N", help="at most so many traces")
    parser.add_argument("--seconds", type=float, metavar="S", help="at most so long")
    parser.add_argument("--seed", type=int, metavar="S", help="of the first trace; default: a fresh one")
    parser.add_argument(
        "--profiles", nargs="+", choices=list(PROFILES), metavar="NAME", help=", ".join(PROFILES)
    )
    parser.add_argument(
        "--engines",
        nargs="+",
        choices=["rust", "apache"],
        default=["rust", "apache"],
        help="what the reference is compared with (default: both)",
    )
    parser.add_argument("--differences", type=int, default=5, metavar="N", help="stop after so many (5)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where failing traces go; default: a new one")
    return parser


if __name__ == "__main__":
    sys.exit(main())
