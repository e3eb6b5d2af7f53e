"""Raw requests to Apache Kafka and to sharecore in lock step, their answers compared field for field.

python -m tests.differential.wire [--families NAME ...] [--seed S] [--requests N]
python -m tests.differential.wire --replay SCRIPT
"""

from __future__ import annotations

import argparse
import secrets
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.differential.wire.families import FAMILIES, OF_NODES
from tests.differential.wire.run import Run, broker_and_node, brokers, play, report
from tests.differential.wire.script import Stage, from_lines
from tests.harness.broker import ROOT


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; 0 without a difference that has no name, 1 with one."""
    arguments = _parser().parse_args(argv)
    libs = ROOT / f"build/jars/kafka-{arguments.kafka}"
    if not libs.is_dir():
        print(
            f"no {libs}: make jars{'-' + arguments.kafka if arguments.kafka != '4.3.1' else ''}",
            file=sys.stderr,
        )
        return 2
    if arguments.replay:
        return _replay(arguments.replay, libs, through=arguments.through)
    seed = secrets.randbits(40) if arguments.seed is None else arguments.seed
    families = arguments.families or (OF_NODES if arguments.through else list(FAMILIES))
    out = arguments.out or Path(tempfile.mkdtemp(prefix="wire-"))
    out.mkdir(parents=True, exist_ok=True)
    print(f"seed {seed}, Apache Kafka {arguments.kafka}, families {' '.join(families)}", flush=True)
    with broker_and_node(libs) if arguments.through else brokers(libs) as player:
        stage = Stage(arguments.kafka, restarts=not arguments.through, patient=True)
        run = Run(player, out, _say, stage, shrink_seconds=arguments.shrink_seconds)
        try:
            play(
                run,
                families,
                seed,
                requests=arguments.requests,
                lives=arguments.lives,
                kinds_max=arguments.differences,
                seconds=arguments.seconds,
                progress=_say,
            )
        except KeyboardInterrupt:
            print("interrupted; so far:")
    _say("\n".join(run.table()))
    differing = sum(run.kinds.values())
    print(f"{run.requests} requests, {differing} scenarios differ, in {len(run.kinds)} ways")
    return 1 if differing else 0


def _replay(file: Path, libs: Path, *, through: bool) -> int:
    with broker_and_node(libs) if through else brokers(libs) as player:
        played = player.replay(from_lines(file.read_text().splitlines()), watch=_say)
    if played.differences:
        _say(report("a script", 0, file, played))
        return 1
    print(f"{played.requests} requests, no difference")
    return 0


def _say(text: str) -> None:
    print(text, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.differential.wire", description=__doc__)
    parser.add_argument("--requests", type=int, default=50_000, metavar="N", help="at least so many (50000)")
    parser.add_argument(
        "--lives", type=int, default=sys.maxsize, metavar="N", help="at most so many scenarios"
    )
    parser.add_argument("--seconds", type=float, default=float("inf"), metavar="S", help="at most so long")
    parser.add_argument("--seed", type=int, metavar="S", help="of the first scenarios; default: a fresh one")
    parser.add_argument(
        "--families", nargs="+", choices=list(FAMILIES), metavar="NAME", help=", ".join(FAMILIES)
    )
    parser.add_argument(
        "--through", action="store_true", help="ours is a node of a tier in front of another Apache Kafka"
    )
    parser.add_argument("--kafka", default="4.3.1", metavar="VERSION", help="4.3.1 (default) or 4.4.0")
    parser.add_argument(
        "--differences", type=int, default=5, metavar="N", help="stop after so many kinds (5)"
    )
    parser.add_argument(
        "--shrink-seconds", type=float, default=30, metavar="S", help="for a shorter script (30)"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="where scripts go; default: a new one")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="play one script")
    return parser


if __name__ == "__main__":
    sys.exit(main())
