"""Nodes in front of three brokers, under load, through all that may happen to them (`make tier`).

RECORDS (2,000,000) are produced; 20 share consumers, confluent-kafka's, ours and Java's, settle them while
nodes join, are drained, end, are killed, stand still and are cut off, and while brokers are killed one at a
time, and one of them loses sight of the others. A ledger outside finds out what was lost, and what was
settled twice. What else does not go as it should is told at the end: the story goes on.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.harness import java
from tests.harness.broker import SHARECORE, Broker
from tests.harness.clients import configure_group
from tests.harness.links import Links
from tests.harness.running import Client
from tests.harness.tier import Cluster, Nodes, wait_until
from tests.harness.tier_ledger import Ledger

from sharecore.protocol import ApiKey
from sharecore.tier.names import group_of

RECORDS = int(os.environ.get("RECORDS", "2000000"))
CONSUMERS = int(os.environ.get("CONSUMERS", "20"))
PAUSED_S = float(os.environ.get("PAUSED_S", "60"))
CUT_S = 20.0
"""Long enough for the others to have taken over."""
PARTITIONS = 8
CRASH_S = float(os.environ.get("CRASH_S", "15"))
"""Within so long the slots of a node that was killed have another owner."""
NODES = 4
_PROGRESS_S = 30


@pytest.fixture
def links() -> Iterator[Links]:
    made = Links()
    yield made
    made.close()


@pytest.fixture(params=os.environ.get("UPSTREAMS", "3.9.1 4.3.1").split())
def cluster(request: pytest.FixtureRequest, tmp_path: Path, links: Links) -> Iterator[Cluster]:
    made = Cluster(tmp_path / "cluster", request.param, links=links, nodes=NODES)
    made.start()
    yield made
    made.kill()


@pytest.fixture
def nodes(tmp_path: Path, cluster: Cluster) -> Iterator[Nodes]:
    made = Nodes(
        tmp_path,
        cluster.bootstrap,
        **{
            "sharecore.tier.slots": "16",
            "sharecore.tier.replication.factor": "3",
            "sharecore.tier.min.insync.replicas": "2",
            "sharecore.upstream.request.timeout.ms": "5000",
        },
    )
    yield made
    made.kill()


class Story:
    """What happens, and what members notice of it.

    Attributes:
        findings: what should not have been so.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.findings: list[str] = []
        self._ledger = ledger
        self._began = time.monotonic()
        self._told = threading.Thread(target=self._tell, daemon=True)
        self._told.start()

    def _tell(self) -> None:
        ledger = self._ledger
        while True:
            time.sleep(_PROGRESS_S)
            self.say(
                f"  {ledger.produced:,} produced, {ledger.open:,} open, {ledger.redelivered:,} came again, "
                f"{len(ledger.broken)} broken"
            )

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self._began:7.1f} s  {text}", flush=True)

    def happens(
        self,
        what: str,
        event: Callable[[], object],
        *,
        pause_max_s: float = 120,
        in_good_order: bool = False,
    ) -> None:
        """Has something happen, and waits until records of every partition have come since.

        Args:
            pause_max_s: the longest time that no record of a partition may have come, in seconds.
            in_good_order: nothing may come again by it.
        """
        ledger = self._ledger
        before, began = ledger.redelivered, time.monotonic()
        try:
            event()
        except Exception as error:
            self.find(f"{what}: {error!r}")
        took = time.monotonic() - began
        try:
            ledger.wait_for(100, 180)
        except AssertionError as error:
            self.find(f"{what}: {error}")
        ended = time.monotonic()
        pauses = sorted(ledger.longest_pause(each, began, ended) for each in range(PARTITIONS))
        told, again = ", ".join(f"{pause:.1f}" for pause in pauses), ledger.redelivered - before
        self.say(f"{what}: took {took:.1f} s, pauses {told} s, {again} records came again")
        if pauses[-1] > pause_max_s:
            self.find(f"{what}: {pauses[-1]:.1f} s without a record of a partition")
        if in_good_order and again:
            self.find(f"{what}: {again} records were taken away from members")
        self.calm()

    def calm(self) -> None:
        """Waits until what was leased when something happened has come again: no doing of what comes next."""
        before = self._ledger.redelivered
        until = time.monotonic() + 30
        last = -1
        while last != (last := self._ledger.redelivered) and time.monotonic() < until:
            time.sleep(3)
        if last > before:
            self.say(f"  {last - before} more of them came again")

    def find(self, what: str) -> None:
        self.findings.append(what)
        self.say(f"FOUND: {what}")


