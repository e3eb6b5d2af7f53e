"""Nodes in front of three brokers, under load, through all that may happen to them (`make tier`).

RECORDS (2,000,000) are produced; 20 share consumers, confluent-kafka's, ours and Java's, settle them while
nodes join, are drained, end, are killed, stand still and are cut off, and while brokers are killed one at a
time, and one of them loses sight of the others. A ledger outside finds out what was lost, and what was
settled twice. What else does not go as it should is told at the end: the story goes on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.links import Links
from tests.harness.running import Client
from tests.harness.tier import Cluster, Nodes, wait_until
from tests.harness.tier_story import (
    CRASH_S,
    PAUSED_S,
    RECORDS,
    Story,
    add_behind_door,
    cut_for,
    join,
    ledger_of,
    nodes_of,
    restart,
    stop_for,
    tier,
    upstreams,
)

from sharecore.protocol import ApiKey
from sharecore.tier.names import group_of

CUT_S = 20.0
"""Long enough for the others to have taken over."""
NODES = 4


@pytest.fixture(params=upstreams())
def cluster(request: pytest.FixtureRequest, tmp_path: Path, links: Links) -> Iterator[Cluster]:
    made = Cluster(tmp_path / "cluster", request.param, links=links, nodes=NODES)
    made.start()
    yield made
    made.kill()


@pytest.fixture
def nodes(tmp_path: Path, cluster: Cluster) -> Iterator[Nodes]:
    made = nodes_of(tmp_path, cluster)
    yield made
    made.kill()


@pytest.mark.timeout(7200)
def test_nothing_is_lost_nor_settled_twice(cluster: Cluster, nodes: Nodes, links: Links) -> None:
    doors = [add_behind_door(nodes, cluster, links) for _ in range(NODES)]
    first, second, third, fourth = nodes.made
    for node in (first, second, third):
        node.start()
    bootstrap = ",".join(f"127.0.0.1:{door}" for door in doors)
    ledger = ledger_of(cluster, first, bootstrap)

    def coordinator() -> int:
        """Return the number of the broker that coordinates the group of the nodes."""
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
        story.ends(RECORDS)
    finally:
        ledger.stop()
    story.judge()
