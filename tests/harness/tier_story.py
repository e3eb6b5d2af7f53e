"""What happens to a tier under load, told as it does, and what members notice of it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic
from tests.harness import java
from tests.harness.broker import SHARECORE, Broker
from tests.harness.clients import configure_group
from tests.harness.links import Links
from tests.harness.tier import THREE_COPIES, Cluster, Nodes, wait_until
from tests.harness.tier_ledger import Ledger

from sharecore.tier.membership.view import FIRST_NODE_ID

CRASH_S = float(os.environ.get("CRASH_S", "20"))
"""For so long nothing comes of the slots of a node that ended without a word: a session of ten seconds, and
what a busy machine adds.
"""
OTHERS_S = float(os.environ.get("OTHERS_S", "6"))
"""And so long of others' slots: less than any session or lease."""
DRAIN_S = float(os.environ.get("DRAIN_S", "6"))
"""And so long of slots that are handed over."""
LOCK_S = 15
RECORDS = int(os.environ.get("RECORDS", "2000000"))
CONSUMERS = int(os.environ.get("CONSUMERS", "20"))
PAUSED_S = float(os.environ.get("PAUSED_S", "60"))
PARTITIONS = 8
_PROGRESS_S = 30
_MOVE = re.compile(r"(claimed|handed over) .* in ([\d.]+) s")


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
        self._over = threading.Event()
        threading.Thread(target=self._tell, daemon=True).start()

    def _tell(self) -> None:
        ledger = self._ledger
        while not self._over.wait(_PROGRESS_S):
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

    def moves(self, what: str, event: Callable[[], object], pause_max_s: float = DRAIN_S) -> None:
        """Has something happen that moves slots in good order: nothing may come again by it."""
        again = self.happens(what, event, pause_max_s=pause_max_s)
        if again:
            self.find(f"{what}: {again} records were taken away from members")

    def _led_by(self, node: Broker) -> set[int]:
        """Return the partitions that a node leads."""
        node_id = FIRST_NODE_ID + self._nodes.made.index(node) + 1
        partitions = self._admin.list_topics("t", timeout=30).topics["t"].partitions
        return {number for number, each in partitions.items() if each.leader == node_id}

    def _moved(self) -> Counter[tuple[str, float]]:
        """Slots that nodes say they took and handed over so far, and the seconds that each took."""
        log = "\n".join(node.read_log() for node in self._nodes.made if node.log.exists())
        return Counter((kind, float(seconds)) for kind, seconds in _MOVE.findall(log))

    def _say_moves(self, before: Counter[tuple[str, float]]) -> None:
        found = list((self._moved() - before).elements())
        for kind, text in (("handed over", "handed over by nodes within"), ("claimed", "claimed within")):
            times = [seconds for each, seconds in found if each == kind]
            if times:
                self.say(f"  {len(times)} slots were {text} {max(times):.2f} s")

    def calm(self, doubtful: int) -> None:
        """Wait until the records that were leased at this moment have been delivered again, so that the next
        step did not cause it.

        Args:
            doubtful: how many records there were before, of which it was not known whether they were settled.
        """
        ledger = self._ledger
        before, began, last = ledger.redelivered, time.monotonic(), -1
        # a member that got an error releases its records, and a node cannot know that
        locked = ledger.doubtful > doubtful
        while last != (last := ledger.redelivered) or (locked and time.monotonic() < began + LOCK_S):
            time.sleep(3)
            if time.monotonic() > began + 2 * LOCK_S:
                break
        if last > before:
            self.say(f"  {last - before} more of them came again")

    def ends(self, records: int) -> None:
        """Wait until so many records are produced, and all are settled."""
        ledger = self._ledger
        while ledger.produced < records:
            time.sleep(1)
        ledger.settle(300)

    def judge(self) -> None:
        """Says what came of it.

        Raises:
            AssertionError: something was found, or the ledger shows a promise broken.
        """
        ledger = self._ledger
        self._over.set()
        self.say(
            f"{ledger.produced:,} records, {ledger.settled:,} surely settled, "
            f"{ledger.redelivered:,} redelivered"
        )
        assert ledger.broken == []
        assert self.findings == []

    def find(self, what: str) -> None:
        self.findings.append(what)
        self.say(f"FOUND: {what}")


def _told(pauses: Iterable[float]) -> str:
    return ", ".join(f"{pause:.1f}" for pause in sorted(pauses)) + " s"


def upstreams() -> list[str]:
    """Versions of the cluster that a story is told in front of."""
    return os.environ.get("UPSTREAMS", "3.9.1 4.3.1").split()


def ledger_of(cluster: Cluster, node: Broker, bootstrap: str) -> Ledger:
    """A topic in the cluster, a share group that reads it all, and members of three kinds that settle it.

    Args:
        node: one that is there, to make the group.
        bootstrap: of the nodes, as members reach them.
    """
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    made = admin.create_topics(
        [NewTopic("t", num_partitions=PARTITIONS, replication_factor=len(cluster.brokers))]
    )
    made["t"].result(30)
    configure_group(
        node.bootstrap,
        "g",
        share_auto_offset_reset="earliest",
        share_record_lock_duration_ms=LOCK_S * 1000,
        share_delivery_count_limit=10,
    )
    probe = java.program(java.PROBES / "ShareProbe.java", "work", bootstrap, "g", "t", libs=java.CLIENT_LIBS)
    others = max(1, CONSUMERS // 5)
    return Ledger(
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


def nodes_of(home: Path, cluster: Cluster) -> Nodes:
    """Nodes that hear soon of a broker that does not answer; each broker has a copy of their state."""
    settings = {"sharecore.tier.slots": "16", "sharecore.upstream.request.timeout.ms": "5000"}
    copies = THREE_COPIES if len(cluster.brokers) > 1 else {}
    return Nodes(home, cluster.bootstrap, **copies, **settings)


def add_behind_door(nodes: Nodes, cluster: Cluster, links: Links) -> int:
    """Add a node that clients, and itself to the brokers, are linked with; give the port of clients."""
    node = nodes.add(cluster.bootstrap_of(len(nodes.made) + 1))
    door = links.open(node.port)
    node.arguments += ("--advertise", f"127.0.0.1:{door}")
    return door


def stop_for(node: Broker, seconds: float) -> None:
    os.killpg(node.pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.killpg(node.pid, signal.SIGCONT)


def join(node: Broker) -> None:
    """Start a node; end when it has its slots."""
    settled = "gives up 0 and gets 0"
    before = node.read_log().count(settled) if node.log.exists() else 0
    node.start()
    wait_until(node, settled, before + 1)


def restart(node: Broker) -> None:
    node.kill()
    node.start()


def cut_for(links: Links, ports: Sequence[int], seconds: float) -> None:
    links.cut(*ports)
    time.sleep(seconds)
    links.mend(*ports)


def tier(nodes: Nodes, *arguments: str) -> None:
    where = ("--upstream", nodes.bootstrap, "-s", f"sharecore.tier.state.topic={nodes.topic}")
    subprocess.run([SHARECORE, "tier", *arguments, *where], check=True, timeout=120)