def stop_for(node: Broker, seconds: float) -> None:
    os.killpg(node.pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.killpg(node.pid, signal.SIGCONT)


def cut_for(links: Links, ports: tuple[int, ...] | list[int], seconds: float) -> None:
    links.cut(*ports)
    time.sleep(seconds)
    links.mend(*ports)


def tier(nodes: Nodes, *arguments: str) -> None:
    where = ("--upstream", nodes.bootstrap, "-s", f"sharecore.tier.state.topic={nodes.topic}")
    subprocess.run([SHARECORE, "tier", *arguments, *where], check=True, timeout=120)


@pytest.mark.timeout(7200)
def test_nothing_is_lost_nor_settled_twice(cluster: Cluster, nodes: Nodes, links: Links) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic("t", num_partitions=PARTITIONS, replication_factor=3)])["t"].result(30)
    doors = []
    for number in range(1, NODES + 1):
        node = nodes.add(cluster.bootstrap_of(number))
        doors.append(links.open(node.port))
        node.arguments += ("--advertise", f"127.0.0.1:{doors[-1]}")
    first, second, third, fourth = nodes.made
    for node in (first, second, third):
        node.start()
    configure_group(
        first.bootstrap,
        "g",
        share_auto_offset_reset="earliest",
        share_record_lock_duration_ms=15000,
        share_delivery_count_limit=10,
    )
    bootstrap = ",".join(f"127.0.0.1:{door}" for door in doors)
    probe = java.program(java.PROBES / "ShareProbe.java", "work", bootstrap, "g", "t", libs=java.CLIENT_LIBS)
    others = max(1, CONSUMERS // 5)
    ledger = Ledger(
        bootstrap,
        "t",
        "g",
        records=cluster.bootstrap,
        partitions=PARTITIONS,
        consumers=CONSUMERS - 2 * others,
        ours=others,
        java=[probe] * others,
        pace=int(os.environ.get("PACE", "10")),
    )

    def coordinator() -> int:
        """The number of the broker that coordinates the group of the nodes."""
        keys = [group_of(nodes.topic)]
        found = Client(cluster.brokers[0].port).ask(
            ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=keys
        )
        return int(found.coordinators[0].node_id)

    story = Story(ledger)
    happens = story.happens
    ledger.start()
    try:
        wait_until(third, "gives up 0 and gets 0")
        ledger.wait_for(100, 120)
        happens("a node gets SIGTERM", first.terminate, in_good_order=True)
        happens("it joins again", first.start, in_good_order=True)
        happens("another node is added", fourth.start, in_good_order=True)
        happens("it is drained", lambda: tier(nodes, "drain", "4"), in_good_order=True)
        happens("it ends", fourth.terminate, in_good_order=True)
        happens("a node is killed", second.kill, pause_max_s=CRASH_S)
        happens("it joins again", second.start, in_good_order=True)
        third.kill()
        happens("a node was killed and is started at once", third.start, pause_max_s=CRASH_S)
        happens(f"a node stands still for {PAUSED_S:.0f} s", lambda: stop_for(third, PAUSED_S))
        happens(
            f"a node is cut off from all brokers for {CUT_S:.0f} s",
            lambda: cut_for(links, cluster.ways[1], CUT_S),
        )
        happens(
            f"a node is cut off from the broker that coordinates the nodes for {CUT_S:.0f} s",
            lambda: cut_for(links, [cluster.ways[2][coordinator()]], CUT_S),
        )
        happens("a node is cut off from its clients for 10 s", lambda: cut_for(links, [doors[2]], 10))
        happens(
            "the broker that coordinates the nodes loses sight of the others for 40 s, and they of it",
            lambda: cut_for(links, cluster.sights[coordinator()], 40),
        )
        for broker in cluster.brokers:
            happens("a broker upstream is killed", broker.kill)
            happens("it comes back", broker.start)
            time.sleep(5)
        while ledger.produced < RECORDS:
            time.sleep(1)
        ledger.settle(300)
    finally:
        ledger.stop()
    story.say(
        f"{ledger.produced:,} records, {ledger.settled:,} surely settled, {ledger.redelivered:,} redelivered"
    )
    assert ledger.broken == []
    assert ledger.produced >= RECORDS
    assert story.findings == []
