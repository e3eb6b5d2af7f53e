"""Expanded record batches are cached for later responses, up to sharecore.expanded.cache.bytes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.harness.clients import QUIET, configure_group, create_topic
from tests.harness.running import RunningBroker
from tests.unit.broker.share_member import ACCEPT, Member, acquired

TOPIC, GROUP = "jobs", "ordered"


@pytest.mark.parametrize(("bytes_max", "keeps"), [("67108864", True), ("0", False)])
@pytest.mark.parametrize("ordering", ["key", "none"])
def test_they_take_memory_where_members_get_parts_of_batches_and_as_much_as_is_allowed(
    tmp_path: Path, bytes_max: str, keeps: bool, ordering: str
) -> None:
    running = RunningBroker(tmp_path, {"sharecore.expanded.cache.bytes": bytes_max}).start()
    try:
        address = f"127.0.0.1:{running.port}"
        create_topic(address, TOPIC)
        settings = {"share_ordering": ordering, "share_auto_offset_reset": "earliest"}
        configure_group(address, GROUP, **settings)
        producer = Producer(
            {"bootstrap.servers": address, "compression.type": "zstd", "linger.ms": 500, **QUIET}
        )
        for number in range(40):
            producer.produce(TOPIC, random.Random(number).randbytes(100).hex(), key=b"%d" % (number % 2))
        assert producer.flush(60) == 0
        member = Member(running, GROUP, TOPIC)
        for first in (0, 2, 4) if ordering == "key" else (0,):
            last = first + 1 if ordering == "key" else 39
            assert acquired(member.fetch(0)) == {0: [(first, last, 1)]}
            member.acknowledge({0: [(first, last, ACCEPT)]})
        taken = running.look(lambda broker: broker.share.partitions.expanded.bytes)
        assert (taken > 40 * 200) == (keeps and ordering == "key")
        member.client.close()
    finally:
        running.stop()
