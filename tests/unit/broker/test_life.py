"""A broker's lifecycle: restart, retention, shutdown."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from tests.harness.batches import batch
from tests.harness.running import Client, RunningBroker
from tests.harness.until import until

from sharecore.broker.backend import Host
from sharecore.broker.broker import Broker
from sharecore.broker.page import BrokerPage
from sharecore.broker.store.backend import StoreBackend
from sharecore.config import BrokerConfig
from sharecore.errors import ConfigError
from sharecore.protocol import ApiKey

TOPIC, BROKER, GROUP = 2, 4, 32
MINUTE_MS = 60_000


def create(broker: RunningBroker, name: str, **configs: str) -> None:
    settings = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    asked = {"name": name, "num_partitions": 1, "replication_factor": 1, "configs": settings}
    answer = broker.ask(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=5000)
    assert answer.topics[0].error_code == 0


def produce_fields(name: str, records: bytes) -> dict[str, object]:
    part = {"index": 0, "records": records}
    return {"acks": -1, "timeout_ms": 1000, "topic_data": [{"name": name, "partition_data": [part]}]}


def produce(broker: RunningBroker, name: str, records: bytes) -> None:
    answer = broker.ask(ApiKey.PRODUCE, 12, **produce_fields(name, records))
    assert answer.responses[0].partition_responses[0].error_code == 0


def offset(broker: RunningBroker, name: str, timestamp: int) -> int:
    topics = [{"name": name, "partitions": [{"partition_index": 0, "timestamp": timestamp}]}]
    answer = broker.ask(ApiKey.LIST_OFFSETS, 7, replica_id=-1, topics=topics)
    found: int = answer.topics[0].partitions[0].offset
    return found


def alter(broker: RunningBroker, kind: int, resource: str, key: str, text: str) -> None:
    configs = [{"name": key, "config_operation": 0, "value": text}]
    asked = {"resource_type": kind, "resource_name": resource, "configs": configs}
    answer = broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[asked], validate_only=False)
    assert answer.responses[0].error_code == 0


def value(broker: RunningBroker, kind: int, resource: str, key: str) -> str:
    asked = {"resource_type": kind, "resource_name": resource, "configuration_keys": [key]}
    (config,) = broker.ask(ApiKey.DESCRIBE_CONFIGS, 4, resources=[asked]).results[0].configs
    found: str = config.value
    return found


def within(seconds: float, broker: RunningBroker, name: str, start: int) -> None:
    """Wait until a log starts at an offset."""
    until(lambda: offset(broker, name, -2) == start, f"start {start} of {name}", seconds)


def test_a_restart_keeps_everything(tmp_path: Path) -> None:
    broker = RunningBroker(tmp_path).start()
    create(broker, "kept", retention_ms="-1")
    create(broker, "gone")
    produce(broker, "kept", batch([b"a", b"b", b"c"]))
    broker.ask(ApiKey.DELETE_TOPICS, 6, topics=[{"name": "gone"}], timeout_ms=1000)
    alter(broker, GROUP, "g", "share.auto.offset.reset", "earliest")
    alter(broker, BROKER, "1", "message.max.bytes", "777")
    before = broker.ask(ApiKey.METADATA, 12, topics=[{"name": "kept"}])
    producers = {
        broker.ask(ApiKey.INIT_PRODUCER_ID, 4, transactional_id=None, transaction_timeout_ms=1).producer_id
        for _ in range(3)
    }
    broker.stop()

    broker = RunningBroker(tmp_path).start()
    after = broker.ask(ApiKey.METADATA, 12, topics=[{"name": "kept"}])
    assert (after.cluster_id, after.topics[0].topic_id) == (before.cluster_id, before.topics[0].topic_id)
    names = {topic.name for topic in broker.ask(ApiKey.METADATA, 12, topics=None).topics}
    assert names == {"kept", "__consumer_offsets", "__share_group_state", "__transaction_state"}
    assert offset(broker, "kept", -1) == 3
    assert value(broker, TOPIC, "kept", "retention.ms") == "-1"
    assert value(broker, GROUP, "g", "share.auto.offset.reset") == "earliest"
    assert value(broker, TOPIC, "kept", "max.message.bytes") == "777"
    again = broker.ask(ApiKey.INIT_PRODUCER_ID, 4, transactional_id=None, transaction_timeout_ms=1)
    assert again.producer_id not in producers
    broker.stop()


def test_a_directory_belongs_to_one_broker(tmp_path: Path) -> None:
    broker = RunningBroker(tmp_path).start()
    with pytest.raises(OSError, match="use"):
        RunningBroker(tmp_path).start()
    broker.stop()
    with pytest.raises(ConfigError, match="belongs to another node"):
        RunningBroker(tmp_path, {"node.id": "8"}).start()


def test_limits_that_change_reach_the_logs(tmp_path: Path) -> None:
    broker = RunningBroker(tmp_path).start()
    create(broker, "t")
    records = batch([b"x" * 1000])
    alter(broker, TOPIC, "t", "max.message.bytes", "500")
    refused = broker.ask(ApiKey.PRODUCE, 12, **produce_fields("t", records))
    assert refused.responses[0].partition_responses[0].error_code == 10
    alter(broker, TOPIC, "t", "max.message.bytes", "5000")
    produce(broker, "t", records)
    alter(broker, TOPIC, "t", "message.timestamp.type", "LogAppendTime")
    answer = broker.ask(ApiKey.PRODUCE, 12, **produce_fields("t", records))
    assert abs(answer.responses[0].partition_responses[0].log_append_time_ms - time.time() * 1000) < MINUTE_MS
    broker.stop()


def test_retention_by_time_and_by_size(tmp_path: Path) -> None:
    broker = RunningBroker(tmp_path, {"log.retention.check.interval.ms": "50"}).start()
    now_ms = int(time.time() * 1000)
    for name in ("by-time", "by-size", "compacted", "for-ever"):
        create(broker, name, retention_ms="-1")
        for age_ms in (3 * MINUTE_MS, 2 * MINUTE_MS, 0):
            produce(broker, name, batch([b"x" * 100] * 2, timestamps=[now_ms - age_ms] * 2))
    alter(broker, TOPIC, "compacted", "cleanup.policy", "compact")
    alter(broker, TOPIC, "compacted", "retention.ms", "1000")
    alter(broker, TOPIC, "by-time", "retention.ms", str(MINUTE_MS))
    alter(broker, TOPIC, "by-size", "retention.bytes", str(2 * len(batch([b"x" * 100] * 2)) - 10))
    within(10, broker, "by-time", 4)
    within(10, broker, "by-size", 2)
    alter(broker, TOPIC, "by-size", "retention.bytes", "0")
    within(10, broker, "by-size", 6)
    assert [offset(broker, name, -2) for name in ("compacted", "for-ever")] == [0, 0]
    assert offset(broker, "by-size", -1) == 6
    broker.stop()


def test_a_stop_answers_what_was_written_and_ends_what_waits(tmp_path: Path) -> None:
    broker = RunningBroker(tmp_path).start()
    create(broker, "t")
    waiting, writing = Client(broker.port), Client(broker.port)
    asked = [{"topic": "t", "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}]}]
    waiting.send(ApiKey.FETCH, 12, max_wait_ms=60_000, min_bytes=100_000, max_bytes=1000, topics=asked)
    waiting.send(ApiKey.API_VERSIONS, 0)
    for _ in range(20):
        writing.send(ApiKey.PRODUCE, 12, **produce_fields("t", batch([b"a"])))
    broker.until_received(waiting, 2)

    def all_received(running: Broker) -> bool:
        log = running.topics.log("t", 0)
        return log is not None and log.end_offset == 20

    # connections whose requests have not been received by then are cut off
    broker.until(all_received)
    broker.stop()
    with pytest.raises(EOFError):
        waiting.receive(ApiKey.FETCH, 12)
    answers = [writing.receive(ApiKey.PRODUCE, 12) for _ in range(20)]
    assert [answer.responses[0].partition_responses[0].base_offset for answer in answers] == list(range(20))


class Joining(StoreBackend):
    """Others are asked for leaders, and told the port; a client connects meanwhile."""

    refused = False

    async def join(self, broker: Host) -> None:
        (listener,) = broker.listeners.values()
        assert listener.port
        try:
            await asyncio.open_connection("127.0.0.1", listener.port)
        except ConnectionRefusedError:
            self.refused = True


def test_clients_are_let_in_when_it_is_known_who_leads_what(tmp_path: Path) -> None:
    backend = Joining()
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path)}

    async def test() -> None:
        broker = Broker(BrokerConfig.from_properties(settings), backend=backend)
        await broker.start()
        (listener,) = broker.listeners.values()
        _, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        writer.close()
        await broker.stop()

    asyncio.run(test())
    assert backend.refused


def test_a_start_that_fails_at_its_end_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(page: BrokerPage) -> None:
        raise ConfigError("no page")

    async def start() -> None:
        await asyncio.sleep(0)
        before = asyncio.all_tasks()
        with pytest.raises(ConfigError, match="no page"):
            await broker.start()
        for port in (broker.listeners["PLAINTEXT"].port, broker.metrics_port, broker.page_port):
            assert port
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", port)
        assert asyncio.all_tasks() == before

    monkeypatch.setattr(BrokerPage, "start", fail)
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(tmp_path),
        "sharecore.page.listener": "127.0.0.1:0",
        "sharecore.metrics.listener": "127.0.0.1:0",
    }
    broker = Broker(BrokerConfig.from_properties(settings))
    asyncio.run(start())
