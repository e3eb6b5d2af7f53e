"""A TCP proxy between clients and a broker that cuts, delays, half-closes and blocks connections."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct

_CHUNK = 1 << 16
_NO_LINGER = struct.pack("ii", 1, 0)


class Proxy:
    """Forwards bytes to a local port.

    Args:
        target: the port to connect to.
        port: the port to listen on; 0 for a free one.

    Attributes:
        port: where clients connect; 0 until it was started on a free one.
        delay_s: the delay of each piece of data.
    """

    def __init__(self, target: int, port: int = 0) -> None:
        self.port = port
        self.delay_s = 0.0
        self._target = target
        self._flows = asyncio.Event()
        self._flows.set()
        self._server: asyncio.Server | None = None
        self._pairs: dict[asyncio.StreamWriter, asyncio.StreamWriter] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """End all connections."""
        if self._server is not None:
            self._server.close()
        self.release()
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """Reset all connections, on both sides."""
        for client, broker in list(self._pairs.items()):
            _reset(client)
            _reset(broker)

    def half_close(self) -> None:
        """Close the client's direction of every connection; responses still pass."""
        for broker in list(self._pairs.values()):
            with contextlib.suppress(OSError, RuntimeError):
                broker.write_eof()

    def hold(self) -> None:
        """Block all traffic."""
        self._flows.clear()

    def release(self) -> None:
        """Unblock all traffic."""
        self._flows.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            broker_reader, broker_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        self._pairs[writer] = broker_writer
        both = [
            asyncio.create_task(self._pass(reader, broker_writer)),
            asyncio.create_task(self._pass(broker_reader, writer)),
        ]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in both:
                each.cancel()
            await asyncio.gather(*both, return_exceptions=True)
            del self._pairs[writer]
            writer.transport.abort()
            broker_writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            while data := await reader.read(_CHUNK):
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                await self._flows.wait()
                writer.write(data)
                await writer.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    """End a connection with a reset, as a cut-off peer sees it."""
    connection = writer.get_extra_info("socket")
    if connection is not None:
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
    writer.transport.abort()
