"""Order as Java's and librdkafka's consumers see it in one group, while a broker is killed."""

from __future__ import annotations

import random
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import pytest
from confluent_kafka import Producer
from tests.harness import java
from tests.harness.clients import ACCEPT, QUIET, RELEASE, configure_group, create_topic, share_consumer
from tests.interop.conftest import KIND, BrokerMaker

pytestmark = pytest.mark.skipif(KIND == "apache", reason="settings that Apache Kafka does not have")

GROUP, TOPIC = "ordered", "orders"
KEYS = [None, b"", *(f"key {number}".encode() for number in range(6))]
SECONDS_MAX = 120


class Came(NamedTuple):
    """A record that a member got."""

    at_ns: int
    member: str
    offset: int
    delivery: int


class Trail:
    """Who got which record when: every member's clock is the machine's."""

    def __init__(self) -> None:
        self.came: list[Came] = []
        self.offsets: set[int] = set()

    def add(self, came: Came) -> None:
        self.came.append(came)
        self.offsets.add(came.offset)

    def breaches(self, key_of: list[object]) -> list[str]:
        """Deliveries that came after one of a later record with the same key."""
        latest: dict[object, Came] = {}
        found = []
        for came in sorted(self.came):
            key = key_of[came.offset]
            if key is None:
                continue
            before = latest.get(key)
            if before is not None and came.offset < before.offset:
                found.append(f"{came} came after {before} with key {key!r}")
            if before is None or came.offset > before.offset:
                latest[key] = came
        return found


@contextmanager
def java_member(bootstrap: str, trail: Trail, name: str) -> Iterator[None]:
    """Java's consumer, which accepts what comes; it is killed in the end."""
    command = java.program(
        java.PROBES / "ShareProbe.java", "trail", bootstrap, GROUP, TOPIC, libs=java.CLIENT_LIBS
    )
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("came ") and line.endswith("\n"):
                at_ns, offset, delivery = map(int, line.split()[1:])
                trail.add(Came(at_ns, name, offset, delivery))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield
    finally:
        process.kill()
        process.wait()
        reader.join()


@contextmanager
def uneven_member(bootstrap: str, trail: Trail, name: str, seed: int) -> Iterator[None]:
    """librdkafka's consumer, which is slow and gives a third of what comes back at first."""
    chance = random.Random(seed)
    is_over = threading.Event()

    def work() -> None:
        with share_consumer(bootstrap, GROUP, [TOPIC]) as consumer:
            while not is_over.is_set():
                messages = list(consumer.poll(0.1))
                at_ns = time.monotonic_ns()
                for message in messages:
                    if message.error() is not None:
                        continue
                    offset, delivery = message.offset() or 0, message.delivery_count() or 1
                    trail.add(Came(at_ns, name, offset, delivery))
                    gives_back = delivery == 1 and chance.random() < 0.3
                    consumer.acknowledge(message, RELEASE if gives_back else ACCEPT)
                if messages:
                    time.sleep(chance.choice([0, 0.005, 0.02]))
                    try:
                        consumer.commit_sync(10)
                    except Exception:  # the broker is gone
                        continue

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def until(holds: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + SECONDS_MAX
    while not holds():
        assert time.monotonic() < until, f"{what}: not within {SECONDS_MAX} s"
        time.sleep(0.02)


@pytest.mark.parametrize("ordering", ["key", "partition"])
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
    keys: list[bytes | None] = []
    trail = Trail()

    def produce(count: int) -> None:
        producer = Producer(
            {"bootstrap.servers": broker.bootstrap, "linger.ms": 20, "compression.type": "lz4", **QUIET}
        )
        for _ in range(count):
            keys.append(chance.choice(KEYS))
            producer.produce(TOPIC, b"x", key=keys[-1], partition=0)
        assert producer.flush(60) == 0

    def has_come(member: str) -> bool:
        return any(came.member == member for came in list(trail.came))

    for life in ("1", "2"):
        with java_member(broker.bootstrap, trail, f"java {life}"):
            produce(20)
            until(partial(has_come, f"java {life}"), "a record for Java's consumer")
            with uneven_member(broker.bootstrap, trail, f"c {life}", int(life)):
                produce(20)
                # what one takes at once the other does not get
                while not has_come(f"c {life}"):
                    produce(20)
                    time.sleep(0.1)
                produce(100)
                if life == "1":
                    until(lambda: len(trail.offsets) >= len(keys) - 60, "most records")
                    broker.kill()
                else:
                    until(lambda: len(trail.offsets) == len(keys), "all records")
        if life == "1":
            broker.start()
    key_of: list[object] = ["all"] * len(keys) if ordering == "partition" else list(keys)
    assert trail.breaches(key_of) == []
    assert any(came.delivery > 1 for came in trail.came)
