"""A node in front of Apache Kafka 3.9.1, which has no share groups: what was answered outlives the node."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from confluent_kafka import KafkaError, Producer
from prometheus_client.parser import text_string_to_metric_families
from tests.harness.broker import Broker, free_port
from tests.harness.clients import (
    QUIET,
    configure_group,
    create_topic,
)
from tests.harness.running import Client
from tests.harness.telemetry import Watched, subscribe_all, telemetry_settings
from tests.harness.tier import LIBS, SMALL, TIER, Nodes, wait_until
from tests.harness.tier_ledger import Ledger
from typer.testing import CliRunner

from sharecore.admin import BlockingAdmin
from sharecore.cli.app import app
from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey

_numbers = itertools.count()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker = Broker(tmp_path_factory.mktemp("cluster"), "apache", SMALL, libs=LIBS)
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture
def nodes(tmp_path: Path, cluster: Broker) -> Iterator[Nodes]:
    made = Nodes(tmp_path, cluster.bootstrap)
    yield made
    made.kill()


def begin(cluster: Broker, node: Broker) -> tuple[str, str]:
    """Return a topic of four partitions, and a group that reads all of it."""
    topic, group = f"records-{next(_numbers)}", f"group-{next(_numbers)}"
    create_topic(cluster.bootstrap, topic, 4)
    node.start()
    # locks do not expire: a redelivered record was taken away from a member
    configure_group(
        node.bootstrap, group, share_auto_offset_reset="earliest", share_record_lock_duration_ms=60_000
    )
    return topic, group


def slots_of(page: str) -> dict[tuple[str, str], float]:
    """Return the metrics of the tier that a node shows, by their names and labels."""
    with urlopen(f"http://{page}/metrics") as answer:
        families = text_string_to_metric_families(answer.read().decode())
        return {
            (each.name, "".join(each.labels.values())): each.value
            for family in families
            for each in family.samples
            if each.name.startswith("sharecore_tier_") and not each.name.endswith("_bucket")
        }


def test_slots_are_shared_and_what_was_answered_outlives_a_node(cluster: Broker, nodes: Nodes) -> None:
    """A second node joins, the first is killed and started again, the second ends: nothing is lost, nothing
    comes again that was settled, and who comes or leaves in good order has nothing redelivered.
    """
    page = f"127.0.0.1:{free_port()}"
    first, second = nodes.add(**{"sharecore.metrics.listener": page}), nodes.add()
    topic, group = begin(cluster, first)
    bootstrap = f"{first.bootstrap},{second.bootstrap}"
    ledger = Ledger(bootstrap, topic, group, records=cluster.bootstrap, partitions=4, consumers=2)

    def settled() -> dict[int, int]:
        with BlockingAdmin({"bootstrap.servers": bootstrap}) as admin:
            return {each.partition.partition: each.start_offset or 0 for each in admin.offsets(group)}

    ledger.start()
    try:
        ledger.wait_for(10)
        second.start()
        assert "this one has" in second.read_log(), "clients are let in that are told that nobody leads"
        wait_until(second, "has 2 of 4 slots")
        ledger.wait_for(10)
        ledger.wait_until_settled(settled)
        assert ledger.redelivered == 0, "joining took records away from members"
        first.kill()
        first.start()
        ledger.wait_for(10)
        ledger.wait_until_settled(settled)
        before = ledger.redelivered
        assert second.terminate() == 0
        ledger.wait_for(10)
        ledger.wait_until_settled(settled)
        assert ledger.redelivered == before, "leaving took records away from members"
        ledger.settle(30)
    finally:
        ledger.stop()
    assert ledger.broken == []
    figures = slots_of(page)
    assert figures["sharecore_tier_slots", "owned"] == 4
    assert figures["sharecore_tier_claim_seconds_count", ""] == 4
    assert 5 <= figures["sharecore_tier_lease_seconds", ""] <= 7
    assert figures["sharecore_tier_fetched_bytes_total", ""] > 0
    assert "has 4 of 4 slots" in first.read_log()
    assert "gives up 2" in first.read_log()
    assert "gives up 2" in second.read_log()


def test_an_operator_gets_status_and_a_whole_state_topic_as_scripts_read_them(
    cluster: Broker, nodes: Nodes
) -> None:
    node = nodes.add()
    node.start()
    wait_until(node, "has 4 of 4 slots")
    given = [
        f"sharecore.tier.state.topic={nodes.topic}",
        *(f"{name}={value}" for name, value in TIER.items()),
    ]
    options = [
        "-b",
        cluster.bootstrap,
        "--timeout",
        "60",
        *(word for each in given for word in ("--set", each)),
    ]
    # a claim is visible a moment after its node has it
    end = time.monotonic() + 30
    while True:
        shown = CliRunner().invoke(app, ["tier", "status", "--output", "json", *options])
        assert shown.exit_code == 0, shown.output
        status = json.loads(shown.stdout)
        if all(each["end"] for each in status["slots"]):
            break
        assert time.monotonic() < end, shown.output
    assert (status["topic"], status["brokers"], status["wrong"]) == (nodes.topic, 1, [])
    (found,) = status["nodes"]
    assert (found["node"], found["slots"], found["leaving"]) == (1, 4, False)
    assert found["endpoints"]["PLAINTEXT"][1] == node.port
    assert [(each["slot"], each["owner"], each["in_sync"]) for each in status["slots"]] == [
        (slot, 1, [1, 1]) for slot in range(4)
    ]
    assert CliRunner().invoke(app, ["tier", "status", "--json", *options]).stdout == shown.stdout
    repaired = CliRunner().invoke(app, ["tier", "repair", *options])
    assert (repaired.exit_code, "is intact: 4 slots" in repaired.stdout) == (0, True), repaired.output


def test_who_produces_to_a_node_that_passes_nothing_through_is_told_at_once(
    cluster: Broker, nodes: Nodes
) -> None:
    node = nodes.add(**{"sharecore.tier.pass.through": "false"})
    topic = f"records-{next(_numbers)}"
    create_topic(cluster.bootstrap, topic)
    node.start()
    refused: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": node.bootstrap, **QUIET})
    producer.produce(topic, b"misdirected", on_delivery=lambda error, _: refused.append(error))
    assert producer.flush(10) == 0
    assert [error and error.name() for error in refused] == ["INVALID_REQUEST"]
    client = Client(node.port)
    asked = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
    answer = client.ask(ApiKey.FETCH, 12, max_wait_ms=100, topics=[{"topic": topic, "partitions": [asked]}])
    client.close()
    assert answer.responses[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST


def test_state_is_not_changed_for_a_node_that_another_one_has_followed(cluster: Broker, nodes: Nodes) -> None:
    node = nodes.add()
    begin(cluster, node)
    client = Client(node.port)
    topic_id = client.ask(ApiKey.METADATA, 12, topics=None).topics[0].topic_id

    def refusal(key: ApiKey, epoch: int, **more: int) -> int:
        topics = [{"topic_id": topic_id, "partitions": [{"partition": 0} | more]}]
        # a node that has just started may still be claiming the group's slot
        deadline = time.monotonic() + 20
        while True:
            answer = client.ask(key, 0, group_id="g", coordinator_epoch=epoch, topics=topics)
            code: int = answer.results[0].partitions[0].error_code
            if code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS or time.monotonic() > deadline:
                return code
            time.sleep(0.05)

    def refusals(epoch: int) -> list[int]:
        made = refusal(ApiKey.INITIALIZE_SHARE_GROUP_STATE, epoch, state_epoch=1, start_offset=0)
        return [made, refusal(ApiKey.DELETE_SHARE_GROUP_STATE, epoch)]

    assert refusals(-1) == [0, 0], "who does not say is believed, as with Kafka"
    assert refusals(9) == [0, 0]
    assert refusals(8) == [ErrorCode.NOT_COORDINATOR] * 2
    client.close()


def test_clients_of_all_nodes_are_asked_for_their_metrics(cluster: Broker, nodes: Nodes) -> None:
    """A subscription is set through one node and kept upstream; clients push to any of them."""
    watched = []
    for _ in range(2):
        port, settings = telemetry_settings()
        watched.append(Watched(nodes.add(**settings), port))
        watched[-1].broker.start()
    topic = f"records-{next(_numbers)}"
    create_topic(cluster.bootstrap, topic)
    subscribe_all(watched[0].broker.port)
    for each in watched:
        each.until_asking()
        name = f"through-{each.broker.port}"
        producer = Producer({"bootstrap.servers": each.bootstrap, "client.id": name, **QUIET})
        producer.produce(topic, b"passed through")
        assert producer.flush(30) == 0
        # a client picks any known broker for its pushes, and stays with it
        heard = time.monotonic() + 20
        while not any(name in node.pushed() for node in watched):
            assert time.monotonic() < heard, [sorted(node.pushed()) for node in watched]
            time.sleep(0.1)


def test_a_node_comes_back_once_a_second_process_with_its_id_has_gone(cluster: Broker, nodes: Nodes) -> None:
    page = f"127.0.0.1:{free_port()}"
    node, double = nodes.add(**{"sharecore.metrics.listener": page}), nodes.add(**{"node.id": "1"})

    def readiness() -> tuple[int, str]:
        try:
            with urlopen(f"http://{page}/readyz") as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode()

    def until(status: int) -> str:
        deadline = time.monotonic() + 60
        while (found := readiness())[0] != status:
            assert time.monotonic() < deadline, found
            time.sleep(0.1)
        return found[1]

    node.start()
    until(200)
    double.start()
    assert "another process has joined with the same node id" in until(503)
    assert double.terminate() == 0
    until(200)
    said = [line for line in node.read_log().splitlines() if "ERROR" in line]
    assert len(said) == 1, "a cause is logged once"
    create_topic(cluster.bootstrap, topic := f"records-{next(_numbers)}")
    group = f"group-{next(_numbers)}"
    configure_group(node.bootstrap, group, share_auto_offset_reset="earliest")
    ledger = Ledger(node.bootstrap, topic, group, records=cluster.bootstrap, partitions=1, consumers=1)
    ledger.start()
    try:
        ledger.wait_for(10)
    finally:
        ledger.stop()
