"""A broker with TLS listeners and a plaintext one."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.running import RunningBroker

from sharecore.broker.broker import Broker
from sharecore.config import BrokerConfig
from sharecore.errors import ConfigError
from sharecore.protocol import ApiKey, codec
from sharecore.security.certificates import Authority

HOST = "127.0.0.1"


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    path = tmp_path / "certificates"
    authority = Authority(path, days=1)
    authority.issue("localhost", file="broker", hosts=["localhost", HOST])
    authority.issue("Alice", file="alice")
    return path


@pytest.fixture
def broker(tmp_path: Path, certificates: Path) -> Iterator[RunningBroker]:
    settings = {
        "listeners": f"PLAINTEXT://{HOST}:0,OPEN://{HOST}:0,MUTUAL://{HOST}:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OPEN:SSL,MUTUAL:SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates / "broker.pem"),
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.mutual.ssl.truststore.type": "PEM",
        "listener.name.mutual.ssl.truststore.location": str(certificates / "ca.pem"),
        "listener.name.mutual.ssl.principal.mapping.rules": "RULE:^CN=(A.*)$/$1/L",
        "sharecore.ssl.reload.interval.ms": "50",
    }
    running = RunningBroker(tmp_path / "data", settings).start()
    yield running
    running.stop()


def port_of(broker: RunningBroker, listener: str) -> int:
    return broker.broker.listeners[listener].port


def connect(port: int, certificates: Path, client: str = "") -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=str(certificates / "ca.pem"))
    if client:
        context.load_cert_chain(certificates / f"{client}.pem")
    return context.wrap_socket(socket.create_connection((HOST, port), timeout=10), server_hostname=HOST)


def cluster_id(peer: socket.socket) -> str | None:
    peer.sendall(codec(ApiKey.METADATA, 12).write_request(1, "tester", {"topics": []}))
    with peer.makefile("rb") as stream:
        frame = stream.read(int.from_bytes(stream.read(4), "big"))
    return str(codec(ApiKey.METADATA, 12).read_response(frame)[1].cluster_id) if frame else None


def test_each_listener_tells_its_own_address(broker: RunningBroker, certificates: Path) -> None:
    with connect(port_of(broker, "OPEN"), certificates) as peer:
        assert cluster_id(peer) == broker.broker.identity.cluster_id
    assert len({port_of(broker, name) for name in ("PLAINTEXT", "OPEN", "MUTUAL")}) == 3


def test_a_certificate_names_the_principal(broker: RunningBroker, certificates: Path) -> None:
    with connect(port_of(broker, "MUTUAL"), certificates, "alice") as peer:
        assert cluster_id(peer)
        served = list(broker.broker.server.connections.values())
        assert {str(each.principal) for each in served if each.listener == "MUTUAL"} == {"User:alice"}


def test_who_shows_no_certificate_or_a_name_without_a_rule_is_not_let_in(
    broker: RunningBroker, certificates: Path
) -> None:
    Authority(certificates, days=1).issue("bob", file="bob")
    for client in ("", "bob"):
        assert not _let_in(port_of(broker, "MUTUAL"), certificates, client)


def _let_in(port: int, certificates: Path, client: str) -> bool:
    try:
        with connect(port, certificates, client) as peer:
            return bool(cluster_id(peer))
    except OSError:
        return False


def test_new_certificates_count_and_connections_stay(broker: RunningBroker, certificates: Path) -> None:
    def number(peer: ssl.SSLSocket) -> object:
        certificate = peer.getpeercert()
        assert certificate is not None
        return certificate["serialNumber"]

    with connect(port_of(broker, "OPEN"), certificates) as standing:
        before = number(standing)
        Authority(certificates, days=1).issue("localhost", file="broker", hosts=[HOST])
        until = time.monotonic() + 10
        after = before
        while after == before and time.monotonic() < until:
            with connect(port_of(broker, "OPEN"), certificates) as peer:
                after = number(peer)
        assert after != before
        assert cluster_id(standing)


def alter(broker: RunningBroker, name: str, value: str) -> int:
    change = {"name": name, "config_operation": 0, "value": value}
    resource = {"resource_type": 4, "resource_name": "1", "configs": [change]}
    answer = broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource], validate_only=False)
    return int(answer.responses[0].error_code)


def test_a_listeners_keystore_is_altered_while_it_runs(broker: RunningBroker, certificates: Path) -> None:
    other = certificates.parent / "other"
    store = Authority(other, days=1).issue("localhost", file="broker", hosts=[HOST])
    name = "listener.name.open.ssl.keystore.location"
    assert alter(broker, name, "/nowhere.pem") != 0
    assert alter(broker, "listener.name.open.ssl.client.auth", "required") != 0
    assert alter(broker, name, str(store)) == 0
    with connect(port_of(broker, "OPEN"), other) as peer:
        assert cluster_id(peer)
    assert alter(broker, "listener.name.open.ssl.keystore.password", "planted-secret") == 0
    resource = {"resource_type": 4, "resource_name": "1", "configuration_keys": None}
    described = broker.ask(
        ApiKey.DESCRIBE_CONFIGS, 4, resources=[resource], include_synonyms=True, include_documentation=True
    )
    configs = {each.name: each for each in described.results[0].configs}
    assert configs[name].value == str(store)
    secret = configs["listener.name.open.ssl.keystore.password"]
    assert (secret.value, secret.is_sensitive) == (None, True)
    assert "planted-secret" not in repr(described)
    assert "planted-secret" not in repr(broker.broker.config)


def test_a_broker_without_keys_says_so(tmp_path: Path) -> None:
    settings = {"listeners": "SSL://localhost:0", "log.dirs": str(tmp_path)}
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.location"):
        Broker(BrokerConfig.from_properties(settings))
