"""A standby that takes over: what its clients and its probes notice."""

from __future__ import annotations

import asyncio
import hashlib
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest
from scramp import ScramClient
from tests.harness.running import Client, RunningBroker
from tests.harness.until import until
from tests.unit.broker.test_bucket import TIMEOUT_S, backend, create
from tests.unit.broker.test_home import bucket, home
from tests.unit.broker.test_lobby import RunningLobby, leader, status_of
from tests.unit.broker.test_sasl import authenticate

from sharecore.broker.store.backend import StoreBackend
from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey

if TYPE_CHECKING:
    from sharecore.broker.backend import Host
    from sharecore.broker.broker import Broker

__all__ = ["bucket", "leader"]


class SlowBackend(StoreBackend):
    """Asks how the standby is while its storage is opened."""

    def __init__(self, lobby: RunningLobby) -> None:
        super().__init__(former=lobby.lobby.former)
        self._lobby = lobby

    async def open(self, broker: Host) -> None:
        self.answers = [await asyncio.to_thread(self._ask, path) for path in ("healthz", "readyz")]
        await super().open(broker)

    def _ask(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self._lobby.lobby.metrics_port}/{path}", timeout=10
            ) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()


SASL = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    "connections.max.reauth.ms": "3600000",
}


def _backend(lobby: RunningLobby) -> StoreBackend:
    return StoreBackend(former=lobby.lobby.former)


def _log_in(client: Client) -> int:
    peer = ScramClient(["SCRAM-SHA-256"], "carol", "secret-of-carol")
    challenge = authenticate(client, "SCRAM-SHA-256", peer.get_client_first().encode())
    if challenge.error_code:
        return int(challenge.error_code)
    peer.set_server_first(challenge.auth_bytes.decode())
    answer = client.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=peer.get_client_final().encode())
    return int(answer.error_code)


@pytest.mark.heavy
def test_a_kept_connection_reaches_the_new_leader_alone(
    tmp_path: Path, bucket: Path, leader: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sharecore.broker.connections.authentication._AGAIN_AFTER_MS", 0)
    digest = hashlib.pbkdf2_hmac("sha256", b"secret-of-carol", b"a salt of bytes", 4096)
    carol = {"name": "carol", "mechanism": 1, "iterations": 4096, "salt": b"a salt of bytes"}
    added = [carol | {"salted_password": digest}]
    leader.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, deletions=[], upsertions=added)
    lobby = RunningLobby(tmp_path / "two", bucket, leads=_backend, **SASL)
    try:
        listeners = lobby.lobby._broker.listeners
        until(lambda: lobby.lobby._standing.catalog.get(b"scram/SCRAM-SHA-256/carol") is not None)
        plain, secret = Client(lobby.port), Client(listeners["SASL_PLAINTEXT"].port)
        assert _log_in(secret) == 0
        plain.ask(ApiKey.METADATA, 12, topics=[])
        leader.stop()
        broker = lobby.until_leading()
        kept = [each.on_frame for each in broker.server.connections.values() if each.listener == "PLAINTEXT"]
        assert kept == [broker._dispatch]
        gone = [{"name": "carol", "mechanism": 1}]
        answer = plain.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, deletions=gone, upsertions=[])
        assert [each.error_code for each in answer.results] == [0]
        assert _log_in(secret) == ErrorCode.SASL_AUTHENTICATION_FAILED
        plain.close()
        secret.close()
    finally:
        lobby.stop()


@pytest.mark.heavy
def test_clients_of_a_leader_that_stops_are_let_go_once_the_standby_leads(
    tmp_path: Path, bucket: Path, leader: RunningBroker
) -> None:
    lobby = RunningLobby(tmp_path / "two", bucket, leads=_backend)
    kept = Client(leader.port)
    try:
        kept.ask(ApiKey.METADATA, 12, topics=[])
        with ThreadPoolExecutor() as threads:
            stopping = threads.submit(leader.stop)
            with pytest.raises(EOFError):
                kept.receive_frame()
            assert lobby.ask(ApiKey.METADATA, 12, topics=[]).controller_id == 2
            stopping.result()
    finally:
        kept.close()
        lobby.stop()


