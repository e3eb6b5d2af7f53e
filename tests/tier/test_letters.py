"""Share groups whole on one node of a tier that is killed again and again (`make tier`)."""

from __future__ import annotations

import itertools
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.broker import Broker
from tests.harness.clients import configure_group, configure_topic, create_topic
from tests.harness.ledger import Ledger
from tests.harness.tier import LIBS, SMALL, Nodes

KILLS = int(os.environ.get("KILLS", "20"))
_numbers = itertools.count()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(tmp_path / "cluster", "apache", SMALL, libs=LIBS)
    broker.start()
    yield broker
    broker.kill()


@pytest.mark.timeout(900)
def test_rejections_and_letters_outlive_the_node(cluster: Broker, nodes: Nodes) -> None:
    """Killed and started again there: what was settled stays so, and each rejected record has its letter."""
    node = nodes.add()
    topic, queue = f"records-{next(_numbers)}", f"dlq.letters-{next(_numbers)}"
    create_topic(cluster.bootstrap, topic)
    create_topic(cluster.bootstrap, queue)
    node.start()
    configure_topic(node.bootstrap, queue, errors_deadletterqueue_group_enable="true")
    configure_group(
        node.bootstrap,
        "letters",
        share_auto_offset_reset="earliest",
        share_delivery_count_limit=10,
        share_record_lock_duration_ms=1000,
        errors_deadletterqueue_topic_name=queue,
        errors_deadletterqueue_copy_record_enable="true",
    )
    ledger = Ledger(node.bootstrap, topic, "letters", queue, records=cluster.bootstrap)
    ledger.start()
    moments = random.Random(KILLS)
    for _ in range(KILLS):
        time.sleep(moments.uniform(0.5, 1.5))
        node.kill()
        node.start()
    time.sleep(1)
    ledger.settle(60)
    assert ledger.broken == []
    assert len(ledger.answered) > 300, "too little was produced to mean anything"
    assert sum(ledger.deliveries.values()) > len(ledger.deliveries), "nothing was ever redelivered"
