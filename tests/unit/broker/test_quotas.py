"""Quotas on a running broker: only clients above their quota are throttled."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.harness.batches import batch
from tests.harness.running import Client, RunningBroker
from tests.unit.broker.share_member import Member

from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey
from sharecore.quotas import entity_of


@pytest.fixture
def client(broker: RunningBroker) -> Iterator[Client]:
    """Provide a client with its own quotas, which are removed with it."""
    client = Client(broker.port, "greedy")
    yield client
    client.close()
    for key in ("producer_byte_rate", "consumer_byte_rate", "controller_mutation_rate", "request_percentage"):
        limit(broker, "greedy", key, None)


def limit(broker: RunningBroker, client_id: str, key: str, value: float | None) -> None:
    entity = [{"entity_type": "client-id", "entity_name": client_id}]
    operation = {"key": key, "value": value or 0.0, "remove": value is None}
    entries = [{"entity": entity, "ops": [operation]}]
    answer = broker.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, entries=entries, validate_only=False)
    assert answer.entries[0].error_code == 0, answer


def test_changes_at_a_time_undo_nothing(broker: RunningBroker) -> None:
    """Each change waits for its write, and the next one must not start from older values."""
    keys = ["producer_byte_rate", "consumer_byte_rate", "request_percentage"]
    entity = [{"entity_type": "client-id", "entity_name": "changed at a time"}]
    clients = [broker.connect() for _ in keys]
    for client, key in zip(clients, keys, strict=True):
        entries = [{"entity": entity, "ops": [{"key": key, "value": 5.0, "remove": False}]}]
        client.send(ApiKey.ALTER_CLIENT_QUOTAS, 1, entries=entries, validate_only=False)
    for client in clients:
        assert client.receive(ApiKey.ALTER_CLIENT_QUOTAS, 1).entries[0].error_code == 0
        client.close()
    named = entity_of([("client-id", "changed at a time")])
    assert broker.look(lambda it: dict(it.quotas.of(named))) == dict.fromkeys(keys, 5.0)


def produce(client: Client, topic: str, size: int) -> Any:
    part = {"index": 0, "records": batch([bytes(size)])}
    data = [{"name": topic, "partition_data": [part]}]
    return client.ask(ApiKey.PRODUCE, 9, transactional_id=None, acks=1, timeout_ms=1000, topic_data=data)


def fetch(client: Client, topic: str) -> Any:
    part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    return client.ask(
        ApiKey.FETCH,
        12,
        max_wait_ms=1000,
        min_bytes=1 << 20,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[{"topic": topic, "partitions": [part]}],
    )


@pytest.mark.heavy
def test_a_producer_is_told_and_waits_and_others_do_not(
    broker: RunningBroker, client: Client, topic: str
) -> None:
    limit(broker, "greedy", "producer_byte_rate", 1000)
    assert produce(client, topic, 5_000).throttle_time_ms == 0
    answer = produce(client, topic, 60_000)
    assert answer.responses[0].partition_responses[0].error_code == 0
    assert 0 < answer.throttle_time_ms <= 56_000
    client.send(ApiKey.API_VERSIONS, 3, client_software_name="a", client_software_version="1")
    other = Client(broker.port, "modest")
    assert fetch(other, topic).throttle_time_ms == 0
    other.close()
    assert client.has_nothing()


def test_a_fetch_beyond_the_quota_brings_nothing(broker: RunningBroker, client: Client, topic: str) -> None:
    for _ in range(4):
        produce(client, topic, 1_000)
    limit(broker, "greedy", "consumer_byte_rate", 400)
    first = fetch(client, topic)
    assert first.throttle_time_ms == 0
    size = len(first.responses[0].partitions[0].records)
    assert 3_000 < size <= 4_000, "no more than ten seconds' worth, and not waiting for more"
    second = fetch(client, topic)
    assert second.throttle_time_ms > 0
    assert second.responses == []


def test_a_share_fetch_beyond_the_quota_brings_what_it_has_leased(
    broker: RunningBroker, topic: str, group: str
) -> None:
    writer = Client(broker.port)
    for _ in range(2):
        produce(writer, topic, 1_000)
    limit(broker, "tester", "consumer_byte_rate", 150)
    try:
        member = Member(broker, group, topic)
        records: list[int] = []
        answers: list[Any] = []
        while len(records) < 2 and len(answers) < 8:
            answers.append(member.fetch(*([] if answers else [0])))
            records += [
                offset
                for each in answers[-1].responses
                for part in each.partitions
                for acquired in part.acquired_records
                for offset in range(acquired.first_offset, acquired.last_offset + 1)
            ]
        assert records == [0, 1]
        assert any(answer.throttle_time_ms for answer in answers)
    finally:
        limit(broker, "tester", "consumer_byte_rate", None)
        member.client.close()
        writer.close()


def test_time_is_limited(broker: RunningBroker, client: Client) -> None:
    limit(broker, "greedy", "request_percentage", 1e-6)
    answer = client.ask(ApiKey.METADATA, 12, topics=[], allow_auto_topic_creation=False)
    assert answer.throttle_time_ms == 1000


@pytest.mark.parametrize("bound", [1e-7, 5e-324])
def test_a_quota_may_be_so_small_that_its_wait_fits_no_answer(
    broker: RunningBroker, topic: str, bound: float
) -> None:
    name = f"least-{bound}"
    for key, value in (
        ("request_percentage", bound),
        ("controller_mutation_rate", bound),
        ("producer_byte_rate", 1.0),
        ("consumer_byte_rate", 1.0),
    ):
        limit(broker, name, key, value)
    made = [{"name": f"tiny-{bound}", "num_partitions": 1, "replication_factor": 1}]
    peer = Client(broker.port, name)
    answer = peer.ask(ApiKey.CREATE_TOPICS, 5, topics=made, timeout_ms=1000)
    assert answer.throttle_time_ms == 2**31 - 1
    peer.close()
    peer = Client(broker.port, name)
    assert 0 < produce(peer, topic, 900_000).throttle_time_ms <= 2**31 - 1
    peer.close()
    peer = Client(broker.port, name)
    assert 0 < fetch(peer, topic).throttle_time_ms <= 2**31 - 1
    peer.close()


def test_topics_are_not_made_beyond_the_quota(broker: RunningBroker, client: Client) -> None:
    limit(broker, "greedy", "controller_mutation_rate", 0.1)
    names = [{"name": f"quick-{number}", "num_partitions": 1, "replication_factor": 1} for number in range(4)]
    answer = client.ask(ApiKey.CREATE_TOPICS, 7, topics=names, timeout_ms=1000)
    codes = [topic.error_code for topic in answer.topics]
    assert codes == [0, 0, ErrorCode.THROTTLING_QUOTA_EXCEEDED, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
    assert answer.throttle_time_ms > 0
    other = Client(broker.port, "greedy")
    asked = [{"topic_id": None, "name": "made-by-the-way"}]
    found = other.ask(ApiKey.METADATA, 12, topics=asked, allow_auto_topic_creation=True).topics
    assert found[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    other.close()


def test_connections_are_limited_by_listener_and_at_run_time(tmp_path: Path) -> None:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SIDE://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SIDE:PLAINTEXT",
        "listener.name.side.max.connections": "1",
        "max.connections.per.ip.overrides": "127.0.0.1:6, 10.0.0.1:1",
        "max.connections.per.ip": "0",
    }
    broker = RunningBroker(tmp_path, settings).start()
    try:
        side = broker.look(lambda broker: broker.listeners["SIDE"].port)
        first, second = Client(side), Client(side)
        versions = {"client_software_name": "a", "client_software_version": "1"}
        first.ask(ApiKey.API_VERSIONS, 3, **versions)
        second.send(ApiKey.API_VERSIONS, 3, **versions)
        change = {"name": "listener.name.side.max.connections", "config_operation": 0, "value": "2"}
        wanted = [{"resource_type": 4, "resource_name": "1", "configs": [change]}]
        answer = broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=wanted)
        assert answer.responses[0].error_code == 0, answer
        second.receive(ApiKey.API_VERSIONS, 3)
        bad = {"name": "max.connections.per.ip.overrides", "config_operation": 0, "value": "127.0.0.1:many"}
        wanted = [{"resource_type": 4, "resource_name": "", "configs": [bad]}]
        answer = broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=wanted)
        assert answer.responses[0].error_code == ErrorCode.INVALID_REQUEST
        more = [Client(broker.port) for _ in range(6)]
        with pytest.raises(EOFError):
            more[-1].ask(ApiKey.API_VERSIONS, 3, **versions)
        for each in (first, second, *more):
            each.close()
    finally:
        broker.stop()


def test_limits_of_hosts_are_looked_up_beside_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name server that is down at a restart only costs the limits of its names."""
    overrides = "max.connections.per.ip.overrides"
    broker = RunningBroker(tmp_path, {overrides: "localhost:500"}).start()
    try:
        assert broker.look(lambda broker: dict(broker.server.limits.connections_max_of)) in (
            {"127.0.0.1": 500},
            {"::1": 500},
        )
        for value, error in (("no-such-host.invalid:5", ErrorCode.INVALID_REQUEST), ("localhost:400", 0)):
            changes = {overrides: value, "max.connections": "300"}
            configs = [{"name": key, "config_operation": 0, "value": it} for key, it in changes.items()]
            wanted = [{"resource_type": 4, "resource_name": "", "configs": configs}]
            answer = broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=wanted)
            assert answer.responses[0].error_code == error, answer
        assert broker.look(lambda broker: list(broker.server.limits.connections_max_of.values())) == [400]
    finally:
        broker.stop()

    def fail(*_: object, **__: object) -> None:
        raise OSError("no name server")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    broker = RunningBroker(tmp_path, {}).start()
    try:
        limits = broker.look(lambda broker: broker.server.limits)
        assert (limits.connections_max, dict(limits.connections_max_of)) == (300, {})
        monkeypatch.undo()
        broker.look(lambda broker: broker.hosts.of(["localhost"]))
        broker.until(lambda broker: [*broker.server.limits.connections_max_of.values()] == [400])
    finally:
        broker.stop()


@pytest.mark.heavy
def test_an_address_is_slowed_down_by_its_own_quota(tmp_path: Path) -> None:
    broker = RunningBroker(tmp_path, {}).start()
    try:
        asked = [
            {
                "entity": [{"entity_type": "ip", "entity_name": "127.0.0.1"}],
                "ops": [{"key": "connection_creation_rate", "value": 1.0, "remove": False}],
            }
        ]
        answer = broker.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, entries=asked, validate_only=False)
        assert answer.entries[0].error_code == 0
        refused = 0
        while not refused:
            client = Client(broker.port)
            try:
                client.ask(ApiKey.API_VERSIONS, 3, client_software_name="a", client_software_version="1")
            except EOFError:
                refused += 1
            client.close()
        assert refused > 0
    finally:
        broker.stop()
