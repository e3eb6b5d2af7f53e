"""Two nodes in front of three brokers, when some lose sight of the others (`make tier`)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.harness.clients import configure_group
from tests.harness.links import Links
from tests.harness.running import Client
from tests.harness.tier import THREE_COPIES, Cluster, Nodes, wait_until
from tests.harness.tier_ledger import Ledger

from sharecore.protocol import ApiKey
from sharecore.tier.names import group_of

PARTITIONS = 6
CUT_S = 30.0
STILL_S = 20.0
"""For so long nothing comes of a partition: the cluster takes ten seconds, a busy machine more."""


@pytest.fixture
def cluster(tmp_path: Path, links: Links) -> Iterator[Cluster]:
    made = Cluster(tmp_path / "cluster", "3.9.1", links=links, nodes=2)
    made.start()
    yield made
    made.kill()


@pytest.fixture
def nodes(tmp_path: Path, cluster: Cluster) -> Iterator[Nodes]:
    made = Nodes(tmp_path, cluster.bootstrap, **THREE_COPIES, **{"sharecore.tier.slots": "16"})
    yield made
    made.kill()


@pytest.mark.timeout(600)
def test_what_loses_sight_of_others_is_soon_passed_over(cluster: Cluster, nodes: Nodes, links: Links) -> None:
    """First the broker that coordinates the nodes, which goes on answering as if it led what it led; then a
    node, whose brokers are all gone. Nothing is lost, and no partition stands still for long.
    """
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic("t", num_partitions=PARTITIONS, replication_factor=3)])["t"].result(30)
    for number in (1, 2):
        nodes.add(cluster.bootstrap_of(number)).start()
    first, second = nodes.made
    configure_group(
        first.bootstrap, "g", share_auto_offset_reset="earliest", share_record_lock_duration_ms=15_000
    )
    bootstrap = f"{first.bootstrap},{second.bootstrap}"
    ledger = Ledger(
        bootstrap, "t", "g", records=cluster.bootstrap, partitions=PARTITIONS, consumers=3, ours=1
    )
    ledger.start()
    try:
        wait_until(second, "has 8 of 16 slots, gives up 0 and gets 0")
        ledger.wait_for(100, 60)
        keys = [group_of(nodes.topic)]
        found = Client(cluster.brokers[0].port).ask(
            ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=keys
        )
        pauses = {
            what: longest_pauses(ledger, links, ports)
            for what, ports in (
                ("a broker", cluster.sights[found.coordinators[0].node_id]),
                ("a node", tuple(cluster.ways[1])),
            )
        }
        ledger.settle(120)
    finally:
        ledger.stop()
    assert ledger.broken == []
    assert {what: most for what, most in pauses.items() if most > STILL_S} == {}


def longest_pauses(ledger: Ledger, links: Links, ports: tuple[int, ...]) -> float:
    """The longest time without a record of any partition while links are cut, and a while longer."""
    began = time.monotonic()
    links.cut(*ports)
    time.sleep(CUT_S)
    links.mend(*ports)
    ledger.wait_for(100, 180)
    ended = time.monotonic()
    return max(ledger.longest_pause(partition, began, ended) for partition in range(PARTITIONS))
