"""A home in a bucket whose machine is lost under load, again and again: nothing that was answered is."""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from pathlib import Path

from tests.bucket.ledger import GROUP, Ledger
from tests.harness.broker import QUICK_GROUPS, Broker
from tests.harness.clients import configure_group, create_topic

from sharecore.storage import Storage, StorageOptions

TOPIC = "jobs"


def home_settings(url: str, metrics_port: int) -> dict[str, str]:
    return QUICK_GROUPS | {
        "sharecore.bucket.url": url,
        "sharecore.durability": "bucket",
        "sharecore.bucket.puts.per.second": "100",
        "sharecore.metrics.listener": f"127.0.0.1:{metrics_port}",
    }


def numbers_in(directory: Path, topic: str) -> Counter[int]:
    """Return how often each number is the value of one of a topic's records."""
    storage = Storage(directory, StorageOptions(read_only=True))
    try:
        found = storage.topics.get(topic)
        assert found is not None
        return Counter(int(value or b"") for log in found.partitions for _, _, _, value in log.scan(0))
    finally:
        storage.close()


def lose_again_and_again(broker: Broker, metrics_port: int, losses: int, seed: int) -> None:
    """Kill a broker under load, delete its directory and start it, again; then hold all records against it.

    Args:
        broker: not started; it answers once its bucket has what it answers.
        metrics_port: of its metrics.
        losses: how often.
        seed: of the moments.
    """
    broker.start()
    create_topic(broker.bootstrap, TOPIC, 2)
    configure_group(broker.bootstrap, GROUP, share_auto_offset_reset="earliest")
    moments = random.Random(seed)
    first, answered, settled_before = 0, set[int](), set[int]()
    for _ in range(losses):
        ledger = Ledger(broker.bootstrap, TOPIC, f"http://127.0.0.1:{metrics_port}/metrics", first)
        ledger.start()
        end = time.monotonic() + 60
        while len(ledger.settled) < 100:
            assert time.monotonic() < end, broker.read_log()[-3000:]
            time.sleep(0.05)
        time.sleep(moments.uniform(0.2, 2.0))
        broker.kill()
        ledger.stop()
        shutil.rmtree(broker.home / "data")
        began = broker.start()
        assert ledger.received & settled_before == set(), f"delivered again: seed {seed}"
        print(
            f"{len(ledger.answered):,} records and {len(ledger.settled):,} acknowledgements answered; "
            f"the first answer {began:.2f} s after the start on an empty directory"
        )
        answered |= ledger.answered.keys()
        settled_before |= ledger.settled.keys()
        first = ledger.next
    assert broker.terminate() == 0
    there = numbers_in(broker.home / "data", TOPIC)
    lost = answered - there.keys()
    assert lost == set(), f"{len(lost)} of {len(answered)} answered records are lost: seed {seed}"
