"""The effect of a broker's settings, many per start; `tests/probes.toml` says where each is tested."""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.harness.batches import batch
from tests.harness.running import Client, RunningBroker, join_share_group
from tests.unit.broker.share_member import RENEW, Member
from tests.unit.broker.test_records import produce
from tests.unit.broker.test_topics import create, metadata

from sharecore.broker.broker import Broker
from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey
from sharecore.rates import Window

SETTINGS = {
    "node.id": "7",
    "broker.rack": "the-rack",
    "advertised.listeners": "PLAINTEXT://elsewhere:1234",
    "auto.create.topics.enable": "false",
    "num.partitions": "3",
    "delete.topic.enable": "false",
    "fetch.max.bytes": "1024",
    "message.max.bytes": "2000",
    "log.message.timestamp.before.max.ms": "60000",
    "log.message.timestamp.after.max.ms": "60000",
    "max.request.partition.size.limit": "2",
    "offset.metadata.max.bytes": "4",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "4",
    "transaction.max.timeout.ms": "5000",
    "group.min.session.timeout.ms": "7000",
    "group.max.session.timeout.ms": "8000",
    "group.initial.rebalance.delay.ms": "0",
    "group.max.size": "1",
    "group.consumer.max.size": "1",
    "group.consumer.assignors": "range",
    "group.share.max.size": "1",
    "socket.request.max.bytes": "50000",
    "socket.send.buffer.bytes": "40000",
    "socket.listen.backlog.size": "7",
    "quota.window.num": "3",
    "quota.window.size.seconds": "5",
    "controller.quota.window.num": "4",
    "controller.quota.window.size.seconds": "6",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    running = RunningBroker(tmp_path_factory.mktemp("data"), SETTINGS).start()
    yield running
    running.stop()


def test_who_the_broker_says_it_is(broker: RunningBroker) -> None:
    (node,) = broker.ask(ApiKey.METADATA, 9, topics=[]).brokers
    assert (node.node_id, node.rack, node.host, node.port) == (7, "the-rack", "elsewhere", 1234)


def test_topics_are_made_and_deleted_as_told(broker: RunningBroker) -> None:
    """num.partitions, auto.create.topics.enable, delete.topic.enable"""
    assert create(broker, name="defaults", num_partitions=-1).error_code == 0
    assert len(metadata(broker, "defaults").partitions) == 3
    missing = metadata(broker, "missing", allow_auto_topic_creation=True)
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    asked = broker.ask(ApiKey.DELETE_TOPICS, 5, topic_names=["defaults"], timeout_ms=1000)
    assert asked.responses[0].error_code == ErrorCode.TOPIC_DELETION_DISABLED


@pytest.mark.parametrize(
    ("internal", "count"), [("__consumer_offsets", 2), ("__transaction_state", 3), ("__share_group_state", 4)]
)
def test_internal_topics_have_so_many_partitions(broker: RunningBroker, internal: str, count: int) -> None:
    """offsets.topic, transaction.state.log and share.coordinator.state.topic.num.partitions"""
    assert len(metadata(broker, internal).partitions) == count


def test_an_answer_tells_of_so_many_partitions(broker: RunningBroker) -> None:
    """max.request.partition.size.limit"""
    create(broker, name="described", num_partitions=5)
    asked = [{"name": "described"}]
    answer = broker.ask(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, topics=asked, response_partition_limit=5, cursor=None
    )
    assert len(answer.topics[0].partitions) == 2
    assert answer.next_cursor.partition_index == 2


def test_records_that_are_taken(broker: RunningBroker) -> None:
    """message.max.bytes and log.message.timestamp.*: defaults of topics."""
    create(broker, name="records")
    now_ms = int(time.time() * 1000)

    def code(value: bytes, age_ms: int) -> int:
        answer = produce(broker, "records", batch([value], timestamps=[now_ms - age_ms]))
        return int(answer.error_code)

    assert code(b"x" * 1000, 0) == 0
    assert code(b"x" * 2000, 0) == ErrorCode.MESSAGE_TOO_LARGE
    for age_ms in (120_000, -120_000):
        assert code(b"x", age_ms) == ErrorCode.INVALID_TIMESTAMP
        assert code(b"x", age_ms // 4) == 0


def test_a_fetch_gets_so_many_bytes(broker: RunningBroker) -> None:
    """fetch.max.bytes, whatever the client requests; one batch is returned whatever its size"""
    create(broker, name="fetched")
    for _ in range(3):
        assert (
            produce(broker, "fetched", batch([b"x" * 600], timestamps=[int(time.time() * 1000)])).error_code
            == 0
        )
    part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    answer = broker.ask(
        ApiKey.FETCH,
        11,
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[{"topic": "fetched", "partitions": [part]}],
    )
    assert 600 < len(answer.responses[0].partitions[0].records) <= 1024


def test_a_share_fetch_gets_so_many_bytes(broker: RunningBroker, group: str) -> None:
    """fetch.max.bytes, as for a plain fetch; the next fetch gets the rest"""
    create(broker, name="shared")
    member = Member(broker, group, "shared")
    for _ in range(3):
        produce(broker, "shared", batch([b"x" * 600], timestamps=[int(time.time() * 1000)]))
    seen: list[int] = []
    while len(seen) < 3:
        fetched = member.fetch(0, max_bytes=1 << 20)
        for topic in fetched.responses:
            (part,) = topic.partitions
            assert len(part.records) <= 1024
            for each in part.acquired_records:
                assert each.first_offset == each.last_offset
                seen.append(each.first_offset)
    assert seen == [0, 1, 2]
    member.client.close()


def test_text_beside_an_offset_is_bounded(broker: RunningBroker) -> None:
    """offset.metadata.max.bytes"""
    create(broker, name="committed")

    def code(text: str) -> int:
        part = {"partition_index": 0, "committed_offset": 1, "committed_metadata": text}
        topics = [{"name": "committed", "partitions": [part]}]
        answer = broker.ask(ApiKey.OFFSET_COMMIT, 8, group_id="g", topics=topics)
        return int(answer.topics[0].partitions[0].error_code)

    assert code("1234") == 0
    assert code("12345") == ErrorCode.OFFSET_METADATA_TOO_LARGE


def test_a_transaction_lasts_so_long(broker: RunningBroker) -> None:
    """transaction.max.timeout.ms"""

    def code(timeout_ms: int) -> int:
        fields = {"transactional_id": "t", "transaction_timeout_ms": timeout_ms}
        return int(broker.ask(ApiKey.INIT_PRODUCER_ID, 4, **fields).error_code)

    assert code(5000) == 0
    assert code(5001) == ErrorCode.INVALID_TRANSACTION_TIMEOUT


def _join(client: Client, group: str, session_ms: int, member: str = "") -> Any:
    return client.ask(
        ApiKey.JOIN_GROUP,
        3,
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=session_ms,
        member_id=member,
        protocol_type="consumer",
        protocols=[{"name": "range", "metadata": b""}],
    )


def test_classic_groups_are_bounded(broker: RunningBroker) -> None:
    """group.min.session.timeout.ms, group.max.session.timeout.ms, group.max.size; with
    group.initial.rebalance.delay.ms=0 the first member is answered at once
    """
    client = broker.connect()
    for session_ms in (6999, 8001):
        assert _join(client, "classic", session_ms).error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    begun = time.monotonic()
    assert _join(client, "classic", 7000).error_code == 0
    assert time.monotonic() - begun < 2.9, "the default is three seconds"
    assert _join(broker.connect(), "classic", 8000).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_fetch_sessions_are_bounded(tmp_path: Path) -> None:
    """max.incremental.fetch.session.cache.slots"""
    running = RunningBroker(tmp_path, {"max.incremental.fetch.session.cache.slots": "1"}).start()
    try:
        fields = {"max_wait_ms": 0, "min_bytes": 0, "session_id": 0, "session_epoch": 0, "topics": []}
        first, second = (running.ask(ApiKey.FETCH, 12, **fields).session_id for _ in range(2))
    finally:
        running.stop()
    assert first > 0
    assert second == 0


def test_consumer_groups_are_bounded(broker: RunningBroker) -> None:
    """group.consumer.max.size, group.consumer.assignors"""
    create(broker, name="consumed")

    def code(member: str, assignor: str | None = None) -> int:
        answer = broker.ask(
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            1,
            group_id="consumers",
            member_id=member,
            member_epoch=0,
            rebalance_timeout_ms=5000,
            server_assignor=assignor,
            subscribed_topic_names=["consumed"],
            topic_partitions=[],
        )
        return int(answer.error_code)

    assert code("a", "uniform") == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert code("a", "range") == 0
    assert code("b") == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_share_groups_are_bounded(broker: RunningBroker) -> None:
    """group.share.max.size; members get the group's share.heartbeat.interval.ms"""
    create(broker, name="shared")
    configs = [{"name": "share.heartbeat.interval.ms", "config_operation": 0, "value": "14000"}]
    resource = {"resource_type": 32, "resource_name": "told", "configs": configs}
    broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource])
    told = join_share_group(broker.connect(), "told", "a", ["shared"])
    assert told.heartbeat_interval_ms == 14000
    assert join_share_group(broker.connect(), "sharers", "a", ["shared"]).error_code == 0
    fields = {"member_epoch": 0, "subscribed_topic_names": ["shared"]}
    answer = broker.ask(ApiKey.SHARE_GROUP_HEARTBEAT, 1, group_id="sharers", member_id="b", **fields)
    assert answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_so_many_connections_may_wait_to_be_accepted(broker: RunningBroker) -> None:
    """socket.listen.backlog.size, as seen by the kernel"""

    def backlog(running: Broker) -> int:
        sockets = next(iter(running.server._listening)).sockets
        told = sockets[0].getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 32)
        return int(struct.unpack("8B6I", told)[-1])

    assert broker.look(backlog) == 7


