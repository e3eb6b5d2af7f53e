"""Permissions, through the whole broker; the differential test of access covers every API."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.running import Client, RunningBroker

from sharecore.broker.handlers.access import acls
from sharecore.config.security import STANDARD_AUTHORIZER
from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey
from sharecore.security import acls as acls_module
from sharecore.security.acl import Operation, PatternType, Permission, ResourceType

SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="of-alice";'
    ),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    running = RunningBroker(tmp_path_factory.mktemp("data"), SETTINGS).start()
    topics = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in ("shown", "hidden")]
    running.ask(ApiKey.CREATE_TOPICS, 7, topics=topics, timeout_ms=5000)
    assert create(running, "shown") == 0
    yield running
    running.stop()


@pytest.fixture
def alice(broker: RunningBroker) -> Iterator[Client]:
    client = Client(broker.broker.listeners["SASL_PLAINTEXT"].port)
    client.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    client.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=b"\0alice\0of-alice")
    yield client
    client.close()


CREATION = {
    "resource_type": ResourceType.TOPIC,
    "resource_pattern_type": PatternType.LITERAL,
    "principal": "User:alice",
    "host": "*",
    "operation": Operation.DESCRIBE,
    "permission_type": Permission.ALLOW,
}


def create(broker: RunningBroker, name: str, **changed: object) -> int:
    answer = broker.ask(ApiKey.CREATE_ACLS, 3, creations=[CREATION | {"resource_name": name} | changed])
    return int(answer.results[0].error_code)


def test_what_may_not_be_seen_is_left_out(alice: Client) -> None:
    answer = alice.ask(ApiKey.METADATA, 12, topics=None)
    assert [topic.name for topic in answer.topics] == ["shown"]
    named = alice.ask(ApiKey.METADATA, 12, topics=[{"name": "shown"}, {"name": "hidden"}, {"name": "none"}])
    codes = {topic.name: topic.error_code for topic in named.topics}
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert codes == {"shown": 0, "hidden": refused, "none": refused}


def test_a_new_entry_counts_at_once(broker: RunningBroker, alice: Client) -> None:
    wanted = [{"name": "hidden"}]
    before = alice.ask(ApiKey.METADATA, 12, topics=wanted).topics[0].error_code
    assert create(broker, "hid", resource_pattern_type=PatternType.PREFIXED) == 0
    assert (before, alice.ask(ApiKey.METADATA, 12, topics=wanted).topics[0].error_code) == (29, 0)
    gone = {"resource_type_filter": 2, "resource_name_filter": "hid", "pattern_type_filter": 4}
    every = {"principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1}
    deleted = broker.ask(ApiKey.DELETE_ACLS, 3, filters=[gone | every])
    assert len(deleted.filter_results[0].matching_acls) == 1
    assert alice.ask(ApiKey.METADATA, 12, topics=wanted).topics[0].error_code == 29


def test_who_may_not_alter_rights(alice: Client) -> None:
    every = {"principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1}
    all_of_them = {"resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1}
    refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert alice.ask(ApiKey.DESCRIBE_ACLS, 3, **all_of_them, **every).error_code == refused
    answer = alice.ask(ApiKey.DELETE_ACLS, 3, filters=[all_of_them | every])
    assert [each.error_code for each in answer.filter_results] == [refused]


def test_filters_that_select_too_many_entries_delete_none(
    broker: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acls_module, "SELECTED_MAX", 5)
    for name in ("a", "b"):
        assert create(broker, name, principal="User:many") == 0
    wanted: dict[str, object] = {"resource_type_filter": 1, "resource_name_filter": None}
    wanted |= {
        "pattern_type_filter": 1,
        "principal_filter": "User:many",
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
    refused = broker.ask(ApiKey.DELETE_ACLS, 3, filters=[wanted] * 3)
    assert [each.error_code for each in refused.filter_results] == [ErrorCode.POLICY_VIOLATION] * 3
    deleted = broker.ask(ApiKey.DELETE_ACLS, 3, filters=[wanted] * 2)
    assert [len(each.matching_acls) for each in deleted.filter_results] == [2, 2]


def test_a_request_that_creates_too_many_entries_creates_none(
    broker: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Apache Kafka, whose limit is 10,000."""
    assert acls.CREATED_MAX == 10_000
    monkeypatch.setattr(acls, "CREATED_MAX", 700)
    many = [CREATION | {"resource_name": f"many-{number}"} for number in range(701)]
    senseless = CREATION | {"resource_name": ""}

    def codes(*creations: dict[str, object]) -> list[int]:
        answer = broker.ask(ApiKey.CREATE_ACLS, 3, creations=creations)
        return [each.error_code for each in answer.results]

    assert codes(*many, senseless) == [ErrorCode.POLICY_VIOLATION] * 701 + [ErrorCode.INVALID_REQUEST]
    assert broker.look(lambda each: len(each.acls)) < 700
    assert codes(*many[:700], senseless) == [ErrorCode.NONE] * 700 + [ErrorCode.INVALID_REQUEST]
    assert broker.look(lambda each: len(each.acls)) > 700


