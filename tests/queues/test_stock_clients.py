"""Order, back-off and delivery times as stock clients see them, while brokers and nodes of a tier are killed.

Java's consumers 4.2.2, 4.3.1 and 4.4.0, Spring's, franz-go's and librdkafka's share a group; a ledger beside
them holds every delivery against what the settings promise. Runs have one record: who releases one of a
longer run and accepts a later one changes the order.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import KafkaError, Message, Producer
from tests.harness.broker import QUICK_GROUPS, Broker
from tests.harness.clients import QUIET, configure_group, create_topic
from tests.harness.queue_ledger import Ledger, Sent
from tests.harness.queue_members import (
    GO,
    GROUP,
    JAVA,
    RDKAFKA,
    SPRING,
    TOPIC,
    go_member,
    java_member,
    spring_member,
    uneven_member,
)
from tests.harness.tier import LIBS, SMALL, Nodes

pytestmark = pytest.mark.timeout(600)
KEYS = [None, None, b"", *(f"key {number}".encode() for number in range(6))]
BACKOFF_S = 0.5
ROUNDS, AT_ONCE, PARTITIONS = 3, 50, 3
SLOW = "librdkafka, slower than a lock lasts"
MEMBERS = {*JAVA, SPRING, GO, *RDKAFKA, SLOW}
LOCK_S = 5
SECONDS_MAX = 180


class Served(NamedTuple):
    """What members are served by, and how that is broken.

    Args:
        bootstrap: of members.
        producers: bootstrap of producers.
        breaks: kills something, and starts it again.
    """

    bootstrap: str
    producers: str
    breaks: Callable[[], None]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Served]:
    made = Broker(tmp_path / "broker", "sharecore", QUICK_GROUPS)
    made.start()

    def kill() -> None:
        made.kill()
        made.start()

    yield Served(made.bootstrap, made.bootstrap, kill)
    made.kill()


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Served]:
    upstream = Broker(tmp_path / "upstream", "apache", SMALL, libs=LIBS)
    upstream.start()
    made = Nodes(tmp_path, upstream.bootstrap)
    for _ in range(3):
        made.add()
    made.start()
    chance = random.Random(3)

    def kill() -> None:
        one = chance.choice(made.made)
        one.kill()
        time.sleep(3)
        one.start()

    yield Served(",".join(node.bootstrap for node in made.made), upstream.bootstrap, kill)
    made.kill()
    upstream.kill()


@pytest.mark.parametrize("served", ["broker", "nodes"])
@pytest.mark.parametrize("ordering", ["key", "partition"])
def test_nothing_is_out_of_order_nor_early(
    served: str, ordering: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    under: Served = request.getfixturevalue(served)
    create_topic(under.producers, TOPIC, PARTITIONS)
    configure_group(
        under.bootstrap,
        GROUP,
        share_ordering=ordering,
        share_retry_backoff_ms=int(BACKOFF_S * 1000),
        share_retry_backoff_multiplier=1.0,
        share_deliver_at_header="deliver-at",
        share_auto_offset_reset="earliest",
        share_record_lock_duration_ms=LOCK_S * 1000,
        share_delivery_count_limit=10,
    )
    ledger = Ledger()
    with ExitStack() as members:
        for name, libs in JAVA.items():
            members.enter_context(java_member(under.bootstrap, ledger, name, libs))
        members.enter_context(spring_member(under.bootstrap, ledger))
        members.enter_context(go_member(under.bootstrap, ledger, tmp_path))
        for seed, name in enumerate(RDKAFKA):
            members.enter_context(uneven_member(under.bootstrap, ledger, name, seed))
        slow = uneven_member(under.bootstrap, ledger, SLOW, 7, (0, LOCK_S + 1))
        members.enter_context(slow)
        _produce_until_all_take_part(under.producers, ledger)
        for seed in range(ROUNDS):
            produce_some(under.producers, ledger, seed)
            wait_until(lambda: len(ledger.places()) > len(ledger.sent) - AT_ONCE, ledger)
            under.breaks()
        wait_until(lambda: ledger.places() >= ledger.sent.keys(), ledger)
    assert ledger.out_of_order(whole=ordering == "partition") == []
    assert ledger.early(BACKOFF_S) == []
    assert len(ledger.releases) > 20
    assert _ran_out(ledger) > 0
    assert sum(sent.due_ms > 0 for sent in ledger.sent.values()) > 10
    print(f"{len(ledger.sent)} records, {len(ledger.came)} deliveries, {len(ledger.releases)} released")


def _produce_until_all_take_part(bootstrap: str, ledger: Ledger) -> None:
    """A JVM may take long to join; what comes meanwhile goes to others."""
    end = time.monotonic() + SECONDS_MAX
    while late := MEMBERS - {came.member for came in list(ledger.came)}:
        assert time.monotonic() < end, f"{late} got nothing within {SECONDS_MAX} s"
        produce_some(bootstrap, ledger, len(ledger.sent), AT_ONCE // 2)
        time.sleep(1)


def produce_some(bootstrap: str, ledger: Ledger, seed: int, count: int = AT_ONCE * 2) -> None:
    """Records with keys, some of them with a delivery time."""
    chance = random.Random(seed)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "compression.type": "lz4", **QUIET})

    def sent(key: bytes | None, due_ms: int) -> Callable[[KafkaError | None, Message], None]:
        def note(error: KafkaError | None, message: Message) -> None:
            assert error is None, error
            ledger.sent[message.partition() or 0, message.offset() or 0] = Sent(key, due_ms)

        return note

    for _ in range(count):
        key = chance.choice(KEYS)
        due_ms = time.time_ns() // 1_000_000 + chance.choice([500, 2_000]) if chance.random() < 0.1 else 0
        headers: list[tuple[str, str | bytes | None]] = []
        if due_ms:
            headers.append(("deliver-at", b"%d" % due_ms))
        # a key is always sent to the same partition
        partition = chance.randrange(PARTITIONS) if key is None else sum(key) % PARTITIONS
        done = sent(key, due_ms)
        producer.produce(TOPIC, b"x", key=key, partition=partition, headers=headers, on_delivery=done)
    assert producer.flush(60) == 0


def _ran_out(ledger: Ledger) -> int:
    """Return how many records of the slow member somebody got after their locks were over."""
    slow = {came.place: came.at_ns for came in ledger.came if came.member == SLOW}
    later = {
        came.place
        for came in ledger.came
        if came.place in slow and came.at_ns - slow[came.place] > (LOCK_S - 0.5) * 1e9
    }
    return len(later)


def wait_until(holds: Callable[[], bool], ledger: Ledger) -> None:
    end = time.monotonic() + SECONDS_MAX
    while not holds():
        left = sorted(ledger.sent.keys() - ledger.places())
        text = f"{len(left)} records have not come within {SECONDS_MAX} s: {left[:10]}"
        assert time.monotonic() < end, text
        time.sleep(0.05)
