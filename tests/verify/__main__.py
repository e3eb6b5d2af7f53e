"""The same seeds and workload on each set-up, broken meanwhile: `make verify`, `make night`."""

from __future__ import annotations

import argparse
import os
import random
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.harness.broker import KAFKA_LIBS, ROOT, SHARECORE, Broker
from tests.harness.tier import ONE_COPY, SMALL

APACHE = ("4.3.1", "4.4.0")
SETUPS = ("sharecore", *(f"apache-{version}" for version in APACHE), "tier")


@contextmanager
def broker_of(setup: str, home: Path) -> Iterator[str]:
    """The command line of the broker of a set-up; what stands behind it runs meanwhile, unbroken."""
    if setup == "sharecore":
        yield ""
    elif setup == "tier":
        upstream = Broker(home / "upstream", "apache", SMALL, libs=KAFKA_LIBS.parent / "kafka-3.9.1")
        upstream.start()
        settings = ONE_COPY | {
            "listeners": "PLAINTEXT://127.0.0.1:{port}",
            "advertised.listeners": "PLAINTEXT://127.0.0.1:{advertised}",
            "sharecore.tier.slots": "4",
            "sharecore.tier.state.topic": "__verify",
            "group.share.min.record.lock.duration.ms": "1000",
            "group.share.min.session.timeout.ms": "6000",
            "group.share.session.timeout.ms": "6000",
            "group.share.min.heartbeat.interval.ms": "500",
            "group.share.heartbeat.interval.ms": "1000",
        }
        command = [SHARECORE, "serve", "--upstream", upstream.bootstrap]
        for name, value in settings.items():
            command += ["--set", f"{name}={value}"]
        try:
            yield shlex.join(command)
        finally:
            upstream.kill()
    else:
        libs = KAFKA_LIBS.parent / f"kafka-{setup.removeprefix('apache-')}"
        script = ROOT / "tests/verify/apache.sh"
        yield f"bash {shlex.quote(str(script))} {shlex.quote(str(libs))} {{port}} {{advertised}} {{data}}"


def run(setup: str, seed: int, minutes: float, workers: int, results: Path) -> tuple[int, str]:
    """Run the tool on a set-up; return its exit status, and a row of the table of runs."""
    name = f"{setup}-{seed}"
    with (
        tempfile.TemporaryDirectory(prefix="verify-") as directory,
        broker_of(setup, Path(directory)) as broker,
    ):
        command = [SHARECORE, "verify", "--nemesis", "--seed", str(seed), "--minutes", str(minutes)]
        command += ["--workers", str(workers), "--output", str(results / f"{name}.jsonl")]
        command += ["--report", str(results / f"{name}.html")]
        if broker:
            command += ["--broker", broker]
        with (results / f"{name}.log").open("w") as log:
            # a broker on the environment's address is not what is to be tried
            environment = os.environ | {"SHARECORE_BOOTSTRAP_SERVER": ""}
            done = subprocess.run(command, stdout=log, stderr=log, env=environment)
    verdict = (results / f"{name}.log").read_text().strip().splitlines()[-2:]
    faults = operations = 0
    if (results / f"{name}.jsonl").exists():
        with (results / f"{name}.jsonl").open() as lines:
            for line in lines:
                operations += 1
                faults += line.startswith('{"op":"fault"')
    found = {0: "no breach", 1: "BREACH"}.get(done.returncode, f"did not run: {' '.join(verdict)}")
    return done.returncode, f"| {setup} | {seed} | {minutes:g} | {operations:,} | {faults} | {found} |"


def main() -> int:
    """Run as the options say."""
    parser = argparse.ArgumentParser(prog="python -m tests.verify", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30, help="of load, of all runs together")
    parser.add_argument("--each", type=float, default=3.5, help="minutes of load of one run")
    parser.add_argument("--workers", type=int, default=12)
    parser.add_argument(
        "--seed", type=int, default=None, help="of the first round; the next one has the next"
    )
    parser.add_argument("--setup", choices=SETUPS, action="append", help="only this; may be repeated")
    parser.add_argument("--results", type=Path, default=ROOT / "build/verify")
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    seed = random.SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    setups = options.setup or list(SETUPS)
    worst, left = 0, options.minutes
    print("| set-up | seed | minutes | operations | faults | found |\n|---|---|---|---|---|---|", flush=True)
    while left > 0:
        for setup in setups:
            if left <= 0:
                break
            minutes = min(options.each, left)
            left -= minutes
            status, row = run(setup, seed, minutes, options.workers, options.results)
            worst = max(worst, status)
            print(row, flush=True)
        seed += 1
    return worst


if __name__ == "__main__":
    sys.exit(main())
