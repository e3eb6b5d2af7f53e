"""Attack a broker in every way that the cases know, and print what each cost (`make abuse`).

Each case runs against a broker of its own settings while a client that means well measures its waits.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import sys
import tempfile
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from tests.abuse.case import MB, Case, cases
from tests.abuse.judge import Cost, judge
from tests.abuse.subject import Subject
from tests.harness.broker import SHARECORE, Broker
from tests.harness.tier import SMALL, VERSIONS

_HEAD = (
    f"{'case':44} {'result':6} {'small s':>7} {'large s':>7} {'record s':>8} {'took s':>6} "
    f"{'peak MB':>7} {'stays MB':>8} {'log kB':>7} {'disk MB':>7}"
)


def _line(case: Case, cost: Cost) -> str:
    waits = cost.waits
    return (
        f"{case.title:44} {'FAIL' if cost.faults else 'pass':6} "
        f"{waits.small:7.2f} {waits.large:7.2f} {waits.record:8.2f} "
        f"{cost.seconds:6.1f} {cost.peak_bytes / MB:7.0f} {cost.memory_bytes / MB:8.0f} "
        f"{cost.log_bytes / 1024:7.0f} {cost.disk_bytes / MB:7.0f}"
    )


def _attack(chosen: list[Case], wait_s: float, program: str, log: Path | None, upstream: str) -> int:
    failed = 0
    print(_HEAD, flush=True)
    for number, (_, together) in enumerate(groupby(chosen, key=lambda each: each.subject)):
        ours = list(together)
        with tempfile.TemporaryDirectory() as home, contextlib.ExitStack() as stack:
            subject: Subject | None = None
            for case in ours:
                if subject is None or not subject.is_running():
                    directory = Path(home) / case.name
                    subject = Subject(
                        directory, case.settings, secure=case.secure, program=program, upstream=upstream
                    )
                    stack.callback(subject.stop)
                    subject.start()
                cost = judge(case, subject, wait_s)
                print(_line(case, cost), flush=True)
                for fault in cost.faults:
                    print(f"    {fault}", flush=True)
                failed += bool(cost.faults)
                if cost.faults and case.parts:
                    _find_culprits(case, subject, wait_s)
            if log is not None and subject is not None:
                (log / f"broker-{number}.log").write_text(subject.log_text())
    return failed


def _find_culprits(case: Case, subject: Subject, wait_s: float) -> None:
    """Try each part of an attack alone, and print those that cost too much."""
    for name, attack in case.parts:
        if not subject.is_running():
            subject.start()
        cost = judge(replace(case, attack=attack, name=f"{case.name}: {name}"), subject, wait_s)
        if cost.faults:
            print(f"    alone: {name}: {'; '.join(cost.faults)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="make abuse", description=__doc__)
    parser.add_argument(
        "--only", nargs="+", metavar="CASE", help="kinds or cases, by the beginning of their names"
    )
    parser.add_argument("--quick", action="store_true", help="those that `make test` runs")
    parser.add_argument("--list", action="store_true", help="name the cases")
    parser.add_argument(
        "--wait", type=float, default=0.3, help="seconds that others may wait (1 on a loaded machine)"
    )
    parser.add_argument("--seed", type=int, default=1, help="what the bytes that lie are drawn from")
    parser.add_argument("--program", default=SHARECORE, help="the sharecore to attack")
    parser.add_argument("--logs", type=Path, help="a directory for the logs of the brokers")
    parser.add_argument(
        "--upstream",
        default="",
        metavar="HOST:PORT,...",
        help="attack nodes of a tier in front of this cluster, which is left full of topics",
    )
    parser.add_argument(
        "--tier",
        choices=sorted(VERSIONS),
        help="start an Apache Kafka of this version, and attack nodes of a tier in front of it",
    )
    arguments = parser.parse_args()
    os.environ["ABUSE_SEED"] = str(arguments.seed)
    chosen = [each for each in cases() if each.quick or not arguments.quick]
    if arguments.only:
        chosen = [each for each in chosen if each.title.startswith(tuple(arguments.only))]
    if arguments.list:
        for each in chosen:
            print(each.title)
        return
    if not chosen:
        raise SystemExit("no case has such a name; --list names them")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 65536)), hard))
    print(f"seed {arguments.seed}", flush=True)
    with contextlib.ExitStack() as stack:
        upstream = arguments.upstream
        if arguments.tier:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            cluster = Broker(home, "apache", SMALL, libs=VERSIONS[arguments.tier])
            stack.callback(cluster.kill)
            cluster.start()
            upstream = cluster.bootstrap
        failed = _attack(chosen, arguments.wait, arguments.program, arguments.logs, upstream)
    print(f"{len(chosen)} cases, {failed} failed")
    sys.stdout.flush()
    os._exit(1 if failed else 0)  # hanging attack threads must not keep the process alive


if __name__ == "__main__":
    main()
