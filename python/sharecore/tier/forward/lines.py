"""A client's own connections to the cluster, one per broker and purpose."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import weakref
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple, Protocol

from sharecore.client.wire.connection import Connection
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import ApiKey
from sharecore.protocol.calls import Call
from sharecore.tier.forward.shapes import Fields, Message

logger = logging.getLogger(__name__)

_GONE = "the client has disconnected"

Open = Callable[[int], Awaitable[Connection]]
"""Connects to a broker by ID; raises KafkaError."""


class Lost(KafkaError):
    """The cluster did not respond.

    Attributes:
        sent: whether the broker may have executed the request.
    """

    def __init__(self, error: KafkaError, *, sent: bool) -> None:
        super().__init__(error.code, error.message)
        self.sent = sent


class _Request(NamedTuple):
    api_key: ApiKey
    version: int
    message: Message | Fields
    wait_ms: int
    answer: asyncio.Future[Message]


class Client(Protocol):
    """The client's connection, which is charged for the memory of its responses."""

    def answer_room(self) -> int:
        """Return how many bytes the next response may have; 0 if it must wait."""

    def when_answer_room(self, room: Callable[[], object]) -> None:
        """Call `room` when there is room."""

    def hold_answer_bytes(self, change: int) -> None:
        """Adjust the client's unread bytes."""


class Line:
    """A connection to one broker: requests are sent in order, even while it is being established.

    Large responses count as the client's unread responses from their first byte, and are not read while there
    is no room: a client may have as many fetches in flight as there are brokers.

    Args:
        open: opens the connection, again after it has ended.
        client: the client of the requests.
    """

    def __init__(self, open: Callable[[], Awaitable[Connection]], client: Client) -> None:
        self._open = open
        self._client = client
        self._arriving = 0
        """Bytes of the response being read."""
        self._held: set[weakref.ref[asyncio.Future[Message]]] = set()
        self._loop = asyncio.get_running_loop()
        self._connection: Connection | None = None
        self._ended: Connection | None = None
        """The last connection whose end is counted in `_course`."""
        self._course = 0
        self._waiting: deque[_Request] = deque()
        self._opening: asyncio.Task[None] | None = None

    def send(
        self, api_key: ApiKey, version: int, message: Message | Fields, wait_ms: int = 0
    ) -> asyncio.Future[Message]:
        """Send a request; the future is the response, or fails with `Lost`.

        Args:
            message: a message read from the client in this version, or an equivalent dict.
            wait_ms: how long the broker may take beyond the request timeout.
        """
        request = _Request(api_key, version, message, wait_ms, self._loop.create_future())
        connection = self._connection
        if self._opening is None and connection is not None and not connection.closed and connection.ready:
            self._put(connection, request)
        else:
            self._waiting.append(request)
            if self._opening is None:
                self._opening = self._loop.create_task(self._prepare(), name="sharecore forward")
        return request.answer

    @property
    def course(self) -> int:
        """The number of connections that ended: requests of one course arrive in order, or not at all."""
        connection = self._connection
        if connection is not None and connection.closed and connection is not self._ended:
            self._ended = connection
            self._course += 1
        return self._course

    def close(self) -> None:
        """Close the connection; requests in flight are lost."""
        if self._opening is not None:
            self._opening.cancel()
        if self._connection is not None:
            self._connection.close(_GONE)
        self._fail(KafkaError(ErrorCode.NETWORK_EXCEPTION, _GONE))

    async def _prepare(self) -> None:
        """Connect, or wait until the broker accepts requests again, and send the queued ones."""
        try:
            connection = self._connection
            if connection is None or connection.closed:
                connection = await self._open()
                # the end of the one before is counted first
                _ = self.course
                self._connection = connection
                connection.on_announced = partial(self._has_room, connection)
            if not connection.ready:
                await connection.prepare()
            while self._waiting:
                self._put(connection, self._waiting.popleft())
        except KafkaError as error:
            logger.info("cannot forward a request: %s", error)
            self._fail(error)
        finally:
            self._opening = None

    def _put(self, connection: Connection, request: _Request) -> None:
        answer = request.answer
        if answer.cancelled():
            return

        def answered(response: Message | KafkaError) -> None:
            self._count_until_gone(answer)
            _end(answer, Lost(response, sent=True) if isinstance(response, KafkaError) else response)

        try:
            if connection.version(request.api_key, request.version) != request.version:
                text = (
                    f"{connection.address} does not support version {request.version} of "
                    f"{request.api_key.name}"
                )
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, text)
            call: Call[Message] = Call(request.api_key)
            connection.send(call, request.message, answered, wait_ms=request.wait_ms, newest=request.version)
        except KafkaError as error:
            _end(answer, Lost(error, sent=False))

    def _has_room(self, connection: Connection, size: int) -> bool:
        """Return whether a response of this size may be read now; count it if so."""
        if not self._client.answer_room():
            self._client.when_answer_room(connection.resume)
            return False
        self._arriving = size
        self._client.hold_answer_bytes(size)
        return True

    def _count_until_gone(self, answer: asyncio.Future[Message]) -> None:
        """Count the bytes of the response that has just arrived until its future is garbage-collected."""
        size, self._arriving = self._arriving, 0
        if not size:
            return

        def gone(reference: weakref.ref[asyncio.Future[Message]]) -> None:
            # garbage collection may happen anywhere, even while the client's connection is active
            self._held.discard(reference)
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._client.hold_answer_bytes, -size)

        self._held.add(weakref.ref(answer, gone))

    def _fail(self, error: KafkaError) -> None:
        waiting, self._waiting = self._waiting, deque()
        self._course += 1
        for request in waiting:
            _end(request.answer, Lost(error, sent=False))


def _end(answer: asyncio.Future[Message], outcome: Message | Lost) -> None:
    if answer.done():
        return
    if isinstance(outcome, Lost):
        answer.set_exception(outcome)
        answer.exception()  # possibly nobody waits for it
    else:
        answer.set_result(outcome)


class Lines:
    """The connections of one client: at most one per broker and purpose.

    Args:
        open: connects to a broker.
        client: the client's connection.
    """

    def __init__(self, open: Open, client: Client) -> None:
        self._open = open
        self._client = client
        self._closed = False
        self._lines: dict[tuple[int, str], Line] = {}

    def to(self, node: int, purpose: str = "") -> Line:
        """Return the connection to a broker."""
        line = self._lines.get((node, purpose))
        if line is None:
            line = self._lines[node, purpose] = Line(lambda: self._connect(node), self._client)
        return line

    async def _connect(self, node: int) -> Connection:
        if self._closed:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, _GONE)
        return await self._open(node)

    def close(self) -> None:
        """Close all, and open no new ones."""
        self._closed = True
        for line in self._lines.values():
            line.close()
        self._lines.clear()
