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

from tests.harness.broker import KAFKA_LIBS, ROOT, SHARECORE, Broker, free_port
from tests.harness.tier import ONE_COPY, SMALL, THREE_COPIES, VERSIONS, Cluster

from sharecore.verify.nemesis import OWN_BROKER
from sharecore.verify.nemesis.clock import Clock

APACHE = ("4.3.1", "4.4.0")
SETUPS = ("sharecore", *(f"apache-{version}" for version in APACHE), "tier", "tier-3", "bucket")
UPSTREAM_VERSION = "3.9.1"
RATES = {"tier-3": 150.0}
"""Records a second where the default is more than eight processes on two cores bear."""
_BUCKET = {"sharecore.durability": "bucket", "sharecore.bucket.puts.per.second": "100"}
_TIER = {
    "listeners": "PLAINTEXT://127.0.0.1:{port}",
    "advertised.listeners": "PLAINTEXT://127.0.0.1:{advertised}",
    "node.id": "{node}",
    "sharecore.tier.slots": "4",
    "sharecore.tier.state.topic": "__verify",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.min.session.timeout.ms": "6000",
    "group.share.session.timeout.ms": "6000",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "1000",
}


@contextmanager
def arguments_of(setup: str, home: Path) -> Iterator[list[str]]:
    """Yield the options of `sharecore verify --nemesis` for a setup; its upstream cluster runs meanwhile."""
    if setup == "sharecore":
        yield []
    elif setup == "bucket":
        settings = _BUCKET | {"node.id": "{node}", "sharecore.bucket.url": f"file://{home}/bucket"}
        (home / "bucket").mkdir()
        yield ["--nodes", "2", "--standby", "--broker", f"{OWN_BROKER} {_given(settings)}"]
    elif setup == "tier":
        upstream = Broker(home / "upstream", "apache", SMALL, libs=VERSIONS[UPSTREAM_VERSION])
        upstream.start()
        try:
            yield ["--broker", _tier(upstream.bootstrap, ONE_COPY)]
        finally:
            upstream.kill()
    elif setup == "tier-3":
        cluster = Cluster(home / "upstream", UPSTREAM_VERSION)
        links = []
        for each in cluster.brokers:
            port, link = free_port(), free_port()
            each.environment["APACHE_LISTENERS"] = f"NODES:{port}:{link}"
            links.append((link, port))
        cluster.start()
        try:
            relayed = ",".join(f"127.0.0.1:{link}" for link, _ in links)
            options = [f"--link={link}:{port}" for link, port in links]
            yield ["--nodes", "3", *options, "--broker", _tier(relayed, THREE_COPIES)]
        finally:
            cluster.kill()
    else:
        libs = KAFKA_LIBS.parent / f"kafka-{setup.removeprefix('apache-')}"
        script = ROOT / "tests/verify/apache.sh"
        command = f"bash {shlex.quote(str(script))} {shlex.quote(str(libs))} {{port}} {{advertised}} {{data}}"
        yield ["--broker", command]


def _tier(upstream: str, copies: dict[str, str]) -> str:
    return f"{shlex.join([SHARECORE, 'serve', '--upstream', upstream])} {_given(_TIER | copies)}"


def _given(settings: dict[str, str]) -> str:
    return " ".join(f"--set {shlex.quote(f'{name}={value}')}" for name, value in settings.items())


def run(setup: str, seed: int, minutes: float, workers: int, rate: float, results: Path) -> tuple[int, str]:
    """Run the tool on a set-up; return its exit status, and a row of the table of runs."""
    name = f"{setup}-{seed}"
    with (
        tempfile.TemporaryDirectory(prefix="verify-") as directory,
        arguments_of(setup, Path(directory)) as arguments,
    ):
        command = [SHARECORE, "verify", "--nemesis", "--seed", str(seed), "--minutes", str(minutes)]
        command += ["--workers", str(workers), "--output", str(results / f"{name}.jsonl")]
        command += ["--report", str(results / f"{name}.html")]
        # Apache Kafka does not start with libfaketime: a thread of the JVM waits forever
        if Clock.can_step and not setup.startswith("apache"):
            command.append("--step-clocks")
        command += ["--rate", str(rate), *arguments]
        with (results / f"{name}.log").open("w") as log:
            # the test must not use a broker from the environment
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
    parser.add_argument("--rate", type=float, default=400, help="records a second of all producers together")
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
            status, row = run(
                setup,
                seed,
                minutes,
                options.workers,
                min(options.rate, RATES.get(setup, options.rate)),
                options.results,
            )
            worst = max(worst, status)
            print(row, flush=True)
        seed += 1
    return worst


if __name__ == "__main__":
    sys.exit(main())
