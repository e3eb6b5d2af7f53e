"""Order as Java's and librdkafka's consumers see it in one group, while a broker is killed."""

from __future__ import annotations

import random
import time
from functools import partial

import pytest
from confluent_kafka import Producer
from tests.harness.clients import QUIET, configure_group, create_topic
from tests.harness.queue_ledger import Ledger, Sent
from tests.harness.queue_members import GROUP, TOPIC, java_member, uneven_member
from tests.harness.until import until
from tests.interop.conftest import KIND, BrokerMaker

pytestmark = pytest.mark.skipif(KIND == "apache", reason="settings that Apache Kafka does not have")

KEYS = [None, b"", *(f"key {number}".encode() for number in range(6))]
SECONDS_MAX = 120


@pytest.mark.parametrize("ordering", ["key", pytest.param("partition", marks=pytest.mark.long)])
def test_stock_consumers_get_records_in_their_order_over_releases_and_a_killed_broker(
    new_broker: BrokerMaker, ordering: str
) -> None:
    broker = new_broker()
    broker.start()
    create_topic(broker.bootstrap, TOPIC)
    configure_group(
        broker.bootstrap,
        GROUP,
        share_ordering=ordering,
        share_auto_offset_reset="earliest",
        share_delivery_count_limit=10,
    )
    chance = random.Random(7)
    ledger = Ledger()

    def produce(count: int) -> None:
        producer = Producer(
            {"bootstrap.servers": broker.bootstrap, "linger.ms": 20, "compression.type": "lz4", **QUIET}
        )
        for _ in range(count):
            key = chance.choice(KEYS)
            ledger.sent[0, len(ledger.sent)] = Sent(key, 0)
            producer.produce(TOPIC, b"x", key=key, partition=0)
        assert producer.flush(60) == 0

    def has_come(member: str) -> bool:
        return any(came.member == member for came in list(ledger.came))

    for life in ("1", "2"):
        with java_member(broker.bootstrap, ledger, f"java {life}"):
            produce(20)
            until(partial(has_come, f"java {life}"), "a record for Java's consumer", SECONDS_MAX)
            with uneven_member(broker.bootstrap, ledger, f"c {life}", int(life)):
                produce(20)
                # a record acquired by one member is not given to the other
                while not has_come(f"c {life}"):
                    produce(20)
                    time.sleep(0.1)
                produce(100)
                if life == "1":
                    until(lambda: len(ledger.places()) >= len(ledger.sent) - 60, "most records", SECONDS_MAX)
                    broker.kill()
                else:
                    until(lambda: len(ledger.places()) == len(ledger.sent), "all records", SECONDS_MAX)
        if life == "1":
            broker.start()
    assert ledger.out_of_order(whole=ordering == "partition") == []
    assert any(came.delivery > 1 for came in ledger.came)
