"""One node in front of one broker, under load, through all that may happen to either (`make tier`).

The story of several nodes and brokers is in `test_long.py`; here nobody takes over, so that all stands still
until the node, or the broker, is back. Nothing may be lost or come again for that either.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.harness.broker import Broker
from tests.harness.links import Links
from tests.harness.tier import Cluster, Nodes
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
    upstreams,
)

CUT_S = 20.0
"""Longer than the cluster waits for the node."""


@pytest.fixture(params=upstreams())
def cluster(request: pytest.FixtureRequest, tmp_path: Path, links: Links) -> Iterator[Cluster]:
    made = Cluster(tmp_path / "cluster", request.param, links=links, nodes=1, count=1)
    made.start()
    yield made
    made.kill()


@pytest.fixture
def nodes(tmp_path: Path, cluster: Cluster) -> Iterator[Nodes]:
    made = nodes_of(tmp_path, cluster)
    yield made
    made.kill()


@pytest.mark.timeout(7200)
def test_nothing_is_lost_nor_settled_twice_by_one_node(cluster: Cluster, nodes: Nodes, links: Links) -> None:
    door = add_behind_door(nodes, cluster, links)
    (node,) = nodes.made
    node.start()
    (broker,) = cluster.brokers
    ledger = ledger_of(cluster, node, f"127.0.0.1:{door}")
    story = Story(ledger, nodes, f"127.0.0.1:{door}")

    def happens(what: str, event: Callable[[], object], away_s: float = 0) -> None:
        story.happens(what, event, pause_max_s=away_s + CRASH_S)

    ledger.start()
    try:
        ledger.wait_for(100, 120)
        # no other node takes its slots: all wait until it has started
        story.moves("the node gets SIGTERM, and joins again", lambda: again(node), CRASH_S)
        happens("it is killed, and started at once", lambda: restart(node))
        happens(f"it is killed, and started {CUT_S:.0f} s later", lambda: away(node, CUT_S), CUT_S)
        happens(f"it stands still for {PAUSED_S:.0f} s", lambda: stop_for(node, PAUSED_S), PAUSED_S)
        happens(
            f"it is cut off from the broker for {CUT_S:.0f} s",
            lambda: cut_for(links, cluster.ways[1], CUT_S),
            CUT_S,
        )
        happens("it is cut off from its clients for 10 s", lambda: cut_for(links, [door], 10), 10)
        happens("the broker is killed, and started at once", lambda: restart(broker), CUT_S)
        happens(f"it is killed, and started {CUT_S:.0f} s later", lambda: away(broker, CUT_S), 2 * CUT_S)
        happens(f"it stands still for {CUT_S:.0f} s", lambda: stop_for(broker, CUT_S), CUT_S)
        story.ends(RECORDS)
    finally:
        ledger.stop()
    story.judge()


def again(node: Broker) -> None:
    node.terminate()
    join(node)


def away(broker: Broker, seconds: float) -> None:
    broker.kill()
    time.sleep(seconds)
    broker.start()