def test_so_much_of_an_answer_a_socket_takes_at_a_time(broker: RunningBroker) -> None:
    """socket.send.buffer.bytes: the kernel doubles it for its own use"""
    client = broker.connect()
    client.ask(ApiKey.METADATA, 9, topics=[])

    def sizes(running: Broker) -> set[int]:
        found = set()
        for connection in running.server.connections.values():
            with socket.socket(fileno=os.dup(connection._transport.fileno())) as same:
                found.add(same.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF))
        return found

    assert broker.look(sizes) == {80000}


def test_what_rates_are_measured_over(broker: RunningBroker) -> None:
    """quota.window.num, quota.window.size.seconds, and those of controller.quota"""

    def windows(running: Broker) -> list[Window]:
        throttles = running.throttles
        # a bucket and a rate that are not in use yet
        return [throttles._window, throttles._buckets._make()._window]

    assert broker.look(windows) == [Window(3, 5000), Window(4, 6000)]


def test_locks_may_be_renewed_where_the_group_allows_it(broker: RunningBroker) -> None:
    """share.renew.acknowledge.enable"""
    create(broker, name="renewed")
    for allowed in (True, False):
        group = f"renews-{allowed}"
        configs = [
            {"name": name, "config_operation": 0, "value": text}
            for name, text in {
                "share.auto.offset.reset": "earliest",
                "share.renew.acknowledge.enable": str(allowed).lower(),
            }.items()
        ]
        resource = {"resource_type": 32, "resource_name": group, "configs": configs}
        broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource])
        member = Member(broker, group, "renewed")
        produce(broker, "renewed", batch([b"x"], timestamps=[int(time.time() * 1000)]))
        fetched = member.fetch(0)
        first = fetched.responses[0].partitions[0].acquired_records[0].first_offset
        answer = member.acknowledge({0: [(first, first, RENEW)]}, is_renew_ack=True)
        code = answer.responses[0].partitions[0].error_code
        assert (code == 0) is allowed
        member.client.close()


def test_a_request_may_be_so_large(broker: RunningBroker) -> None:
    """socket.request.max.bytes"""
    client = broker.connect()
    client.send_frame(bytes(50_001))
    with pytest.raises(EOFError):
        client.receive_frame()
