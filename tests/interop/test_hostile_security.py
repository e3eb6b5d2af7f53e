"""Peers that mean harm before they have said who they are: memory stays, and others are served."""

from __future__ import annotations

import contextlib
import datetime
import resource
import socket
import ssl
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.broker import Broker, free_port
from tests.harness.until import until

from sharecore.security.certificates import Authority

PEERS = 1000
MEMORY_BYTES_MAX = 150 << 20
_VERSIONS = struct.pack(">hhih", 18, 0, 1, -1)
_HELLO = bytes.fromhex("160301020001")
"""The beginning of a TLS handshake, whose rest is never sent."""


class Attacked:
    """A broker with a listener for each way in."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.pem = Authority(home, days=1).issue("localhost", file="broker", hosts=["localhost"])
        self.tls, self.sasl = free_port(), free_port()
        self.broker = Broker(
            home / "broker",
            "sharecore",
            {
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,TLS:SSL,SASL:SASL_PLAINTEXT",
                "sasl.enabled.mechanisms": "SCRAM-SHA-512",
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(self.pem),
                "sharecore.handshakes.max": "2000",
                "sharecore.authentications.max": "2000",
                "sharecore.ssl.reload.interval.ms": "100",
            },
        )
        listeners = f"PLAINTEXT://127.0.0.1:{self.broker.port},TLS://localhost:{self.tls},SASL://localhost:{self.sasl}"
        self.broker.arguments = ("--set", f"listeners={listeners}")
        self.trusting = ssl.create_default_context(cafile=str(home / "ca.pem"))

    def serves(self) -> bool:
        """Whether a client that means well gets through on the listener with TLS."""
        with (
            socket.create_connection(("localhost", self.tls), timeout=20) as plain,
            self.trusting.wrap_socket(plain, server_hostname="localhost") as peer,
        ):
            return is_answered(peer)


def is_answered(peer: socket.socket) -> bool:
    peer.sendall(struct.pack(">i", len(_VERSIONS)) + _VERSIONS)
    return len(peer.recv(4)) > 0


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    attacked = Attacked(tmp_path_factory.mktemp("attacked"))
    attacked.broker.start()
    yield attacked
    assert attacked.broker.terminate() == 0
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(
    ("listener", "sent"),
    [
        ("tls", _HELLO),
        ("tls", b""),
        ("sasl", struct.pack(">i", 400_000) + b"\0\x24"),
        ("sasl", struct.pack(">ihhih", 17, 17, 1, 1, -1) + b"\0\x05SCRAM"),
    ],
    ids=["half handshakes", "silence", "half tokens", "mechanisms that are not offered"],
)
@pytest.mark.timeout(120)
def test_a_thousand_at_once(attacked: Attacked, listener: str, sent: bytes) -> None:
    assert attacked.serves()
    before = attacked.broker.resident_bytes()
    with contextlib.ExitStack() as peers:
        for _ in range(PEERS):
            address = ("localhost", getattr(attacked, listener))
            peer = peers.enter_context(socket.create_connection(address, timeout=20))
            peer.sendall(sent)
        assert attacked.serves()
        assert attacked.broker.resident_bytes() - before < MEMORY_BYTES_MAX
    assert attacked.serves()


@pytest.mark.parametrize("size", [-1, 524_289, 2**31 - 1])
def test_a_frame_that_is_too_large_before_it_is_known_who_sends_it(attacked: Attacked, size: int) -> None:
    with socket.create_connection(("localhost", attacked.sasl), timeout=20) as peer:
        peer.sendall(struct.pack(">i", size) + b"\0" * 100)
        with contextlib.suppress(ConnectionResetError):
            assert peer.recv(1) == b""


@pytest.mark.parametrize(
    "sent", [b"\x15\x03\x01\x00\x02\x02\x00", bytes(range(256)) * 64, b"\x16\x03\x01\xff\xff"]
)
def test_what_is_no_handshake(attacked: Attacked, sent: bytes) -> None:
    with (
        socket.create_connection(("localhost", attacked.tls), timeout=20) as peer,
        contextlib.suppress(ConnectionResetError, BrokenPipeError),
    ):
        peer.sendall(sent)
        peer.shutdown(socket.SHUT_WR)
        while peer.recv(4096):
            pass
    assert attacked.serves()


def test_nobody_shakes_hands_again(attacked: Attacked) -> None:
    """Renegotiation costs a server more than its client: it is refused."""
    command = ["openssl", "s_client", "-connect", f"localhost:{attacked.tls}", "-tls1_2"]
    done = subprocess.run(command, input=b"R\n", capture_output=True, timeout=30, check=False)
    assert b"RENEGOTIATING" in done.stdout + done.stderr
    assert b"no renegotiation" in done.stderr.lower()
    assert attacked.serves()


def test_a_certificate_that_runs_out_while_somebody_is_connected(attacked: Attacked) -> None:
    """Who is in stays, as with Kafka; who comes is told, until there is a new certificate."""
    with (
        socket.create_connection(("localhost", attacked.tls), timeout=20) as plain,
        attacked.trusting.wrap_socket(plain, server_hostname="localhost") as peer,
    ):
        kept = attacked.pem.read_text()
        past = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=9)
        old = Authority(attacked.home, days=1, now=past).issue("localhost", file="old", hosts=["localhost"])
        attacked.pem.write_text(old.read_text())
        try:
            until(lambda: not trusts(attacked))
            assert is_answered(peer)
        finally:
            attacked.pem.write_text(kept)
        until(lambda: trusts(attacked))


def trusts(attacked: Attacked) -> bool:
    try:
        return attacked.serves()
    except ssl.SSLCertVerificationError:
        return False
