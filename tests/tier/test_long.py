"""Nodes in front of three brokers, under load, through all that may happen to them (`make tier`).

RECORDS (2,000,000) are produced; 20 share consumers, confluent-kafka's, ours and Java's, settle them while
nodes join, are drained, end, are killed, stand still and are cut off, and while brokers are killed one at a
time, and one of them loses sight of the others. A ledger outside finds out what was lost, and what was
settled twice. What else does not go as it should is told at the end: the story goes on.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
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
from sharecore.tier.view import FIRST_NODE_ID

RECORDS = int(os.environ.get("RECORDS", "2000000"))
CONSUMERS = int(os.environ.get("CONSUMERS", "20"))
PAUSED_S = float(os.environ.get("PAUSED_S", "60"))
CUT_S = 20.0
"""Long enough for the others to have taken over."""
PARTITIONS = 8
CRASH_S = float(os.environ.get("CRASH_S", "20"))
"""For so long nothing comes of the slots of a node that ended without a word: a session of ten seconds, and
what a busy machine adds.
"""
OTHERS_S = float(os.environ.get("OTHERS_S", "6"))
"""And so long of others' slots: less than any session or lease."""
DRAIN_S = float(os.environ.get("DRAIN_S", "6"))
"""And so long of slots that are handed over."""
LOCK_S = 15
NODES = 4
_PROGRESS_S = 30
_MOVE = re.compile(r"(this node's|handed over).*, which took ([\d.]+) s")


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

    def __init__(self, ledger: Ledger, nodes: Nodes, bootstrap: str) -> None:
        self.findings: list[str] = []
        self._ledger, self._nodes = ledger, nodes
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
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
        to: Broker | None = None,
        pause_max_s: float = 120,
    ) -> int:
        """Has something happen, and waits until records of every partition have come since.

        Args:
            to: the node that it happens to; what others lead goes on.
            pause_max_s: the longest time that no record of a partition may have come, in seconds; where
                others lead it, `OTHERS_S`.

        Returns:
            How many records came again by it.
        """
        ledger = self._ledger
        own = set(ledger.arrivals) if to is None else self._led_by(to)
        before, doubtful, began = ledger.redelivered, ledger.doubtful, time.monotonic()
        moves = self._moved()
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
        pauses = {each: ledger.longest_pause(each, began, ended) for each in ledger.arrivals}
        again = ledger.redelivered - before
        told = _told(pauses[each] for each in own)
        if to is not None:
            told += f", of others' slots {_told(pauses[each] for each in pauses.keys() - own)}"
        self.say(f"{what}: took {took:.1f} s, pauses {told}, {again} records came again")
        self._say_moves(moves)
        for each, pause in pauses.items():
            if pause > (pause_max_s if each in own else OTHERS_S):
                whose = "" if each in own else ", which is another node's"
                self.find(f"{what}: {pause:.1f} s without a record of partition {each}{whose}")
        self.calm(doubtful)
        return again

    def moves(self, what: str, event: Callable[[], object]) -> None:
        """Has something happen that moves slots in good order: nothing may come again by it."""
        again = self.happens(what, event, pause_max_s=DRAIN_S)
        if again:
            self.find(f"{what}: {again} records were taken away from members")

    def _led_by(self, node: Broker) -> set[int]:
        """The partitions that a node leads."""
        node_id = FIRST_NODE_ID + self._nodes.made.index(node) + 1
        partitions = self._admin.list_topics("t", timeout=30).topics["t"].partitions
        return {number for number, each in partitions.items() if each.leader == node_id}

    def _moved(self) -> Counter[tuple[str, float]]:
        """Slots that nodes say they took and handed over so far, and the seconds that each took."""
        log = "\n".join(node.read_log() for node in self._nodes.made if node.log.exists())
        return Counter((kind, float(seconds)) for kind, seconds in _MOVE.findall(log))

    def _say_moves(self, before: Counter[tuple[str, float]]) -> None:
        found = list((self._moved() - before).elements())
        for kind, text in (("handed over", "handed over by nodes within"), ("this node's", "claimed within")):
            times = [seconds for each, seconds in found if each == kind]
            if times:
                self.say(f"  {len(times)} slots were {text} {max(times):.2f} s")

    def calm(self, doubtful: int) -> None:
        """Waits until what was leased when something happened has come again: no doing of what comes next.

        Args:
            doubtful: how many records there were before, of which it was not known whether they were settled.
        """
        ledger = self._ledger
        before, began, last = ledger.redelivered, time.monotonic(), -1
        # a member that was told that it failed lets go of records, and a node cannot know that
        locked = ledger.doubtful > doubtful
        while last != (last := ledger.redelivered) or (locked and time.monotonic() < began + LOCK_S):
            time.sleep(3)
            if time.monotonic() > began + 2 * LOCK_S:
                break
        if last > before:
            self.say(f"  {last - before} more of them came again")

    def find(self, what: str) -> None:
        self.findings.append(what)
        self.say(f"FOUND: {what}")


def _told(pauses: Iterable[float]) -> str:
    return ", ".join(f"{pause:.1f}" for pause in sorted(pauses)) + " s"


def stop_for(node: Broker, seconds: float) -> None:
    os.killpg(node.pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.killpg(node.pid, signal.SIGCONT)


def join(node: Broker) -> None:
    """Starts a node; ends when it has its slots."""
    settled = "gives up 0 and gets 0"
    before = node.read_log().count(settled) if node.log.exists() else 0
    node.start()
    wait_until(node, settled, before + 1)


def restart(node: Broker) -> None:
    node.kill()
    node.start()


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
        share_record_lock_duration_ms=LOCK_S * 1000,
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

    story = Story(ledger, nodes, bootstrap)
    happens = story.happens
    ledger.start()
    try:
        wait_until(third, "gives up 0 and gets 0")
        ledger.wait_for(100, 120)
        story.moves("a node gets SIGTERM", first.terminate)
        story.moves("it joins again", lambda: join(first))
        story.moves("another node is added", lambda: join(fourth))
        story.moves("it is drained", lambda: tier(nodes, "drain", "4"))
        story.moves("it ends", fourth.terminate)
        happens("a node is killed", second.kill, to=second, pause_max_s=CRASH_S)
        story.moves("it joins again", lambda: join(second))
        happens(
            "a node is killed and started at once",
            lambda: restart(third),
            to=third,
            pause_max_s=CRASH_S,
        )
        happens(
            f"a node stands still for {PAUSED_S:.0f} s",
            lambda: stop_for(third, PAUSED_S),
            to=third,
            pause_max_s=CRASH_S,
        )
        happens(
            f"a node is cut off from all brokers for {CUT_S:.0f} s",
            lambda: cut_for(links, cluster.ways[1], CUT_S),
            to=first,
            pause_max_s=CRASH_S,
        )
        happens(
            f"a node is cut off from the broker that coordinates the nodes for {CUT_S:.0f} s",
            lambda: cut_for(links, [cluster.ways[2][coordinator()]], CUT_S),
            to=second,
        )
        happens(
            "a node is cut off from its clients for 10 s", lambda: cut_for(links, [doors[2]], 10), to=third
        )
        happens(
            "the broker that coordinates the nodes loses sight of the others for 40 s, and they of it",
            lambda: cut_for(links, cluster.sights[coordinator()], 40),
            pause_max_s=CRASH_S,
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
