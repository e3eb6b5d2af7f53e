"""kill -9, and writes that fail, in the middle of producing and consuming: what was answered holds."""

from __future__ import annotations

import os
import random
import resource
import time
from functools import partial

import pytest
from tests.harness.broker import Broker
from tests.harness.clients import configure_group, create_topic
from tests.harness.ledger import Ledger
from tests.interop.conftest import BrokerMaker

from sharecore.admin import SharePartitionState
from sharecore.admin.data_dir import share_state

KILLS = int(os.environ.get("KILLS", "1"))
FAULTS = int(os.environ.get("FAULTS", "1"))
SEED = int(os.environ.get("SEED", "20"))  # `make torture` draws one
GROUP = "ledger"
QUEUE = "dlq.ledger"


def begin(broker: Broker, *, counts_may_fall: bool = False) -> list[Ledger]:
    """Two topics, each with a producer and a share consumer at work."""
    broker.start()
    topics = [f"{GROUP}-{number}" for number in range(2)]
    create_topic(broker.bootstrap, QUEUE, 1, **{"errors.deadletterqueue.group.enable": "true"})
    configure_group(
        broker.bootstrap,
        GROUP,
        share_auto_offset_reset="earliest",
        share_delivery_count_limit=10,
        share_record_lock_duration_ms=2000,
        errors_deadletterqueue_topic_name=QUEUE,
        errors_deadletterqueue_copy_record_enable="true",
    )
    for topic in topics:
        create_topic(broker.bootstrap, topic)
    ledgers = [
        Ledger(broker.bootstrap, topic, GROUP, QUEUE, counts_may_fall=counts_may_fall) for topic in topics
    ]
    for ledger in ledgers:
        ledger.start()
    return ledgers


def check_disk(broker: Broker, ledgers: list[Ledger]) -> None:
    """Hold what each ledger knows against the broker's data directory."""

    def read(topic: str) -> SharePartitionState | None:
        found = share_state(broker.home / "data")
        assert found.problems == []
        return next((state for state in found.states if state.topic == topic), None)

    for ledger in ledgers:
        ledger.check_durable(partial(read, ledger.topic))


def end(broker: Broker, ledgers: list[Ledger], replay: str, least: int) -> None:
    """Lets everything be settled, and says what was broken."""
    time.sleep(1)
    for ledger in ledgers:
        ledger.settle(60)
    check_disk(broker, ledgers)
    for ledger in ledgers:
        assert ledger.broken == [], f"replay with {replay}"
        assert len(ledger.answered) > least, "too little was produced to mean anything"
        assert sum(ledger.deliveries.values()) > len(ledger.deliveries), "nothing was ever redelivered"
        assert ledger.start_offset > 0
        print(
            f"{ledger.topic}: {len(ledger.answered)} records answered, {len(ledger.settled)} settled, "
            f"{sum(ledger.deliveries.values())} deliveries, start offset {ledger.start_offset}"
        )


@pytest.mark.timeout(120 + 10 * KILLS)
def test_what_was_answered_outlives_the_process(new_broker: BrokerMaker) -> None:
    broker = new_broker()
    ledgers = begin(broker)
    moments = random.Random(SEED)
    for _ in range(KILLS):
        time.sleep(moments.uniform(0.5, 3.0))
        broker.kill()
        check_disk(broker, ledgers)
        broker.start()
    end(broker, ledgers, f"SEED={SEED} KILLS={KILLS}", 100 * KILLS)


@pytest.mark.long
@pytest.mark.timeout(120 + 10 * FAULTS)
def test_what_was_answered_outlives_writes_that_fail(new_broker: BrokerMaker) -> None:
    broker = new_broker()
    ledgers = begin(broker, counts_may_fall=True)
    moments = random.Random(SEED)
    for number in range(FAULTS):
        time.sleep(moments.uniform(0.5, 2.0))
        # like a full disk: no file grows much beyond the current size, so frames are truncated
        size = max(path.stat().st_size for path in (broker.home / "data").glob("*.journal"))
        limit = (size, size + moments.randrange(4096), 0)[number % 3]
        resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        until = time.monotonic() + 30
        while number == 0 and "File too large" not in broker.read_log():
            assert time.monotonic() < until, "no write has failed"
            time.sleep(0.05)
        time.sleep(moments.uniform(0.2, 1.5))
        check_disk(broker, ledgers)
        if moments.random() < 0.3:
            broker.kill()
            check_disk(broker, ledgers)
            broker.start()
        else:
            unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
            resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, unlimited)
    end(broker, ledgers, f"SEED={SEED} FAULTS={FAULTS}", 100)