@pytest.mark.heavy
def test_a_new_leader_looks_often_until_its_predecessor_is_back(
    tmp_path: Path, bucket: Path, leader: RunningBroker
) -> None:
    lobby = RunningLobby(tmp_path / "two", bucket, leads=_backend)
    try:
        leader.stop()
        storage = lobby.until_leading().backend
        assert isinstance(storage, StoreBackend)
        nodes = storage._nodes
        assert nodes is not None
        until(lambda: nodes._looked.is_set() and nodes._former is None)
        assert nodes._pause_ms() == 1000
        back = RunningLobby(tmp_path / "one", bucket, leads=None, **{"node.id": "1"})
        until(lambda: nodes._current())
        assert nodes._pause_ms() == 30_000
        back.stop()
    finally:
        lobby.stop()


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("step", ["drain", "finish", "stop"])
def test_a_home_is_released_although_something_failed_before(
    leader: RunningBroker, bucket: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> NoReturn:
        raise RuntimeError("a fault of the broker")

    def spoil(broker: Broker) -> None:
        if step == "drain":
            monkeypatch.setattr(broker.backend, "drain", fail)
        elif step == "finish":
            monkeypatch.setattr(broker.share, "finish", fail)
        else:
            broker.groups.stop()
            monkeypatch.setattr(broker.groups, "stop", fail)

    client = leader.connect()
    client.ask(ApiKey.API_VERSIONS, 0)
    leader.look(spoil)
    leader.loop.call_soon_threadsafe(leader._stopping.set)
    with pytest.raises(EOFError):
        client.receive_frame()
    with pytest.raises(ConnectionRefusedError):
        Client(leader.port)
    leader._thread.join(TIMEOUT_S)
    assert status_of(bucket)["has_ended"]


def adopted(broker: RunningBroker) -> Client:
    """Return a client that is part of the broker's process, as the page is."""
    joining = broker.broker.server.adopt("PLAINTEXT", "127.0.0.1")
    peer = asyncio.run_coroutine_threadsafe(joining, broker.loop).result(TIMEOUT_S)
    peer.settimeout(TIMEOUT_S)
    return Client(peer)


@pytest.mark.heavy
def test_a_leader_that_does_not_hear_the_bucket_serves_only_its_page(
    tmp_path: Path, bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = [True]
    monkeypatch.setattr("sharecore.broker.store.backend.is_proven", lambda store, ms: heard[0])
    running = home(tmp_path / "one", bucket)
    lobby = RunningLobby(tmp_path / "two", bucket)
    try:
        create(running, "jobs")
        storage = backend(running)
        until(lambda: storage._isolation is not None and storage._isolation._had_answered)
        assert storage._nodes is not None
        asyncio.run_coroutine_threadsafe(storage._nodes.look(), running.loop).result()
        kept, page = running.connect(), adopted(running)
        asked = {"topics": [{"name": "jobs", "topic_id": None}]}
        for client in (kept, page):
            assert client.ask(ApiKey.METADATA, 12, **asked).controller_id == 1
        heard[0] = False
        with pytest.raises(EOFError):
            kept.receive_frame()
        with pytest.raises(EOFError):
            running.ask(ApiKey.METADATA, 12, **asked)
        later = adopted(running)
        for client in (page, later):
            assert client.ask(ApiKey.METADATA, 12, **asked).controller_id == 1
            client.close()
        heard[0] = True
        running.until(lambda broker: not broker._sends_away)
        assert running.ask(ApiKey.METADATA, 12, **asked).controller_id == 1
    finally:
        lobby.stop()
        running.stop()


class SilentNodes:
    """The descriptions in a bucket that does not respond."""

    def __init__(self) -> None:
        self.responds = threading.Event()

    def announce(self, node_id: int, body: bytes) -> None:
        assert self.responds.wait(TIMEOUT_S)

    def withdraw(self, node_id: int) -> None:
        assert self.responds.wait(TIMEOUT_S)

    def read(self) -> list[tuple[int, bytes]]:
        assert self.responds.wait(TIMEOUT_S)
        return []


def test_a_leader_serves_before_it_is_described(
    tmp_path: Path, bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = SilentNodes()
    monkeypatch.setattr("sharecore.broker.store.home_nodes.home_nodes", lambda bucket: silent)
    running = home(tmp_path / "one", bucket)
    try:
        create(running, "jobs")
    finally:
        silent.responds.set()
        running.stop()


def test_a_broker_that_stops_at_once_leaves_no_description(tmp_path: Path, bucket: Path) -> None:
    home(tmp_path / "one", bucket).stop()
    assert not (bucket / "nodes/1").exists()


@pytest.mark.heavy
def test_probes_are_answered_during_a_takeover(tmp_path: Path, bucket: Path, leader: RunningBroker) -> None:
    lobby = RunningLobby(tmp_path / "two", bucket, leads=SlowBackend)
    try:
        leader.stop()
        broker = lobby.until_leading()
        assert isinstance(broker.backend, SlowBackend)
        (alive, _), (ready, why) = broker.backend.answers
        assert (alive, ready) == (200, 503)
        assert f"this broker takes over file://{bucket}" in why
        with urllib.request.urlopen(f"http://127.0.0.1:{broker.metrics_port}/readyz", timeout=10) as answer:
            assert answer.status == 200
    finally:
        lobby.stop()
