"""A connection that says what it likes: any request of the schemas, any bytes."""

from __future__ import annotations

import socket
import struct
from typing import Any, Self

from sharecore.protocol import ApiKey, codec

_SIZE = struct.Struct(">i")


class Closed(Exception):
    """The broker closed the connection."""


class Peer:
    """One connection.

    Args:
        port: of a listener on localhost.
        timeout_s: how long a send or an answer may take.
    """

    client_id = "abuse"

    def __init__(self, port: int, timeout_s: float = 30) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def log_in(self, user: str, password: str) -> None:
        """Log in with PLAIN."""
        self.ask("sasl_handshake", 1, mechanism="PLAIN")
        answer = self.ask("sasl_authenticate", 2, auth_bytes=f"\0{user}\0{password}".encode())
        if answer.error_code:
            raise Closed(answer.error_message)

    def frame(self, api: str, version: int, **fields: Any) -> bytes:
        """Return a request with its size; fields that are left out have their defaults."""
        self._correlation += 1
        return codec(ApiKey[api.upper()], version).write_request(self._correlation, self.client_id, fields)

    def ask(self, api: str, version: int, **fields: Any) -> Any:
        """Send a request and return its answer."""
        self.send(self.frame(api, version, **fields))
        return self.answer(api, version)

    def send(self, data: bytes) -> None:
        """Send bytes; raise Closed where the broker takes no more."""
        try:
            self.socket.sendall(data)
        except ConnectionError as error:
            raise Closed(str(error)) from None

    def answer(self, api: str, version: int) -> Any:
        """Read the next answer, to a request of this API."""
        return codec(ApiKey[api.upper()], version).read_response(self.receive())[1]

    def receive(self) -> bytes:
        """Read the next frame, without its size."""
        return self._read(_SIZE.unpack(self._read(_SIZE.size))[0])

    def is_closed(self) -> bool:
        """Return whether the broker closes the connection within the timeout, whatever it sends before."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionError:
            return True
        except TimeoutError:
            return False
        return True

    def _read(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            try:
                got = self.socket.recv(min(count - len(data), 1 << 20))
            except ConnectionError as error:
                raise Closed(str(error)) from None
            if not got:
                raise Closed("end of stream")
            data += got
        return bytes(data)


def sized(payload: bytes, claimed: int | None = None) -> bytes:
    """Put a size before bytes: their own, or another one."""
    return _SIZE.pack(len(payload) if claimed is None else claimed) + payload
