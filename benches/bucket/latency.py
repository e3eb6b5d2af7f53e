"""A relay before a bucket's server that gives PUTs the time they take on S3; a process of its own.

    python -m benches.bucket.latency PORT --p50 25 --p99 120

Each PUT is answered after a log-normal time, or when the server has answered, whichever is later. Other
requests are passed on as they are. The port that it listens on is its first line. It counts requests, and
answers those for `/-/counts` itself.

It shares the CPUs with what is measured, so it passes bodies on in large pieces, with a thread for each
connection.
"""

from __future__ import annotations

import argparse
import http.client
import json
import math
import random
import select
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass

_NORMAL_P99 = 2.326
"""The 99th percentile of a standard normal distribution."""
_HEAD_MAX = 1 << 16
_PIECE = 1 << 20
_COUNTS = b"/-/counts"

Send = Callable[[bytes | memoryview], object]


class Latency:
    """The times of PUTs.

    Args:
        p50_ms: their median; 0: none is delayed.
        p99_ms: their 99th percentile.
        seed: of the times.
    """

    def __init__(self, p50_ms: float, p99_ms: float, seed: int = 1) -> None:
        self._p50_s = p50_ms / 1000
        self._sigma = math.log(p99_ms / p50_ms) / _NORMAL_P99 if p50_ms else 0.0
        self._random = random.Random(seed)

    def next_s(self) -> float:
        """Return the time of the next PUT, in seconds."""
        return self._p50_s * math.exp(self._sigma * self._random.gauss(0, 1))


@dataclass
class Counts:
    """What has passed so far.

    Attributes:
        puts: creates of objects.
        lists: lists.
        gets: reads of objects.
        others: deletes, for instance.
        put_bytes: what the creates held.
        put_s: what all creates have taken.
        get_bytes: what was read.
    """

    puts: int = 0
    lists: int = 0
    gets: int = 0
    others: int = 0
    put_bytes: int = 0
    put_s: float = 0.0
    get_bytes: int = 0

    def add(self, head: bytes, size: int, took_s: float) -> None:
        """Count a request of so many bytes that was sent and answered in a time."""
        method, path = head[: head.index(b"\r\n")].split(b" ")[:2]
        if method == b"PUT":
            self.puts += 1
            self.put_bytes += size
            self.put_s += took_s
        elif method == b"GET" and b"list-type=" in path:
            self.lists += 1
        elif method == b"GET":
            self.gets += 1
        else:
            self.others += 1

    def since(self, before: Counts) -> Counts:
        """Return what has passed since."""
        earlier = asdict(before)
        return Counts(**{name: value - earlier[name] for name, value in asdict(self).items()})

    @property
    def dollars(self) -> float:
        """The price on S3 Standard in us-east-1."""
        return (self.puts + self.lists) * 5.0e-6 + self.gets * 0.4e-6


def counts(port: int) -> Counts:
    """Ask a relay what has passed."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", _COUNTS.decode())
        return Counts(**json.load(connection.getresponse()))
    finally:
        connection.close()


class _Stream:
    """Messages of HTTP that arrive at a socket."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = connection
        self._arrived = b""
        self._room = memoryview(bytearray(_PIECE))

    def _until(self, end: bytes) -> bytes | None:
        """Return what comes up to and with some bytes; None at the end of the connection."""
        while (at := self._arrived.find(end)) < 0:
            more = self.socket.recv(_HEAD_MAX)
            if not more or len(self._arrived) > _HEAD_MAX:
                return None
            self._arrived += more
        at += len(end)
        found, self._arrived = self._arrived[:at], self._arrived[at:]
        return found

    def head(self) -> bytes | None:
        """Return the head of the next message; None at the end of the connection."""
        return self._until(b"\r\n\r\n")

    def pass_body(self, head: bytes, send: Send) -> int:
        """Send the body that follows a head, which says how long it is; return its length."""
        lines = head.lower().split(b"\r\n")
        fields = dict(line.split(b":", 1) for line in lines[1:] if b":" in line)
        if b"chunked" in fields.get(b"transfer-encoding", b""):
            return self._pass_chunks(send)
        length = int(fields.get(b"content-length", b"0"))
        self._pass(length, send)
        return length

    def _pass(self, length: int, send: Send) -> None:
        first, self._arrived = self._arrived[:length], self._arrived[length:]
        send(first)
        left = length - len(first)
        while left:
            got = self.socket.recv_into(self._room, min(left, _PIECE))
            if not got:
                raise ConnectionError
            send(self._room[:got])
            left -= got

    def _pass_chunks(self, send: Send) -> int:
        length = 0
        while True:
            line = self._until(b"\r\n")
            if line is None:
                raise ConnectionError
            send(line)
            size = int(line.split(b";")[0], 16)
            self._pass(size + 2, send)
            length += size
            if not size:
                return length


class _AnsweredEarly(Exception):
    """A server has answered before it has read the whole request, as it does if it refuses that."""


def _sender(server: socket.socket) -> Send:
    def send(data: bytes | memoryview) -> None:
        left = memoryview(data)
        while left:
            readable, writable, _ = select.select([server], [server], [])
            if readable:
                raise _AnsweredEarly
            if writable:
                left = left[server.send(left, socket.MSG_DONTWAIT) :]

    return send


class _Relay:
    """Passes on the requests of each connection to a port of this machine."""

    def __init__(self, port: int, latency: Latency) -> None:
        self._port = port
        self._latency = latency
        self._passed = Counts()
        self._counting = threading.Lock()

    def serve(self, connection: socket.socket) -> None:
        """Pass on requests until the client or the server closes its connection."""
        with connection, suppress(OSError), socket.create_connection(("127.0.0.1", self._port)) as server:
            requests, answers = _Stream(connection), _Stream(server)
            while (head := requests.head()) is not None and self._pass(head, requests, answers):
                pass

    def _pass(self, head: bytes, requests: _Stream, answers: _Stream) -> bool:
        client, server = requests.socket, answers.socket
        if head.startswith(b"GET " + _COUNTS):
            body = json.dumps(asdict(self._passed)).encode()
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
            return True
        began_s, is_whole = time.monotonic(), True
        size = len(head)
        send = _sender(server)
        try:
            send(head)
            size += requests.pass_body(head, send)
        except _AnsweredEarly:
            is_whole = False
        due_s = time.monotonic()
        if head.startswith(b"PUT "):
            with self._counting:
                due_s += self._latency.next_s()
        answer = answers.head()
        if answer is None:
            return False
        time.sleep(max(due_s - time.monotonic(), 0.0))
        with self._counting:
            self._passed.add(head, size, time.monotonic() - began_s)
        client.sendall(answer)
        if not head.startswith(b"HEAD ") and answer.split(b" ", 2)[1] not in (b"204", b"304"):
            got = answers.pass_body(answer, client.sendall)
            with self._counting:
                self._passed.get_bytes += got
        return is_whole


def serve(port: int, latency: Latency) -> None:
    """Relay to a port for ever; print the port that this listens on."""
    relay = _Relay(port, latency)
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        print(listener.getsockname()[1], flush=True)
        while True:
            threading.Thread(target=relay.serve, args=(listener.accept()[0],), daemon=True).start()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("port", type=int)
    parser.add_argument("--p50", type=float, default=25, help="ms")
    parser.add_argument("--p99", type=float, default=120, help="ms")
    asked = parser.parse_args()
    serve(asked.port, Latency(asked.p50, asked.p99))


if __name__ == "__main__":
    main()
