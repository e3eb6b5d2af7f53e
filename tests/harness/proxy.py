"""A relay between clients and a broker that can cut a connection at a chosen message."""

from __future__ import annotations

import asyncio
import struct
from typing import Literal

from sharecore.protocol import ApiKey

When = Literal["request", "answer", "within"]


class Proxy:
    """Passes frames on, and knows which API each belongs to.

    Args:
        port: the broker's, on this machine.
    """

    def __init__(self, port: int) -> None:
        self.port = 0
        self.seen: list[ApiKey] = []
        """The API of each request that was passed on."""
        self.cuts = 0
        self._broker_port = port
        self._cut: tuple[ApiKey, When, int] | None = None
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, port: int = 0) -> None:
        """Listen; on any free port unless told."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        self.cut_all()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self, api_key: ApiKey, when: When, after: int = 0) -> None:
        """Cuts the connection at a message of this API, once, and `after` so many of them were let through.

        A request is cut before the broker gets it, an answer after the broker gave it, and `within` lets half
        of the answer through.
        """
        self._cut = (api_key, when, after)

    def cut_all(self) -> None:
        """Cuts all connections now."""
        for writer in list(self._writers):
            writer.transport.abort()

    def _cuts(self, api_key: ApiKey, *when: When) -> bool:
        if self._cut is None or self._cut[0] != api_key or self._cut[1] not in when:
            return False
        if self._cut[2]:
            self._cut = (*self._cut[:2], self._cut[2] - 1)
            return False
        self._cut = None
        self.cuts += 1
        return True

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        asked: dict[int, ApiKey] = {}
        try:
            broker_reader, broker_writer = await asyncio.open_connection("127.0.0.1", self._broker_port)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, broker_writer}
        self._writers |= both
        answers = asyncio.create_task(self._answers(broker_reader, writer, asked))
        requests = asyncio.create_task(self._requests(reader, broker_writer, asked))
        await asyncio.wait((answers, requests), return_when=asyncio.FIRST_COMPLETED)
        for one in both:
            one.transport.abort()
        self._writers -= both
        await asyncio.gather(answers, requests, return_exceptions=True)

    async def _requests(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: dict[int, ApiKey]
    ) -> None:
        while True:
            frame = await _frame(reader)
            number, _, correlation_id = struct.unpack_from(">hhi", frame, 4)
            api_key = asked[correlation_id] = ApiKey(number)
            if self._cuts(api_key, "request"):
                return
            self.seen.append(api_key)
            writer.write(frame)

    async def _answers(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: dict[int, ApiKey]
    ) -> None:
        while True:
            frame = await _frame(reader)
            (correlation_id,) = struct.unpack_from(">i", frame, 4)
            within = self._cut is not None and self._cut[1] == "within"
            if self._cuts(asked.pop(correlation_id), "answer", "within"):
                if within:
                    writer.write(frame[: len(frame) // 2])
                    await writer.drain()
                return
            writer.write(frame)


async def _frame(reader: asyncio.StreamReader) -> bytes:
    size = await reader.readexactly(4)
    return size + await reader.readexactly(int.from_bytes(size, "big"))
