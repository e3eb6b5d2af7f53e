"""An event loop with virtual time and connections to brokers in memory: nothing waits."""

from __future__ import annotations

import asyncio
import functools
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from tests.harness.virtual_loop import VirtualLoop


class Listener(Protocol):
    """The server side of a connection."""

    def connected(self, link: Link) -> None: ...
    def received(self, link: Link, data: bytes) -> None: ...
    def disconnected(self, link: Link) -> None: ...


class Link(asyncio.Transport):
    """The client's end of a connection in memory."""

    def __init__(self, loop: ClientLoop, protocol: asyncio.Protocol, listener: Listener) -> None:
        super().__init__()
        self._loop, self._protocol, self._listener = loop, protocol, listener
        self._closing = False
        self.buffered = b""
        self.turns: deque[Any] = deque()
        """The pending responses, in order."""

    def write(self, data: Any) -> None:
        if not self._closing:
            self._loop.call_soon(self._listener.received, self, bytes(data))

    def is_closing(self) -> bool:
        return self._closing

    def abort(self) -> None:
        self.cut()

    def cut(self, error: Exception | None = None) -> None:
        """End the connection on both sides."""
        if not self._closing:
            self._closing = True
            self._listener.disconnected(self)
            self._loop.call_soon(self._protocol.connection_lost, error)

    def answer(self, data: bytes) -> None:
        """Send bytes to the client."""
        if not self._closing:
            self._protocol.data_received(data)


class ClientLoop(VirtualLoop):
    """Virtual time, and connections to brokers in memory, ignoring most of asyncio's keywords.

    Attributes:
        listeners: the listener at each host and port; None refuses connections.
    """

    def __init__(self) -> None:
        super().__init__()
        self.listeners: dict[tuple[str, int], Listener] = {}

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Callable[[], asyncio.Protocol], host: str, port: int, **_: object
    ) -> tuple[Link, asyncio.Protocol]:
        listener = self.listeners.get((host, port))
        if listener is None:
            raise ConnectionRefusedError(f"nobody listens at {host}:{port}")
        protocol = protocol_factory()
        link = Link(self, protocol, listener)
        listener.connected(link)
        protocol.connection_made(link)
        return link, protocol


class LoopClock:
    """The loop's time in milliseconds, as a consumer's clock."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        return 1_700_000_000_000 + self.monotonic_ms()

    def monotonic_ms(self) -> int:
        return round(self._loop.time() * 1000)


def in_virtual_time(body: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run a coroutine in a new loop; fail if a task or an unhandled error is left."""

    @functools.wraps(body)
    def test(*arguments: Any, **fixtures: Any) -> None:
        with asyncio.Runner(loop_factory=ClientLoop) as runner:
            runner.run(_checked(body(*arguments, **fixtures)))

    return test


async def _checked(work: Awaitable[None]) -> None:
    unheard: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(context))
    await work
    await asyncio.sleep(1)
    assert asyncio.all_tasks() - {asyncio.current_task()} == set()
    assert unheard == []
