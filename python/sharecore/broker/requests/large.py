"""Requests with many entries: decoded and encoded in threads, within a memory limit."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol, TypeVar, cast

from sharecore import _core
from sharecore.network import Connection, Disconnect
from sharecore.protocol import Codec, codec
from sharecore.waiting import FairThread, Later, outcome

T = TypeVar("T")
Message = TypeVar("Message")

_MEDIUM_PART = 8
"""Requests of up to this fraction of the limit do not wait for larger ones."""
_WRITTEN_AT_ONCE = 2_000
"""Answers up to this number of entries are encoded in the event loop."""
_HELD_SECONDS_MAX = 10.0
"""Time after which a request with a pending answer frees its capacity for the next one."""


class Request(Protocol):
    """The used part of a request; see `RequestContext`."""

    @property
    def connection(self) -> Connection: ...
    @property
    def api_key(self) -> int: ...
    @property
    def api_version(self) -> int: ...
    @property
    def correlation_id(self) -> int: ...
    def hold(self, later: Later[object]) -> None: ...


class LargeRequests:
    """Handle requests whose entries would take noticeable time and memory.

    A thread decodes the request and encodes the answer, while the event loop continues; the handler runs in
    turns (`RequestContext.run`). Requests beyond the limit wait, and their owners (users or addresses) take
    turns. Requests of moderate size have separate capacity.

    Args:
        entries_max: maximum entries of concurrent requests; a single request has no more.
    """

    def __init__(self, entries_max: int) -> None:
        self._medium_max = entries_max // _MEDIUM_PART
        self._medium, self._large = Lane(self._medium_max), Lane(entries_max)

    def handle(
        self,
        context: Request,
        messages: Codec,
        handle: Callable[[Request, Message], object],
        frame: bytes,
        at: int,
        entries: int,
    ) -> Awaitable[object]:
        """Return the answer to a request, as its handler would.

        No later request of the connection starts before.

        Args:
            context: the request.
            messages: codec of request and answer.
            handle: its handler.
            frame: its bytes.
            at: offset of the message in them.
            entries: its number of entries.
        """
        ended: Later[None] = Later()
        context.hold(ended)
        lane = self._medium if entries <= self._medium_max else self._large
        if isinstance(handle, _core.Produce):
            read = cast("Callable[[], Message]", partial(handle.read_apart, frame, at, context.api_version))
        else:
            read = partial(messages.request_layout.read_apart, frame, at)
        return self._answer(lane, context, messages, handle, read, entries, ended)

    async def _answer(
        self,
        lane: Lane,
        context: Request,
        messages: Codec,
        handle: Callable[[Request, Message], object],
        read: Callable[[], Message],
        entries: int,
        ended: Later[None],
    ) -> object:
        owner = context.connection.owner
        place = await lane.enter(owner, entries)
        try:
            try:
                request = await lane.run(owner, read)
            except ValueError as error:
                raise Disconnect(f"malformed request: {error}") from error
            del read
            answer = handle(context, request)
            del request
            if isinstance(answer, (Awaitable, _core.Later)):
                place.leave_after(_HELD_SECONDS_MAX)
                answer = await outcome(answer)
            return await self._write(lane, context, answer)
        finally:
            place.leave()
            ended.set_result(None)

    async def written(self, context: Request, answer: Later[T]) -> T | _core.WrittenAnswer:
        """Return a deferred answer, encoded in the thread if it is large."""
        found = await outcome(answer)
        return await self._write(self._medium, context, found) if _is_large(found) else found

    async def _write(self, lane: Lane, context: Request, answer: T) -> T | _core.WrittenAnswer:
        if not isinstance(answer, (dict, _core.Produced)):
            return answer  # already encoded, or encodes itself
        messages = codec(context.api_key, context.api_version)
        layout, tagged = messages.response_layout, messages.tagged_header
        write = partial(layout.write_response_apart, context.correlation_id, tagged, answer)
        try:
            parts = await lane.run(context.connection.owner, write)
        except OverflowError as error:
            raise Disconnect(f"request is answered with too much: {error}") from error
        except Exception:
            return answer  # the event loop then encodes it again and reports the error
        return _core.WrittenAnswer(answer, parts)


def _is_large(answer: object) -> bool:
    """Return whether encoding an answer would take noticeable time."""
    if not isinstance(answer, dict):
        return False
    left = _WRITTEN_AT_ONCE
    structs = [answer]
    while structs:
        for value in structs.pop().values():
            if not isinstance(value, list):
                continue
            left -= len(value)
            if left < 0:
                return True
            if value and isinstance(value[0], dict):
                structs += value
    return False


class Lane:
    """Capacity for request entries, and the thread that processes them.

    Args:
        entries_max: maximum entries of concurrent requests.
    """

    def __init__(self, entries_max: int) -> None:
        self._room = entries_max
        self._waiting: dict[str, deque[tuple[int, asyncio.Future[None]]]] = {}
        """Waiting requests by owner; the first owner is next."""
        self._thread = FairThread("request")

    async def enter(self, owner: str, entries: int) -> _Place:
        """Wait for capacity for a request's entries."""
        entered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append((entries, entered))
        self._admit()
        try:
            await entered
        except asyncio.CancelledError:
            if entered.done() and not entered.cancelled():
                self.give_back(entries)
            else:
                self._admit()
            raise
        return _Place(self, entries)

    def give_back(self, entries: int) -> None:
        """Free capacity for waiting requests."""
        self._room += entries
        self._admit()

    async def run(self, owner: str, work: Callable[[], T]) -> T:
        """Return the result of `work`, run in the thread; see `FairThread`."""
        return await self._thread.run(owner, work)

    def _admit(self) -> None:
        while self._waiting:
            owner, requests = next(iter(self._waiting.items()))
            entries, entered = requests[0]
            if not entered.done():
                if entries > self._room:
                    return
                self._room -= entries
                entered.set_result(None)
            requests.popleft()
            del self._waiting[owner]
            if requests:
                self._waiting[owner] = requests


class _Place:
    """Capacity used by one request, freed once."""

    def __init__(self, lane: Lane, entries: int) -> None:
        self._lane = lane
        self._entries = entries
        self._timer: asyncio.TimerHandle | None = None

    def leave_after(self, seconds: float) -> None:
        """Free the capacity after some time, unless it was freed before."""
        self._timer = asyncio.get_running_loop().call_later(seconds, self.leave)

    def leave(self) -> None:
        """Free the capacity."""
        if self._timer is not None:
            self._timer.cancel()
        entries, self._entries = self._entries, 0
        if entries:
            self._lane.give_back(entries)
