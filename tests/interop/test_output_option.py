"""`--output json` and `--timeout`, which every command that shows or asks something has."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import Result
from tests.harness.broker import Broker
from tests.harness.clients import configure_group, create_topic, produce
from typer.testing import CliRunner

from sharecore.cli.app import app
from sharecore.client.blocking import ShareConsumer

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Provide a broker with a topic, a group that has read it, a user, an ACL, and a dead letter."""
    broker = Broker(tmp_path_factory.mktemp("output"), "sharecore", SETTINGS)
    broker.start()
    create_topic(broker.bootstrap, "jobs")
    produce(broker.bootstrap, "jobs", [b"one", b"two"])
    configure_group(broker.bootstrap, "workers", share_auto_offset_reset="earliest")
    for command in (
        "groups dead-letters workers --topic dlq.jobs --create",
        "acls add --principal User:alice --operation read --topic jobs",
        "users add alice --mechanism SCRAM-SHA-256",
    ):
        assert run(broker.bootstrap, command, stdin="secret\n").exit_code == 0
    with ShareConsumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "workers",
            "share.acknowledgement.mode": "explicit",
            "share.acquire.mode": "record_limit",
        }
    ) as consumer:
        consumer.subscribe(["jobs"])
        (record,) = consumer.poll(1, timeout=30)
        consumer.reject(record)
        assert set(consumer.commit_sync(30).values()) == {None}
    yield broker
    assert broker.terminate() == 0


def run(bootstrap: str, command: str, *more: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, [*command.split(), *more, "-b", bootstrap], input=stdin)


LISTS = {
    "topics list": {"topic": "dlq.jobs", "partitions": 1, "replicationFactor": 1},
    "groups list": {"group": "workers", "type": "share"},
    "groups describe workers": {"group": "workers", "members": []},
    "groups describe --all-groups": {"group": "workers"},
    "groups peek workers jobs": {"topic": "jobs", "offset": 1, "value": "two", "key": None},
    "groups config workers": {"key", "value", "from"},
    "groups reset workers --to-earliest": {"topic": "jobs", "partition": 0, "newOffset": 0},
    "groups delete nobody": {"group": "nobody"},
    "acls list": {"resource": "topic", "name": "jobs", "principal": "User:alice", "operation": "read"},
    "users list": {"user": "alice", "mechanism": "SCRAM-SHA-256", "iterations": 4096},
    "dlq list": {"topic": "dlq.jobs", "group": "workers", "cause": "rejected", "letters": 1},
    "dlq show dlq.jobs": {"group": "workers", "source": {"topic": "jobs", "partition": 0, "offset": 0}},
    "state dump": {"groupId": "workers", "topic": "jobs", "partition": 0},
    "doctor": {"about", "level", "what", "advice"},
}
"""What the first object of each list has: some of its fields, or their names."""


@pytest.mark.parametrize("command", LISTS)
def test_lists_are_one_array_of_json(cluster: Broker, command: str) -> None:
    shown = run(cluster.bootstrap, command, "--output", "json", "--timeout", "30")
    document = json.loads(shown.stdout)
    assert isinstance(document, list)
    expected = LISTS[command]
    first: dict[str, Any] = document[0]
    if isinstance(expected, dict):
        assert first.items() >= expected.items()
    else:
        assert first.keys() == expected
    assert all(each.keys() == first.keys() for each in document)


def test_a_list_with_nothing_in_it_is_an_empty_array(cluster: Broker) -> None:
    for command in ("acls list --topic other", "dlq list --source other", "groups list --state Dead"):
        shown = run(cluster.bootstrap, command, "-o", "json")
        assert (shown.exit_code, json.loads(shown.stdout)) == (0, []), command


def test_one_thing_is_one_object_of_json(cluster: Broker) -> None:
    shown = run(cluster.bootstrap, "topics describe jobs", "-o", "json")
    document = json.loads(shown.stdout)
    assert document["topic"] == "jobs"
    assert [group["group"] for group in document["shareGroups"]] == ["workers"]


@pytest.mark.parametrize("command", [*LISTS, "topics describe jobs", "store check nowhere"])
def test_another_format_is_refused(cluster: Broker, command: str) -> None:
    address = [] if command.startswith("store") else ["-b", cluster.bootstrap]
    shown = CliRunner().invoke(app, [*command.split(), "--output", "xml", *address])
    assert shown.exit_code == 2
    assert "xml: must be one of table, json" in shown.output


WAITING = [
    *LISTS,
    "topics describe jobs",
    "topics create jobs",
    "topics alter jobs --partitions 2",
    "topics delete jobs",
    "groups delete-offsets workers --topic jobs",
    "groups dead-letters workers --topic dlq.jobs",
    "acls add --principal User:alice --operation read --topic jobs",
    "acls delete --topic jobs",
    "users add alice",
    "users delete alice",
    "dlq redrive dlq.jobs",
    "produce jobs one",
    "export-metrics --once",
    "tier status",
    "tier repair",
]


@pytest.mark.parametrize("command", WAITING)
def test_a_broker_that_is_silent_is_waited_for_as_long_as_is_said(command: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        shown = run(address, command, "--timeout", "0.1", stdin="secret\n")
    assert shown.exit_code == 1, shown.output
    expected = "Message timed out" if command.startswith("produce") else "did not respond within 100 ms"
    assert expected in shown.output
