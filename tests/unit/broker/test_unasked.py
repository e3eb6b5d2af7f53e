"""Only the request is read before permissions are checked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.harness.running import Client, RunningBroker

from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey

_JAAS = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required user_admin="a" user_alice="b" '
    'user_root="c";'
)
_DENIED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
_BROKER = 4


@pytest.fixture(scope="module")
def broker(home: Path) -> Iterator[RunningBroker]:
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0,SSL://localhost:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": _JAAS,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:root",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(home / "broker.pem"),
    }
    running = RunningBroker(home / "data", settings).start()
    yield running
    running.stop()


def log_in(broker: RunningBroker, user: str, password: str) -> Client:
    client = broker.connect()
    client.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    answer = client.ask(ApiKey.SASL_AUTHENTICATE, 1, auth_bytes=f"\0{user}\0{password}".encode())
    assert answer.error_code == 0
    return client


def keystore(location: Path | str) -> dict[str, str]:
    prefix = "listener.name.ssl.ssl.keystore."
    return {f"{prefix}location": str(location), f"{prefix}type": "PEM"}


def alter(client: Client, settings: dict[str, str], *, validate_only: bool = True) -> Any:
    configs = [{"name": name, "config_operation": 0, "value": value} for name, value in settings.items()]
    resource = {"resource_type": _BROKER, "resource_name": "", "configs": configs}
    return client.ask(
        ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource], validate_only=validate_only
    ).responses[0]


@pytest.mark.parametrize("location", ["pipe", "broker.pem", "nothing", "/dev/zero", "/etc/hostname", "."])
def test_no_key_store_is_opened_for_who_may_not_name_one(
    broker: RunningBroker, home: Path, location: str
) -> None:
    alice = log_in(broker, "alice", "b")
    answers = [alter(alice, keystore(home / location)), alter(alice, {"log.retention.ms": "1000"})]
    assert [each.error_code for each in answers] == [_DENIED, _DENIED]
    assert answers[0].error_message == answers[1].error_message


@pytest.mark.parametrize("location", ["pipe", "/dev/zero", "."])
def test_what_is_no_regular_file_is_no_key_store(broker: RunningBroker, home: Path, location: str) -> None:
    root = log_in(broker, "root", "c")
    for validate_only in (True, False):
        answer = alter(root, keystore(home / location), validate_only=validate_only)
        assert answer.error_code == ErrorCode.INVALID_REQUEST
        assert "not a regular file" in answer.error_message
    assert alter(root, keystore(home / "broker.pem"), validate_only=False).error_code == 0
