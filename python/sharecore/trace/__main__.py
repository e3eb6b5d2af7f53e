"""The command line."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import IO

from sharecore.trace.bench import bench_combine, bench_python, bench_rust
from sharecore.trace.driver import Driver, coalesced
from sharecore.trace.engines import Engine, engine
from sharecore.trace.operation import TraceError, integer, state_batches

_EPILOG = """\
A trace is a text file with one JSON object a line:
  {"op": "init", "start_offset": 0, "state_batches": [], "max_delivery_count": 5, "max_inflight": 2000,
   "lock_ms": 30000, "renew_enabled": true, "dead_letters": false}  a new partition; all may be left out
  {"op": "acquire", "member": "m", "batches": [[0, 9]], "max_fetch_records": 500, "batch_size": 500,
   "mode": "batch_optimized" or "record_limit", "fetch_offset": the next fetch offset}
  {"op": "ack", "member": "m", "batches": [{"first": 0, "last": 9, "types": [1]}]}
   types, one or one an offset: 0 gap, 1 accept, 2 release, 3 reject, 4 renew
  {"op": "release", "member": "m"}     {"op": "advance", "ms": 30000}     {"op": "lso", "offset": 5}
  {"op": "writes", "hold": false, "fail_next": 0, "error_code": -1}   how writes are answered from now on
  {"op": "complete", "n": all, "error_code": 0}                       answers held writes
  {"op": "letters", "n": all}      the dead letters of the n oldest operations that made some due are written
  {"op": "reload"}                                                    a new partition from what was persisted

Three operations more, which the oracle does not know:
  {"op": "archive", "first": 0, "last": 9}                        offsets that hold no record for the group
  {"op": "advance", "ms": 30000, "keep": ["m"], "keep_ms": 3600000}   locks of these members go on
  {"op": "configure", "max_delivery_count": 3, "max_inflight": 100, "lock_ms": 1000, "renew_enabled": false}

One result line an operation in the format of tests/oracle, so that `diff` compares an engine with Apache's.
A --combine file has {"existing": [[first, last, state, count], ...], "new": [...], "start_offset": n} a line.

Exit status: 0 done, 2 bad usage or a malformed trace (the line is named on standard error).
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    arguments = _parser().parse_args(argv)
    try:
        if arguments.bench:
            return _bench(arguments)
        chosen = engine(arguments.engine)
        with _open(arguments.file) as lines:
            replay = _combine if arguments.combine else _trace
            for result in replay(chosen, lines):
                _print(result, flush=arguments.file == "-")
    except (OSError, UnicodeDecodeError) as error:
        return _fail(f"{arguments.file}: {error}")
    except TraceError as error:
        return _fail(f"{arguments.file}: {error}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m sharecore.trace",
        description="Replay a trace of share-partition operations and print what came of each.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "file", metavar="FILE", help="the trace; - reads standard input and answers each line at once"
    )
    parser.add_argument(
        "--engine", choices=["rust", "reference"], default="rust", help="default: %(default)s"
    )
    parser.add_argument(
        "--combine", action="store_true", help="FILE holds state batches to combine, not operations"
    )
    parser.add_argument("--bench", action="store_true", help="time the replay and print one JSON line")
    parser.add_argument(
        "--through",
        choices=["rust", "python"],
        default="rust",
        help="what --bench times: the Rust engine alone, from prebuilt input (the default), or calls from "
        "Python to the engine chosen, conversions included",
    )
    parser.add_argument(
        "--runs", type=_count(1), default=5, metavar="N", help="timed runs (default: %(default)s)"
    )
    parser.add_argument(
        "--warmup", type=_count(0), default=1, metavar="W", help="untimed runs before (default: %(default)s)"
    )
    return parser


def _count(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"at least {least}")
        return value

    return parse


def _open(file: str) -> IO[str]:
    return (
        open(sys.stdin.fileno(), encoding="utf-8", closefd=False)
        if file == "-"
        else open(file, encoding="utf-8")
    )


def _objects(lines: IO[str]) -> Iterator[tuple[int, dict[str, object]]]:
    number = 0
    while line := lines.readline():
        number += 1
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError as error:
            raise TraceError(f"line {number}: not JSON: {error}") from error
        if not isinstance(value, dict):
            raise TraceError(f"line {number}: not a JSON object")
        yield number, value


def _trace(chosen: Engine, lines: IO[str]) -> Iterator[dict[str, object]]:
    driver = Driver(chosen)
    for number, operation in _objects(lines):
        yield _answer(driver, number, operation)


def _answer(driver: Driver, number: int, operation: dict[str, object]) -> dict[str, object]:
    try:
        return driver.apply(operation)
    except TraceError as error:
        raise TraceError(f"line {number}: {error}") from error


def _combine(chosen: Engine, lines: IO[str]) -> Iterator[dict[str, object]]:
    for number, case in _objects(lines):
        try:
            existing, new = state_batches(case.get("existing", ())), state_batches(case.get("new", ()))
            combined = chosen.combine(existing, new, integer(case.get("start_offset", -1)))
        except (KeyError, IndexError, TypeError, OverflowError) as error:
            raise TraceError(f"line {number}: malformed case: {error!r}") from error
        yield {"combined": coalesced(combined)}


def _bench(arguments: argparse.Namespace) -> int:
    if arguments.file == "-":
        return _fail("--bench reads a file, not standard input")
    if arguments.through == "rust":
        if arguments.engine != "rust":
            return _fail("--bench times the Rust engine; for the reference add --through python")
        report = bench_rust(arguments.file, arguments.runs, arguments.warmup)
    else:
        through = bench_combine if arguments.combine else bench_python
        report = through(engine(arguments.engine), arguments.file, arguments.runs, arguments.warmup)
    _print(report)
    return 0


def _print(value: dict[str, object], *, flush: bool = True) -> None:
    print(json.dumps(value, separators=(",", ":")), flush=flush)


def _fail(message: str) -> int:
    print(message, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
