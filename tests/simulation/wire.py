"""A connection of an actor that speaks any API by hand."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from tests.harness.frames import Framer
from tests.simulation.loop import the_loop
from tests.simulation.machine import PORT

from sharecore.protocol import ApiKey, codec


class Gone(Exception):
    """The broker did not answer: nobody knows whether it has done what was asked."""


class Wire(asyncio.Protocol):
    """One connection; requests may be sent before earlier ones are answered.

    Attributes:
        patience_s: how long an answer is waited for.
    """

    patience_s = 30.0

    def __init__(self, name: str) -> None:
        self.name = name
        self._framer = Framer()
        self._transport: Any = None
        self._sent = 0
        self._waiting: dict[int, tuple[ApiKey, int, asyncio.Future[Any]]] = {}

    @classmethod
    async def open(cls, name: str, port: int = PORT) -> Wire:
        """Raises Gone when nobody listens."""
        try:
            _, wire = await the_loop().create_connection(lambda: cls(name), "broker", port)
        except OSError as error:
            raise Gone(str(error)) from error
        return cast(Wire, wire)

    @property
    def closed(self) -> bool:
        return self._transport is None or bool(self._transport.is_closing())

    def send(self, api_key: ApiKey, version: int, **fields: Any) -> asyncio.Future[Any]:
        """Sends a request; the future has its answer, or Gone."""
        future: asyncio.Future[Any] = the_loop().create_future()
        if self.closed:
            future.set_exception(Gone("closed"))
            future.exception()
            return future
        self._sent += 1
        self._waiting[self._sent] = api_key, version, future
        self._transport.write(codec(api_key, version).write_request(self._sent, self.name, fields))
        return future

    async def ask(self, api_key: ApiKey, version: int, *, within: float | None = None, **fields: Any) -> Any:
        """Sends a request and waits for its answer; raises Gone."""
        future = self.send(api_key, version, **fields)
        try:
            return await asyncio.wait_for(future, self.patience_s if within is None else within)
        except TimeoutError:
            self.close()
            raise Gone("no answer in time") from None

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def write(self, data: bytes) -> None:
        """Sends bytes as they are."""
        self._transport.write(data)

    def pause(self) -> None:
        """Reads no more for now."""
        self._transport.pause_reading()

    def resume(self) -> None:
        self._transport.resume_reading()

    # asyncio.Protocol

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        for frame in self._framer.feed(data):
            number = int.from_bytes(frame[:4], "big")
            found = self._waiting.pop(number, None)
            if found is not None and not found[2].done():
                api_key, version, future = found
                future.set_result(codec(api_key, version).read_response(frame)[1])

    def connection_lost(self, error: Exception | None) -> None:
        waiting, self._waiting = self._waiting, {}
        for _, _, future in waiting.values():
            if not future.done():
                future.set_exception(Gone(str(error or "closed")))
                future.exception()
