"""A broker's metrics, compared with the actions of a share-group member."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.harness.running import RunningBroker
from tests.harness.until import until
from tests.unit.broker.share_member import ACCEPT, REJECT, RELEASE, RENEW, Member, acquired, produce

from sharecore._core import Dispatch, LogCleaner
from sharecore.admin import BlockingAdmin
from sharecore.broker.store.backend import StoreBackend
from sharecore.client.wire.cluster import TopicPartition
from sharecore.metrics import protobuf
from sharecore.metrics.families import FAMILIES
from sharecore.metrics.family import Kind
from sharecore.metrics.queue_families import (
    GROUP_BREAKER,
    GROUP_BREAKER_OPENED,
    GROUP_KEPT,
    GROUP_LATE,
    GROUP_UNITS,
    GROUP_WAITING,
    GROUP_WINDOW_FULL,
    QUEUES,
)
from sharecore.protocol import ApiKey
from sharecore.sharestate.keys import SharePartitionKey

SETTINGS = {
    "sharecore.metrics.listener": "127.0.0.1:0",
    "sharecore.telemetry.enable": "true",
}
Samples = dict[tuple[str, frozenset[str]], float]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    running = RunningBroker(tmp_path_factory.mktemp("data"), SETTINGS).start()
    yield running
    running.stop()


def get(broker: RunningBroker, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(
            f"http://127.0.0.1:{broker.broker.metrics_port}{path}", timeout=20
        ) as page:
            return page.status, page.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def scrape(broker: RunningBroker) -> Samples:
    """Samples by name and label values."""
    status, text = get(broker, "/metrics")
    assert status == 200
    return {
        (sample.name, frozenset(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def of(samples: Samples, name: str, *labels: str) -> float:
    return samples[name, frozenset(labels)]


def test_a_share_partition_from_its_first_lease_to_its_last(
    broker: RunningBroker, member: Member, group: str, topic: str
) -> None:
    partition = (group, topic, "0")
    produce(broker, topic, 20)
    assert acquired(member.fetch(0)) == {0: [(0, 19, 1)]}
    held = scrape(broker)
    assert of(held, "sharecore_share_partition_lag", *partition) == 20
    assert of(held, "sharecore_share_partition_end_offset", *partition) == 19
    assert of(held, "kafka_server_share_partition_metrics_in_flight_message_count", *partition) == 20
    assert of(held, "sharecore_share_partition_oldest_lease_age_seconds", *partition) < 30
    assert of(held, "sharecore_share_partition_deliveries_total", *partition, "1") == 20

    acks = [(0, 9, ACCEPT), (10, 10, REJECT), (11, 14, RELEASE), (15, 16, ACCEPT + RELEASE)]
    member.acknowledge({0: acks})
    member.acknowledge({0: [(17, 17, RENEW)]}, is_renew_ack=True)
    assert acquired(member.fetch(0)) == {0: [(11, 14, 2), (16, 16, 2)]}
    now = scrape(broker)
    assert of(now, "sharecore_share_partition_start_offset", *partition) == 11
    assert of(now, "sharecore_share_partition_lag", *partition) == 8
    assert of(now, "sharecore_share_group_lag", group, topic) == 8
    assert of(now, "sharecore_share_group_in_flight", group, topic) == 9
    assert of(now, "sharecore_share_partition_deliveries_total", *partition, "2") == 5
    assert of(now, "sharecore_share_group_deliveries_total", group, topic, "2") == 5
    by_type = "kafka_server_share_group_metrics_record_acknowledgements_total"
    counts = {kind: of(now, by_type, group, kind) for kind in ("accept", "release", "reject", "renew", "gap")}
    assert counts == {"accept": 11, "release": 5, "reject": 1, "renew": 1, "gap": 0}
    assert of(now, "kafka_server_group_coordinator_metrics_share_group_count", "Stable") >= 1
    assert of(now, "sharecore_group_members", group) == 1
    assert of(now, "kafka_server_share_coordinator_metrics_write_total") > 0


def test_records_that_wait_are_counted_and_a_paused_group_is_shown(
    broker: RunningBroker, member: Member, group: str, topic: str
) -> None:
    produce(broker, topic, 3)
    member.fetch(0)
    for name, value, before in (
        ("share.retry.backoff.ms", "60000", {}),
        ("share.record.lock.keep", "connected", {}),
        ("share.breaker.min.records", "1", {}),
        ("share.breaker.percent", "50", {}),
        ("share.paused", "true", {"sharecore_share_group_paused": 0}),
    ):
        samples = scrape(broker)
        assert {key: of(samples, key, group) for key in before} == before
        setting = {"name": name, "config_operation": 0, "value": value}
        resource = {"resource_type": 32, "resource_name": group, "configs": [setting]}
        broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource])
    assert of(scrape(broker), GROUP_BREAKER.name, group) == 0
    told = member.acknowledge({0: [(0, 1, RELEASE), (2, 2, REJECT)]})
    assert told.acquisition_lock_timeout_ms == 3_600_000, "clients give records up by themselves then"
    samples = scrape(broker)
    assert of(samples, GROUP_WAITING.name, group, topic, "backoff") == 2
    assert of(samples, GROUP_BREAKER.name, group) == 2
    assert of(samples, f"{GROUP_BREAKER_OPENED.name}_total", group) == 1
    assert of(samples, GROUP_KEPT.name, group, topic) == 0
    assert of(samples, GROUP_WINDOW_FULL.name, group, topic) == 0
    assert of(samples, GROUP_UNITS.name, group, topic) == 2
    assert of(samples, "sharecore_share_group_paused", group) == 1


def test_records_that_waited_are_counted_when_they_are_delivered(
    broker: RunningBroker, member: Member, group: str, topic: str
) -> None:
    setting = {"name": "share.retry.backoff.ms", "config_operation": 0, "value": "1"}
    resource = {"resource_type": 32, "resource_name": group, "configs": [setting]}
    broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource])
    produce(broker, topic, 3)
    assert acquired(member.fetch(0)) == {0: [(0, 2, 1)]}
    number = f"{GROUP_LATE.name}_count"
    assert (number, frozenset({group, topic})) not in scrape(broker), "none has waited"
    member.acknowledge({0: [(0, 1, RELEASE), (2, 2, ACCEPT)]})
    assert acquired(member.fetch(0, max_wait_ms=20_000)) == {0: [(0, 1, 2)]}
    before = scrape(broker)
    assert of(before, number, group, topic) == 2
    assert of(before, f"{GROUP_LATE.name}_sum", group, topic) >= 0
    broker.look(lambda running: running.share.state_restarted(SharePartitionKey(group, member.topic_id, 0)))
    assert of(scrape(broker), number, group, topic) == 2, "also without the leader"


def test_totals_stay_when_the_leader_goes(
    broker: RunningBroker, member: Member, group: str, topic: str
) -> None:
    produce(broker, topic, 4)
    member.fetch(0)
    member.acknowledge({0: [(0, 2, ACCEPT)]})
    before = scrape(broker)
    broker.look(lambda running: running.share.state_restarted(SharePartitionKey(group, member.topic_id, 0)))
    assert broker.look(lambda running: running.share.partitions.peek(group, member.topic_id, 0)) is None
    after = scrape(broker)
    for name, labels in (
        ("sharecore_share_group_deliveries_total", (group, topic, "1")),
        ("kafka_server_share_group_metrics_record_acknowledgements_total", (group, "accept")),
    ):
        assert of(after, name, *labels) == of(before, name, *labels) > 0
    # without any user, the lag is still reported
    assert of(after, "sharecore_share_group_lag", group, topic) == 1


@pytest.mark.heavy
def test_a_lock_that_runs_out_is_counted(tmp_path: Path) -> None:
    running = RunningBroker(tmp_path, SETTINGS | {
        "group.share.min.record.lock.duration.ms": "1000", "group.share.record.lock.duration.ms": "1000",
    }).start()  # fmt: skip
    try:
        asked = {"name": "t", "num_partitions": 1, "replication_factor": 1}
        running.ask(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=5000)
        produce(running, "t", 3)
        configs = [{"name": "share.auto.offset.reset", "config_operation": 0, "value": "earliest"}]
        resources = [{"resource_type": 32, "resource_name": "g", "configs": configs}]
        running.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources)
        member = Member(running, "g", "t")
        assert acquired(member.fetch(0)) == {0: [(0, 2, 1)]}
        running.until(
            lambda broker: (leader := broker.share.partitions.peek("g", member.topic_id, 0)) is not None
            and leader.engine is not None
            and leader.engine.observe()[0][5] == 3
        )
        samples = scrape(running)
        name = "kafka_server_share_partition_metrics_acquisition_lock_timeout_total"
        assert of(samples, name, "g", "t", "0") == 3
        assert of(samples, "sharecore_share_group_acquisition_lock_timeouts_total", "g", "t") == 3
    finally:
        running.stop()


def test_what_waits_is_told_right_after_a_restart(tmp_path: Path) -> None:
    """Nobody has requested the share state yet; an idle group is reported all the same."""
    running = RunningBroker(tmp_path, SETTINGS).start()
    asked = {"name": "t", "num_partitions": 1, "replication_factor": 1}
    running.ask(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=5000)
    produce(running, "t", 3)
    Member(running, "new", "t").client.close()
    fresh = scrape(running)
    assert ("sharecore_share_group_lag", frozenset({"new", "t"})) not in fresh, "where it begins is not known"
    member = Member(running, "g", "t")
    member.fetch(0)
    produce(running, "t", 5)
    assert acquired(member.fetch(0)) == {0: [(3, 7, 1)]}
    member.acknowledge({0: [(3, 3, ACCEPT)]})
    running.stop()

    running = RunningBroker(tmp_path, SETTINGS).start()
    running.until(lambda broker: broker.share.coordinator.loads.count == 2)
    samples = scrape(running)
    running.stop()
    assert of(samples, "sharecore_share_group_lag", "g", "t") == 4
    assert of(samples, "sharecore_share_partition_lag", "g", "t", "0") == 4
    assert of(samples, "sharecore_share_partitions") == 2
    assert of(samples, "kafka_server_share_coordinator_metrics_num_partitions", "active") == 2
    assert of(samples, "kafka_server_share_coordinator_metrics_partition_load_time_seconds_sum") > 0
    assert of(samples, "kafka_server_group_coordinator_metrics_partition_load_time_seconds") > 0
    assert len(running.broker.share.partitions) == 0, "and nobody leads anything for that"


def test_records_of_a_group_without_members_say_so_after_a_restart(tmp_path: Path) -> None:
    running = RunningBroker(tmp_path, SETTINGS).start()
    asked = {"name": "t", "num_partitions": 1, "replication_factor": 1}
    running.ask(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=5000)
    settings = {"share.auto.offset.reset": "earliest", "share.retry.backoff.ms": "60000"}
    for group, of_group in (("g", settings), ("plain", {"share.auto.offset.reset": "earliest"})):
        configs = [{"name": name, "config_operation": 0, "value": value} for name, value in of_group.items()]
        resource = {"resource_type": 32, "resource_name": group, "configs": configs}
        running.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource])
    produce(running, "t", 5)
    for group in ("g", "plain"):
        member = Member(running, group, "t")
        assert acquired(member.fetch(0)) == {0: [(0, 4, 1)]}
        member.acknowledge({0: [(0, 1, ACCEPT), (2, 3, RELEASE)]})
    running.stop()

    running = RunningBroker(tmp_path, SETTINGS).start()
    try:
        running.until(lambda broker: broker.share.coordinator.loads.count == 2)
        with BlockingAdmin(bootstrap_servers=f"127.0.0.1:{running.port}") as admin:
            partition = TopicPartition("t", 0)
            waiting, plain = admin.waiting_of("g", [partition]), admin.waiting_of("plain", [partition])
        idle = {"reason": "idle", "records": 3}
        assert plain.partitions == {partition: [idle]}
        assert waiting.partitions == {partition: [idle | {"returned": 3}]}, "a stop returns what members hold"
        assert not waiting.missing
        samples = scrape(running)
        assert of(samples, GROUP_WAITING.name, "g", "t", "idle") == 3
        assert (GROUP_WAITING.name, frozenset({"plain", "t", "idle"})) not in samples, "it has no rules"
        assert len(running.broker.share.partitions) == 0, "and nobody leads anything for that"
    finally:
        running.stop()


def test_acknowledgements_that_ride_on_fetches_are_counted(
    broker: RunningBroker, member: Member, topic: str
) -> None:
    name = "kafka_server_broker_topic_metrics_total_share_acknowledgement_requests_total"
    produce(broker, topic, 4)
    member.fetch(0)
    before = of(scrape(broker), name)
    member.fetch(acks={0: [(0, 0, ACCEPT)]})
    member.acknowledge({0: [(1, 1, ACCEPT)]})
    member.fetch()
    assert of(scrape(broker), name) == before + 2


def test_series_are_bounded_and_those_there_were_stay(tmp_path: Path) -> None:
    name = "sharecore_share_partition_start_offset"
    broker = RunningBroker(tmp_path, SETTINGS | {"sharecore.metrics.series.max": "3"}).start()
    try:
        found: list[set[tuple[str, frozenset[str]]]] = []
        for topic, partitions in (("few", 1), ("many", 10)):
            asked = {"name": topic, "num_partitions": partitions, "replication_factor": 1}
            broker.ask(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=5000)
            Member(broker, f"group-of-{topic}", topic).fetch(*range(partitions))
            samples = scrape(broker)
            found.append({key for key in samples if key[0] == name})
    finally:
        broker.stop()
    few, all_there_are = found
    assert len(few) == 1
    assert few < all_there_are
    assert len(all_there_are) == 3
    assert of(samples, "sharecore_share_partitions") == 11
    assert of(samples, "sharecore_share_partitions_without_series") == 8


def test_every_sample_is_declared_and_every_declared_metric_is_there(
    broker: RunningBroker, member: Member, topic: str
) -> None:
    produce(broker, topic, 2)
    member.fetch(0)
    member.acknowledge({0: [(0, 0, ACCEPT)]})
    status, text = get(broker, "/metrics")
    assert status == 200
    kinds = {family.name: family.type for family in text_string_to_metric_families(text)}
    ours = {name for name in kinds if name.startswith(("kafka_", "sharecore_"))}
    declared = {
        family.sample_name if family.kind is Kind.INFO else family.name: family.kind.value.replace(
            "info", "gauge"
        )
        for family in FAMILIES
    }
    assert {name: declared[name] for name in ours} == {name: kinds[name] for name in ours}
    # a group appears with its first dead letter, a client with its first push; slots belong to a tier, copies
    # in buckets have their own test, and waiting and expired records need group settings
    later = {
        name
        for name in declared
        if "dead_letter" in name
        or name in ("sharecore_client_info", *(family.name for family in QUEUES))
        or name.startswith(("sharecore_tier_", "sharecore_bucket_"))
    }
    assert declared.keys() - ours - later == set()
    assert "process_cpu_seconds" in kinds


def test_requests_are_counted_by_api_and_version(broker: RunningBroker) -> None:
    before = scrape(broker).get(
        ("kafka_network_request_metrics_requests_total", frozenset({"LIST_GROUPS", "5"})), 0
    )
    for _ in range(3):
        broker.ask(ApiKey.LIST_GROUPS, 5, states_filter=[], types_filter=[])
    samples = scrape(broker)
    assert of(samples, "kafka_network_request_metrics_requests_total", "LIST_GROUPS", "5") == before + 3
    assert of(samples, "kafka_network_request_metrics_total_time_seconds_count", "LIST_GROUPS") == before + 3


def test_times_of_requests_are_native_histograms_for_who_takes_them(broker: RunningBroker) -> None:
    """tests/unit/metrics/test_protobuf.py reads such messages."""
    broker.ask(ApiKey.LIST_GROUPS, 5)
    url = f"http://127.0.0.1:{broker.broker.metrics_port}/metrics"
    asked = urllib.request.Request(url, headers={"Accept": f"{protobuf.CONTENT_TYPE};q=0.6,text/plain;q=0.3"})
    with urllib.request.urlopen(asked, timeout=20) as page:
        assert page.headers["Content-Type"] == protobuf.CONTENT_TYPE
        written = page.read()
    for name in {family.sample_name for family in FAMILIES if family.name.startswith("kafka_network")}:
        assert name.encode() in written, name


def test_health(broker: RunningBroker) -> None:
    assert get(broker, "/healthz") == (200, "ok\n")
    status, text = get(broker, "/readyz")
    assert (status, json.loads(text)) == (200, {"ready": True, "reason": None})
    assert get(broker, "/")[0] == 404


def test_a_broker_whose_disk_takes_no_writes_is_not_ready(tmp_path: Path) -> None:
    running = RunningBroker(tmp_path, SETTINGS).start()
    try:
        backend = running.look(lambda broker: broker.backend)
        assert isinstance(backend, StoreBackend)
        running.look(lambda broker: backend.storage.store.plan_fault("write", 28, times=1))
        status, text = get(running, "/readyz")
        assert status == 503
        assert "cannot write to the data directory" in json.loads(text)["reason"]
        assert "No space left" in json.loads(text)["reason"]
        assert get(running, "/healthz")[0] == 200
        assert of(scrape(running), "sharecore_store_commit_failures_total") == 1
    finally:
        running.stop()


@pytest.mark.heavy
def test_files_that_cannot_be_completed_are_logged_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    running = RunningBroker(tmp_path, SETTINGS | {"log.retention.check.interval.ms": "20"}).start()

    def failed() -> float:
        return of(scrape(running), "sharecore_store_maintenance_failures_total")

    try:
        backend = running.look(lambda broker: broker.backend)
        assert isinstance(backend, StoreBackend)
        assert failed() == 0
        in_the_way = tmp_path / "checkpoint.new"
        in_the_way.mkdir()
        running.look(lambda broker: LogCleaner(backend.storage.store).roll())
        until(lambda: "cannot complete or compact files of the journal" in caplog.text)
        until(lambda: failed() > 1)
        assert caplog.text.count("cannot complete or compact") == 1, "it is logged once"
        assert "Is a directory" in caplog.text
        in_the_way.rmdir()
        until(lambda: backend.storage.store.maintenance_error is None)
    finally:
        running.stop()


def test_metrics_that_nobody_asked_for_cost_nothing(tmp_path: Path) -> None:
    running = RunningBroker(tmp_path).start()
    try:
        assert running.broker.metrics is None
        assert running.broker.metrics_port == 0
        called = getattr(running.broker.server.on_frame, "__self__", None)
        assert isinstance(called, Dispatch)
    finally:
        running.stop()


def test_dead_letters_are_counted(broker: RunningBroker, member: Member, group: str, topic: str) -> None:
    settings = {
        "errors.deadletterqueue.topic.name": f"dlq.{topic}",
        "errors.deadletterqueue.copy.record.enable": "true",
    }
    asked = {
        "name": f"dlq.{topic}",
        "num_partitions": 1,
        "replication_factor": 1,
        "configs": [{"name": "errors.deadletterqueue.group.enable", "value": "true"}],
    }
    assert broker.ask(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=5000).topics[0].error_code == 0
    configs = [{"name": name, "config_operation": 0, "value": value} for name, value in settings.items()]
    resources = [{"resource_type": 32, "resource_name": group, "configs": configs}]
    assert not broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources).responses[0].error_code
    produce(broker, topic, 5)
    member.fetch(0)
    member.acknowledge({0: [(0, 2, REJECT), (3, 4, ACCEPT)]})
    broker.until(
        lambda running: (counts := running.share.dead_letters.counts.get(group)) is not None
        and counts.letters == 3
    )
    samples = scrape(broker)
    assert of(samples, "kafka_server_share_group_metrics_dead_letter_queue_record_count_total", group) == 3
    failed = "kafka_server_share_group_metrics_dead_letter_queue_failed_produce_requests_total"
    assert of(samples, failed, group) == 0


def test_the_listener_has_bounds(tmp_path: Path) -> None:
    bounds = {
        "sharecore.metrics.connections.max": "2",
        "sharecore.metrics.request.max.bytes": "1024",
        "sharecore.metrics.request.timeout.ms": "300",
    }
    running = RunningBroker(tmp_path, SETTINGS | bounds).start()
    try:
        address = ("127.0.0.1", running.broker.metrics_port)
        idle = [socket.create_connection(address, timeout=20) for _ in range(20)]
        assert get(running, "/healthz")[0] == 200
        long = socket.create_connection(address, timeout=20)
        long.sendall(b"GET /metrics HTTP/1.1\r\nX: " + b"y" * 2000 + b"\r\n\r\n")
        for each in (*idle, long):
            with suppress(ConnectionError):
                assert each.recv(1) == b""
            each.close()
        assert get(running, "/healthz")[0] == 200
    finally:
        running.stop()
