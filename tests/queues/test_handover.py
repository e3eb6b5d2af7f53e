"""Order by key and back-off while nodes of a tier hand their slots over, one after the other."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.harness.broker import Broker
from tests.harness.clients import configure_group, create_topic
from tests.harness.queue_ledger import Ledger
from tests.harness.queue_members import GROUP, JAVA, RDKAFKA, TOPIC, java_member, uneven_member
from tests.harness.tier import LIBS, SMALL, Nodes
from tests.queues.test_stock_clients import AT_ONCE, PARTITIONS, produce_some, wait_until

from sharecore.admin import BlockingAdmin

pytestmark = pytest.mark.timeout(600)
BACKOFF_S = 0.5
ROUNDS = 6
PATIENCE_S = 60
NEWEST_JAVA = "java 4.4.0"


@pytest.fixture
def upstream(tmp_path: Path) -> Iterator[Broker]:
    made = Broker(tmp_path / "upstream", "apache", SMALL, libs=LIBS)
    made.start()
    yield made
    made.kill()


def _reasons(bootstrap: str) -> set[str]:
    """Return why records of the group wait, which has no members; `missing` if a node does not answer."""
    with BlockingAdmin(bootstrap_servers=bootstrap) as admin:
        behind = [each.partition for each in admin.offsets(GROUP) if each.lag]
        found = admin.waiting_of(GROUP, behind)
    if found.missing:
        return {f"missing: {found.missing}"}
    return {each["reason"] for reasons in found.partitions.values() for each in reasons}


@pytest.mark.parametrize("cache_bytes", ["67108864", "0"], ids=["with a cache", "without"])
def test_nothing_is_out_of_order_nor_early_over_handovers(
    upstream: Broker, tmp_path: Path, cache_bytes: str
) -> None:
    nodes = Nodes(tmp_path, upstream.bootstrap, **{"sharecore.expanded.cache.bytes": cache_bytes})
    for _ in range(2):
        nodes.add()
    try:
        nodes.start()
        create_topic(upstream.bootstrap, TOPIC, PARTITIONS)
        bootstrap = ",".join(node.bootstrap for node in nodes.made)
        configure_group(
            bootstrap,
            GROUP,
            share_ordering="key",
            share_retry_backoff_ms=int(BACKOFF_S * 1000),
            share_retry_backoff_multiplier=1.0,
            share_deliver_at_header="deliver-at",
            share_auto_offset_reset="earliest",
            share_record_lock_duration_ms=10_000,
            share_delivery_count_limit=10,
        )
        ledger = Ledger()
        with ExitStack() as members:
            members.enter_context(java_member(bootstrap, ledger, NEWEST_JAVA, JAVA[NEWEST_JAVA]))
            for seed, name in enumerate(RDKAFKA):
                members.enter_context(uneven_member(bootstrap, ledger, name, seed))
            for number in range(ROUNDS):
                produce_some(upstream.bootstrap, ledger, number)
                wait_until(lambda: len(ledger.places()) > len(ledger.sent) - AT_ONCE, ledger)
                node = nodes.made[number % 2]
                assert node.terminate() == 0
                node.start()
            wait_until(lambda: ledger.places() >= ledger.sent.keys(), ledger)
        produce_some(upstream.bootstrap, Ledger(), 0)
        for node in nodes.made:
            assert node.terminate() == 0
            node.start()
        until = time.monotonic() + PATIENCE_S
        while (said := _reasons(bootstrap)) != {"idle"}:
            assert time.monotonic() < until, said
            time.sleep(0.2)
    finally:
        nodes.kill()
    assert ledger.out_of_order(whole=False) == []
    assert ledger.early(BACKOFF_S) == []
    assert len(ledger.releases) > 20
    print(f"{len(ledger.sent)} records, {len(ledger.came)} deliveries, {len(ledger.releases)} released")
