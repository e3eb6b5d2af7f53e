"""Runs Apache's own tests on nodes in front of an Apache Kafka that knows of no share group: `--help`."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.harness.broker import ROOT, Broker
from tests.harness.tier import VERSIONS, Cluster

from sharecore.tier.membership.view import FIRST_NODE_ID

HERE = Path(__file__).parent
_CLUSTER = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    "log.cleaner.enable": "false",
}
SEVERAL = (
    "testComplexShareConsumer|testShareConsumerAfterCoordinatorMovement|testSharePartitionLagOn.*Movement|"
    "testLeaderRestart.*|testConsumerCloseOnBrokerShutdown"
)
"""Tests that three nodes are for, and those that start one of them anew; those of racks bring an assignor in
Java, which no node has.
"""


def run(version: str, nodes: int, scratch: Path, arguments: list[str]) -> int:
    """One run of the suite, with a cluster of its own; returns the status of the suite."""
    shutil.rmtree(scratch, ignore_errors=True)
    home = scratch / "cluster"
    # as many brokers as nodes, because tests for three nodes create topics with three replicas
    cluster: Cluster | Broker
    if nodes > 1:
        cluster = Cluster(home, version, _CLUSTER | {"min.insync.replicas": "1"})
    else:
        cluster = Broker(home, "apache", _CLUSTER, libs=VERSIONS[version])
    cluster.start()
    environment = os.environ | {
        "BROKER_CMD": str(HERE / "brokers/tier.sh"),
        "UPSTREAM": cluster.bootstrap,
        "PYTHON": sys.executable,
        "MAX_BROKERS": str(nodes),
        "SUITE_FIRST_ID": str(FIRST_NODE_ID),
        "SUITE_SCRATCH": str(scratch),
        "SUITE_RESULTS": str(scratch / "results"),
    }
    if nodes > 1:
        environment["CONTROLLER_CMD"] = environment["BROKER_CMD"]
    try:
        with (scratch / "table.txt").open("wb") as table:
            return subprocess.run([HERE / "run.sh", *arguments], env=environment, stdout=table).returncode
    finally:
        cluster.kill()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, epilog="Other arguments go to run.sh.")
    parser.add_argument("--upstream", choices=VERSIONS, default="3.9.1", help="version of the cluster")
    parser.add_argument(
        "--nodes",
        type=int,
        choices=(1, 3),
        default=1,
        help="nodes, and brokers behind them; with three, without a filter, the tests that take several",
    )
    parser.add_argument(
        "--filter", help="methods whose name matches; without it all, in two halves at a time"
    )
    known, arguments = parser.parse_known_args()
    scratch = ROOT / "build/conformance" / f"tier-{known.upstream}-{known.nodes}"
    filters = {half: f"test[{half}].*" for half in ("A-L", "M-Z")}
    if known.filter or known.nodes > 1:
        filters = {"all": known.filter or SEVERAL}
    parts = {name: ["--filter", each, *arguments] for name, each in filters.items()}
    with ThreadPoolExecutor() as pool:
        runs = [
            pool.submit(run, known.upstream, known.nodes, scratch / part, given)
            for part, given in parts.items()
        ]
        statuses = [each.result() for each in runs]
    for part in parts:
        print(part, (scratch / part / "table.txt").read_text().splitlines()[-1])
    return max(statuses)


if __name__ == "__main__":
    sys.exit(main())
