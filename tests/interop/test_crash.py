"""kill -9 in the middle of producing and consuming: what was answered holds, the rest comes again."""

from __future__ import annotations

import os
import random
import time

import pytest
from tests.harness.clients import configure_group, create_topic
from tests.harness.ledger import Ledger
from tests.interop.conftest import BrokerMaker

KILLS = int(os.environ.get("KILLS", "4"))
SEED = int(os.environ.get("SEED", str(random.randrange(10**6))))


@pytest.mark.timeout(120 + 10 * KILLS)
def test_what_was_answered_holds(new_broker: BrokerMaker) -> None:
    broker = new_broker()
    broker.start()
    create_topic(broker.bootstrap, "ledger")
    configure_group(
        broker.bootstrap,
        "ledger",
        share_auto_offset_reset="earliest",
        share_delivery_count_limit=10,
        share_record_lock_duration_ms=2000,
    )
    ledger = Ledger(broker.bootstrap, "ledger", "ledger")
    ledger.start()
    moments = random.Random(SEED)
    for _ in range(KILLS):
        time.sleep(moments.uniform(0.5, 3.0))
        broker.kill()
        broker.start()
    time.sleep(1)
    ledger.settle(60)
    assert ledger.broken == [], f"replay with SEED={SEED} KILLS={KILLS}"
    assert len(ledger.answered) > 100 * KILLS, "too little was produced to mean anything"
    assert sum(ledger.deliveries.values()) > len(ledger.deliveries), "nothing was ever redelivered"
