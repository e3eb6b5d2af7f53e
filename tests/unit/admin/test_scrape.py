from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.harness.running import RunningBroker
from tests.unit.broker.share_member import Member, produce

from sharecore.admin.scrape import scrape_held
from sharecore.protocol import ApiKey


def test_what_a_brokers_metrics_tell_of_leases(tmp_path: Path) -> None:
    running = RunningBroker(tmp_path, {"sharecore.metrics.listener": "127.0.0.1:0"}).start()
    try:
        asked = {"name": "jobs", "num_partitions": 1, "replication_factor": 1}
        running.ask(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=5000)
        configs = [{"name": "share.auto.offset.reset", "config_operation": 0, "value": "earliest"}]
        resources = [{"resource_type": 32, "resource_name": "g", "configs": configs}]
        running.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources)
        produce(running, "jobs", 7)
        member = Member(running, "g", "jobs")
        while not any(topic.partitions[0].acquired_records for topic in member.fetch(0).responses):
            pass
        url = f"http://127.0.0.1:{running.broker.metrics_port}/metrics"
        in_flight, oldest_s = asyncio.run(scrape_held(url))
        assert in_flight == {("g", "jobs", 0): 7}
        assert 0 <= oldest_s["g", "jobs", 0] < 30
        with pytest.raises(OSError, match="404"):
            asyncio.run(scrape_held(url + "/none"))
    finally:
        running.stop()
