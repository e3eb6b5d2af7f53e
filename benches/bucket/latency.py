"""A relay before a bucket's server that gives PUTs the time they take on S3; a process of its own.

    python -m benches.bucket.latency PORT --p50 25 --p99 120

Each PUT is answered after a log-normal time, or when the server has answered, whichever is later. Other
requests are passed on as they are. The port that it listens on is its first line. It counts requests, and
answers those for `/-/counts` itself.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import math
import random
from dataclasses import asdict, dataclass

_NORMAL_P99 = 2.326
"""The 99th percentile of a standard normal distribution."""
_HEAD_MAX = 1 << 16
_COUNTS = b"/-/counts"


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
    """

    puts: int = 0
    lists: int = 0
    gets: int = 0
    others: int = 0
    put_bytes: int = 0
    put_s: float = 0.0

    def add(self, request: bytes, took_s: float) -> None:
        """Count a request."""
        method, path = request[: request.index(b"\r\n")].split(b" ")[:2]
        if method == b"PUT":
            self.puts += 1
            self.put_bytes += len(request)
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


async def _message(reader: asyncio.StreamReader, *, is_answer: bool, to_head: bool = False) -> bytes | None:
    """Return a whole HTTP message with a length; None at the end of the connection."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    lines = head.lower().split(b"\r\n")
    fields = dict(line.split(b":", 1) for line in lines[1:] if b":" in line)
    has_body = not (is_answer and (to_head or lines[0].split()[1] in (b"204", b"304")))
    if has_body and b"chunked" in fields.get(b"transfer-encoding", b""):
        return head + await _chunks(reader)
    length = int(fields.get(b"content-length", b"0")) if has_body else 0
    return head + await reader.readexactly(length)


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while True:
        line = await reader.readuntil(b"\r\n")
        size = int(line.split(b";")[0], 16)
        body += line + await reader.readexactly(size + 2)
        if not size:
            return body


async def serve(port: int, latency: Latency) -> None:
    """Relay to a port until cancelled."""
    passed = Counts()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        answers, requests = await asyncio.open_connection("127.0.0.1", port, limit=_HEAD_MAX)
        try:
            while (request := await _message(reader, is_answer=False)) is not None:
                if request.startswith(b"GET " + _COUNTS):
                    body = json.dumps(asdict(passed)).encode()
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
                    continue
                began_s = loop.time()
                due_s = began_s + (latency.next_s() if request.startswith(b"PUT ") else 0.0)
                requests.write(request)
                answer = await _message(answers, is_answer=True, to_head=request.startswith(b"HEAD "))
                if answer is None:
                    return
                await asyncio.sleep(max(due_s - loop.time(), 0.0))
                passed.add(request, loop.time() - began_s)
                writer.write(answer)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()
            requests.close()

    server = await asyncio.start_server(relay, "127.0.0.1", 0, limit=_HEAD_MAX)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("port", type=int)
    parser.add_argument("--p50", type=float, default=25, help="ms")
    parser.add_argument("--p99", type=float, default=120, help="ms")
    asked = parser.parse_args()
    asyncio.run(serve(asked.port, Latency(asked.p50, asked.p99)))


if __name__ == "__main__":
    main()
