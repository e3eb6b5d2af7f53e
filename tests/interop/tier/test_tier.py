"""A node in front of Apache Kafka 3.9.1, which has no share groups: what was answered outlives the node."""

from __future__ import annotations

import itertools
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer
from tests.harness.broker import QUICK_GROUPS, ROOT, Broker
from tests.harness.clients import (
    QUIET,
    configure_group,
    configure_topic,
    create_topic,
)
from tests.harness.ledger import Ledger
from tests.harness.running import Client

from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey

LIBS = ROOT / "build/jars/kafka-3.9.1"
KILLS = int(os.environ.get("KILLS", "1"))
SMALL = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}
TIER = QUICK_GROUPS | {
    "sharecore.tier.slots": "4",
    "sharecore.tier.replication.factor": "1",
    "sharecore.tier.min.insync.replicas": "1",
}
_numbers = itertools.count()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker = Broker(tmp_path_factory.mktemp("cluster"), "apache", SMALL, libs=LIBS)
    broker.start()
    yield broker
    broker.kill()


class Nodes:
    """Nodes in front of the cluster, of one tier; they are killed at the end of the test."""

    def __init__(self, home: Path, cluster: Broker) -> None:
        self._home, self._cluster = home, cluster
        self._topic = f"__state-{next(_numbers)}"
        self.made: list[Broker] = []

    def add(self, **settings: str) -> Broker:
        """A node that is not started yet."""
        number = len(self.made) + 1
        own = {"sharecore.tier.state.topic": self._topic, "node.id": str(number)}
        arguments = ("--upstream", self._cluster.bootstrap)
        home = self._home / f"node-{number}"
        self.made.append(Broker(home, "sharecore", TIER | own | settings, arguments))
        return self.made[-1]


@pytest.fixture
def nodes(tmp_path: Path, cluster: Broker) -> Iterator[Nodes]:
    made = Nodes(tmp_path, cluster)
    yield made
    for node in made.made:
        node.kill()


def begin(cluster: Broker, node: Broker, bootstrap: str) -> Ledger:
    """A producer to the cluster and a share consumer of the tier, at work."""
    topic, group, queue = (f"{kind}-{next(_numbers)}" for kind in ("records", "group", "dlq.letters"))
    create_topic(cluster.bootstrap, topic)
    create_topic(cluster.bootstrap, queue)
    node.start()
    configure_topic(node.bootstrap, queue, errors_deadletterqueue_group_enable="true")
    configure_group(
        node.bootstrap,
        group,
        share_auto_offset_reset="earliest",
        share_delivery_count_limit=10,
        share_record_lock_duration_ms=1000,
        errors_deadletterqueue_topic_name=queue,
        errors_deadletterqueue_copy_record_enable="true",
    )
    ledger = Ledger(bootstrap, topic, group, queue, records=cluster.bootstrap)
    ledger.start()
    return ledger


def end(ledger: Ledger) -> None:
    time.sleep(0.5)
    ledger.settle(60)
    assert ledger.broken == []
    assert len(ledger.answered) > 300, "too little was produced to mean anything"
    assert sum(ledger.deliveries.values()) > len(ledger.deliveries), "nothing was ever redelivered"


def test_what_was_answered_outlives_the_node(cluster: Broker, nodes: Nodes) -> None:
    """Killed and started again there, then ended: another one that stands by goes on."""
    first, second = nodes.add(), nodes.add()
    ledger = begin(cluster, first, f"{first.bootstrap},{second.bootstrap}")
    second.start()
    moments = random.Random(KILLS)
    for _ in range(KILLS):
        time.sleep(moments.uniform(0.5, 1.5))
        first.kill()
        first.start()
    time.sleep(0.7)
    if KILLS > 1:
        first.kill()
        time.sleep(15)  # until the cluster takes it for dead
    else:
        first.terminate()
    end(ledger)


def test_who_produces_to_a_node_is_told_at_once(cluster: Broker, nodes: Nodes) -> None:
    node = nodes.add()
    topic = f"records-{next(_numbers)}"
    create_topic(cluster.bootstrap, topic)
    node.start()
    began = time.monotonic()
    refused: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": node.bootstrap, **QUIET})
    producer.produce(topic, b"misdirected", on_delivery=lambda error, _: refused.append(error))
    assert producer.flush(10) == 0
    assert [error and error.name() for error in refused] == ["INVALID_REQUEST"]
    client = Client(node.port)
    asked = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
    answer = client.ask(ApiKey.FETCH, 12, max_wait_ms=100, topics=[{"topic": topic, "partitions": [asked]}])
    client.close()
    assert answer.responses[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST
    assert time.monotonic() - began < 8