@pytest.mark.parametrize(
    "changed",
    [
        {"resource_name": ""},
        {"resource_type": ResourceType.CLUSTER},
        {"resource_type": ResourceType.ANY},
        {"resource_type": 99},
        {"resource_pattern_type": PatternType.MATCH},
        {"operation": Operation.ANY},
        {"permission_type": 0},
        {"principal": "alice"},
    ],
)
def test_entries_that_make_no_sense(broker: RunningBroker, changed: dict[str, object]) -> None:
    assert create(broker, "t", **changed) == ErrorCode.INVALID_REQUEST


def test_what_is_denied_is_in_the_audit(alice: Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "sharecore.audit"):
        alice.ask(ApiKey.METADATA, 12, topics=[{"name": "hidden"}])
        alice.ask(ApiKey.METADATA, 12, topics=None)
        alice.ask(ApiKey.METADATA, 12, topics=[{"name": "shown"}])
    assert [record.getMessage() for record in caplog.records if record.name == "sharecore.audit"] == [
        "principal=User:alice host=127.0.0.1 operation=DESCRIBE resource=TOPIC:hidden decision=denied"
    ]


def test_decisions_are_lines_of_json_in_a_file_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    settings = {
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "sharecore.audit.log": str(file),
        "sharecore.audit.allowed": "true",
    }
    log = logging.getLogger("sharecore.audit")
    before = log.handlers[:], log.propagate, log.level
    running = RunningBroker(tmp_path / "data", settings).start()
    try:
        odd = 'a"name\nprincipal=User:root'
        running.ask(ApiKey.METADATA, 12, topics=[{"name": odd}])
        log.handlers[0].flush()
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        assert [line["decision"] for line in lines] == ["denied"]
        assert (
            lines[0].items()
            >= {
                "principal": "User:ANONYMOUS",
                "host": "127.0.0.1",
                "operation": "DESCRIBE",
                "resource": f"TOPIC:{odd}",
            }.items()
        )
    finally:
        running.stop()
        for handler in log.handlers:
            handler.close()
        log.handlers[:], log.propagate = before[:2]
        log.setLevel(before[2])


def test_a_name_cannot_forge_a_line_of_the_audit(alice: Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "sharecore.audit"):
        alice.ask(ApiKey.METADATA, 12, topics=[{"name": "x decision=allowed\nprincipal=User:root"}])
    line = caplog.records[-1].getMessage()
    assert "\n" not in line
    assert line.endswith('resource="TOPIC:x decision=allowed\\nprincipal=User:root" decision=denied')


def test_super_users_without_an_authorizer_are_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    running = RunningBroker(tmp_path, {"super.users": "User:root"}).start()
    running.stop()
    assert [record.getMessage() for record in caplog.records if "super.users" in record.getMessage()] == [
        "super.users has no effect: without authorizer.class.name every client has all permissions"
    ]


def test_without_an_authorizer_there_are_no_entries(tmp_path: Path) -> None:
    running = RunningBroker(tmp_path).start()
    assert create(running, "t") == ErrorCode.SECURITY_DISABLED
    running.stop()
