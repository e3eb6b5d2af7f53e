"""Kafka's protocol by hand, for requests that no client library would send."""

from __future__ import annotations

import socket
import struct
from typing import Self

from tests.harness.checksum import crc32c


class Peer:
    """One connection; `call` sends a request with a version 1 header and returns the body of its answer."""

    def __init__(self, port: int, timeout: float = 10) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self._stream = self.socket.makefile("rb")
        self._correlation = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()
        self.socket.close()

    @property
    def local_port(self) -> int:
        port: int = self.socket.getsockname()[1]
        return port

    def send(self, api: int, version: int, body: bytes = b"") -> int:
        """Send one request; return its correlation id."""
        self._correlation += 1
        header = struct.pack(">hhi", api, version, self._correlation) + string("hostile")
        self.socket.sendall(struct.pack(">i", len(header + body)) + header + body)
        return self._correlation

    def receive(self) -> tuple[int, bytes]:
        """Correlation id and the rest of the next answer; EOFError where the broker closed the connection."""
        try:
            head = self._stream.read(4)
            frame = self._stream.read(struct.unpack(">i", head)[0]) if len(head) == 4 else b""
        except ConnectionResetError:
            frame = b""
        if len(frame) < 4:
            raise EOFError("the broker closed the connection")
        return struct.unpack_from(">i", frame)[0], frame[4:]

    def call(self, api: int, version: int, body: bytes = b"") -> bytes:
        sent = self.send(api, version, body)
        answered, rest = self.receive()
        assert answered == sent, "answers out of order"
        return rest

    def is_closed_by_broker(self) -> bool:
        """Whether the broker closes this connection without another word, within the timeout."""
        try:
            self.receive()
        except EOFError:
            return True
        except TimeoutError:
            return False
        return False


def string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def record_batch(value: bytes, *, spoil_crc: bool = False) -> bytes:
    """Return a batch v2 of one record without a key; `value` is shorter than 50 bytes."""
    record = struct.pack(">bbbbb", 0, 0, 0, 1, len(value) * 2) + value + b"\0"
    body = struct.pack(">hiqqqhii", 0, 0, 1_700_000_000_000, 1_700_000_000_000, -1, -1, -1, 1)
    body += struct.pack(">b", len(record) * 2) + record
    crc = crc32c(body) ^ (1 if spoil_crc else 0)
    return struct.pack(">qiibI", 0, len(body) + 9, -1, 2, crc) + body


def produce_v7(topic: str, records: bytes) -> bytes:
    """Return the body of a Produce request to partition 0 with acks=all."""
    partition = struct.pack(">ii", 0, len(records)) + records
    return struct.pack(">hhii", -1, -1, 5_000, 1) + string(topic) + struct.pack(">i", 1) + partition


def produce_v7_error(answer: bytes, topic: str) -> int:
    """Return the error code of partition 0 in a Produce answer."""
    error: int = struct.unpack_from(">h", answer, 4 + len(string(topic)) + 4 + 4)[0]
    return error
