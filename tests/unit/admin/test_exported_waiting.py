"""The exporter says why records wait as the broker's own metrics do."""

from __future__ import annotations

import asyncio
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.harness.running import RunningBroker
from tests.unit.broker.share_member import ACCEPT, REJECT, RELEASE, Member, acquired, produce

from sharecore.admin.exporter import Exporter
from sharecore.broker.broker import Broker
from sharecore.client.settings import read_connection_settings
from sharecore.client.wire.transport import Transport
from sharecore.metrics.exporter_families import EXPORTED
from sharecore.protocol import ApiKey

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]
SAME = {
    "sharecore_share_group_records_waiting",
    "sharecore_share_group_paused",
    "sharecore_share_group_breaker_state",
    "sharecore_share_group_window_full",
    "sharecore_share_group_hottest_key_records",
    "sharecore_share_group_records_kept",
    "sharecore_share_group_fetches_held_back",
}
SETTINGS = {
    "sharecore.metrics.listener": "127.0.0.1:0",
    "group.share.min.record.lock.duration.ms": "1000",
}
GROUPS = {
    "returned": {
        "share.retry.backoff.ms": "60000",
        "share.breaker.percent": "50",
        "share.breaker.min.records": "1",
    },
    "keys": {"share.ordering": "key"},
    "line": {"share.ordering": "partition"},
    "asleep": {"share.paused": "true", "share.retry.backoff.ms": "1"},
    "kept": {"share.record.lock.keep": "connected", "share.record.lock.duration.ms": "1000"},
    "bounded": {"share.member.max.record.locks": "1", "share.breaker.percent": "50"},
    "plain": {},
}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    """Provide a broker with groups whose records wait for different things."""
    running = RunningBroker(tmp_path, SETTINGS).start()
    topic = {"name": "t", "num_partitions": 1, "replication_factor": 1}
    running.ask(ApiKey.CREATE_TOPICS, 7, topics=[topic], timeout_ms=5000)
    for group, settings in GROUPS.items():
        configs = [
            {"name": name, "config_operation": 0, "value": value}
            for name, value in (settings | {"share.auto.offset.reset": "earliest"}).items()
        ]
        resource = {"resource_type": 32, "resource_name": group, "configs": configs}
        running.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource])
    produce(running, "t", 4)
    yield running
    running.stop()


def samples(text: str) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def exported(running: RunningBroker) -> Samples:
    async def look() -> str:
        settings = read_connection_settings({"bootstrap.servers": f"127.0.0.1:{running.port}"})
        transport = Transport(settings)
        exporter = Exporter(transport, series_max=0)  # the sums do not depend on it
        try:
            await exporter.look()
            return (await exporter.metrics()).body.decode()
        finally:
            await transport.close()

    return samples(asyncio.run(look()))


def own(running: RunningBroker) -> Samples:
    url = f"http://127.0.0.1:{running.broker.metrics_port}/metrics"
    with urllib.request.urlopen(url, timeout=20) as page:
        return samples(page.read().decode())


def kept_records(broker: Broker) -> int:
    topic = broker.topics.get("t")
    assert topic is not None
    engine = broker.share.partitions.get("kept", topic.topic_id, 0).engine
    return 0 if engine is None else engine.waiting_reasons(1).kept


@pytest.mark.heavy
def test_it_exports_what_the_brokers_metrics_say(broker: RunningBroker) -> None:
    returned = Member(broker, "returned", "t")
    assert acquired(returned.fetch(0)) == {0: [(0, 3, 1)]}
    returned.acknowledge({0: [(0, 1, RELEASE), (2, 2, REJECT), (3, 3, ACCEPT)]})
    bounded = Member(broker, "bounded", "t")
    assert acquired(bounded.fetch(0, max_records=1))
    bounded.send(0, max_wait_ms=20_000)
    broker.until_received(bounded.client)
    for group in ("kept", "keys", "line", "asleep", "plain"):
        member = Member(broker, group, "t")
        got = acquired(member.fetch(0))
        assert bool(got) == (group != "asleep")
    broker.until(lambda each: kept_records(each) == 4)
    theirs, ours = own(broker), exported(broker)
    shown = {key: value for key, value in ours.items() if key[0] in SAME}
    assert shown == {key: value for key, value in theirs.items() if key in shown}
    # an exporter leaves out what nothing waits for
    left = {key: value for key, value in theirs.items() if key[0] in SAME and key not in shown and value}
    assert left == {}
    of = {(name, *sorted(value for _, value in labels)): value for (name, labels), value in shown.items()}
    waiting = "sharecore_share_group_records_waiting"
    assert of[waiting, "backoff", "returned", "t"] == 2
    assert of[waiting, "line", "order", "t"] == 3
    assert of["sharecore_share_group_breaker_state", "returned"] == 2
    assert of["sharecore_share_group_paused", "asleep"] == 1
    assert of["sharecore_share_group_paused", "plain"] == 0
    assert of["sharecore_share_group_records_kept", "kept", "t"] == 4
    assert of["sharecore_share_group_fetches_held_back", "bounded", "member"] == 1
    assert of["sharecore_share_group_breaker_state", "bounded"] == 0
    assert {name for name, _ in ours} <= {family.name for family in EXPORTED}
