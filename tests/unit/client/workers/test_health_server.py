"""The server of a worker's health, with hostile clients."""

from __future__ import annotations

import json
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from sharecore.client.workers import health_server
from sharecore.client.workers.health import NOT_RUNNING, Health
from sharecore.client.workers.health_server import HealthServer

PATIENCE = 30.0
READY = Health(True, True, None, 0.0, 0.0, 3, 1, 1, 1)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[HealthServer]:
    monkeypatch.setattr(health_server, "_REQUEST_SECONDS_MAX", 0.5)
    server = HealthServer("", 0, lambda: READY)
    yield server
    server.close()


def url(server: HealthServer, path: str, host: str = "127.0.0.1") -> str:
    return f"http://{host}:{server.address[1]}{path}"


def test_health_is_json_at_both_versions_of_ip(server: HealthServer) -> None:
    hosts = ["127.0.0.1", *(["[::1]"] if socket.has_dualstack_ipv6() else [])]
    for host in hosts:
        for path in ("/livez", "/healthz", "/readyz", "/readyz?verbose"):
            with urllib.request.urlopen(url(server, path, host), timeout=PATIENCE) as answer:
                assert answer.status == 200
                assert json.load(answer)["records_in_hand"] == 3


def test_what_is_not_ready_is_503_and_alive(server: HealthServer) -> None:
    server.health = lambda: NOT_RUNNING
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(url(server, "/readyz"), timeout=PATIENCE)
    assert refused.value.code == 503
    assert json.load(refused.value)["reason"] == "the worker is not running"
    with urllib.request.urlopen(url(server, "/livez"), timeout=PATIENCE) as answer:
        assert answer.status == 200


def test_another_path_names_those_that_there_are(server: HealthServer) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(url(server, "/"), timeout=PATIENCE)
    assert refused.value.code == 404
    assert "/livez /healthz /readyz /metrics" in refused.value.read().decode()


@pytest.mark.heavy
def test_connections_that_ask_nothing_keep_nobody_out(server: HealthServer) -> None:
    idle = [socket.create_connection(("127.0.0.1", server.address[1])) for _ in range(40)]
    for each in idle:
        each.send(b"GET /readyz HTTP/1.1\r\n")
    until = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(url(server, "/readyz"), timeout=PATIENCE) as answer:
                assert answer.status == 200
                break
        except OSError:
            assert time.monotonic() < until
            time.sleep(0.05)
    for each in idle:
        each.close()


def test_a_server_that_is_closed_frees_its_port() -> None:
    server = HealthServer("127.0.0.1", 0, lambda: READY)
    server.close()
    HealthServer("127.0.0.1", server.address[1], lambda: READY).close()
