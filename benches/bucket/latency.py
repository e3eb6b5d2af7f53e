"""A relay before a bucket's server that gives PUTs the time they take on S3; a process of its own.

    python -m benches.bucket.latency PORT --p50 25 --p99 120

Each PUT is answered after a log-normal time, or when the server has answered, whichever is later. Other
requests are passed on as they are. The port that it listens on is its first line.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import random

_NORMAL_P99 = 2.326
"""The 99th percentile of a standard normal distribution."""
_HEAD_MAX = 1 << 16


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

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        answers, requests = await asyncio.open_connection("127.0.0.1", port, limit=_HEAD_MAX)
        try:
            while (request := await _message(reader, is_answer=False)) is not None:
                due_s = loop.time() + (latency.next_s() if request.startswith(b"PUT ") else 0.0)
                requests.write(request)
                answer = await _message(answers, is_answer=True, to_head=request.startswith(b"HEAD "))
                if answer is None:
                    return
                await asyncio.sleep(max(due_s - loop.time(), 0.0))
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
