"""Fetch: a client's request is split over the leaders of its partitions.

The client gets a response as soon as one leader has records. The other fetches keep waiting: their records go
into the client's next response, if it still requests the same.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from sharecore.broker.requests.context import RequestContext
from sharecore.errors import ErrorCode, KafkaError
from sharecore.session import FINAL_EPOCH, INITIAL_EPOCH
from sharecore.tier.forward.by_leader import ByLeader, Split
from sharecore.tier.forward.consumer_fields import as_consumer
from sharecore.tier.forward.forwarder import RequestForwarder, throttle_of
from sharecore.tier.forward.lines import Lines
from sharecore.tier.forward.shapes import Entry, Fields, Key, Message
from sharecore.waiting import Steps

if TYPE_CHECKING:
    from sharecore.protocol import messages, received

_ANSWER_BYTES_MIN = 64 << 10
"""Requested even when unread responses fill the memory: the request is in flight already."""
_PURPOSES = ("fetch", "fetch beside")
"""The connections to a broker: the second serves requests while another fetch waits on the first."""
_SOON_S, _GRACE_S = 0.005, 0.05
"""The shortest wait of a repeated fetch, and how much later one of several brokers may respond."""
_MARKS = ("high_watermark", "last_stable_offset", "log_start_offset")


class _Part:
    """The part of a request for one broker.

    Attributes:
        chosen: partitions by the topic's name in the cluster.
        until: when the broker responds at the latest, in loop time.
    """

    __slots__ = ("answer", "chosen", "message", "purpose", "until")

    def __init__(self, chosen: dict[Key, list[Entry]], message: messages.FetchRequest, until: float) -> None:
        self.chosen, self.message, self.until = chosen, message, until
        self.purpose = ""
        self.answer: asyncio.Future[Message]

    def serves(self, other: _Part) -> bool:
        """Return whether its response also answers the other part."""
        mine, its = self.message, other.message
        return self.chosen == other.chosen and mine.isolation_level == its.isolation_level

    def ended_early(self, until: float) -> bool:
        """Return whether it was sent for an earlier request, and ended early without records."""
        return self.until < until - _SOON_S and self.answer.done() and self.size() == 0

    def size(self) -> int:
        """Bytes of records in its response; -1 for an error of the response or of a partition."""
        if self.answer.exception() is not None:
            return -1
        response = cast("received.FetchResponse", self.answer.result())
        if getattr(response, "error_code", 0):
            return -1
        parts = [part for topic in response.responses for part in topic.partitions]
        failed = any(part.error_code for part in parts)
        return -1 if failed else sum(len(part.records or b"") for part in parts)


@dataclass(slots=True)
class _Waiting:
    """A client's fetches in flight, and the partition state last sent to it."""

    parts: dict[int, _Part] = field(default_factory=dict)
    marks: dict[tuple[Key, int], tuple[int, int, int]] = field(default_factory=dict)


class Fetching:
    """Fetch, without sessions: every request lists its partitions, upstream too.

    Args:
        by_leader: how to split a request's partitions.
    """

    def __init__(self, by_leader: ByLeader) -> None:
        self._by_leader = by_leader
        self._clients: dict[Lines, _Waiting] = {}

    async def handle(
        self, forwarder: RequestForwarder, context: RequestContext, request: messages.FetchRequest
    ) -> Fields:
        """Forward a fetch."""
        if getattr(request, "session_epoch", FINAL_EPOCH) not in (INITIAL_EPOCH, FINAL_EPOCH):
            return {"error_code": ErrorCode.FETCH_SESSION_ID_NOT_FOUND, "responses": []}
        split = await context.finish(self._by_leader.split(forwarder, context, request))
        waiting = self._of(forwarder, context)
        loop = asyncio.get_running_loop()
        # local errors are returned at once
        until = loop.time() + (0 if split.answers else request.max_wait_ms / 1000)
        wanted = min(request.min_bytes, context.records_room())
        brokers = len(split.chosen)
        parts: dict[int, _Part] = {}
        for node, chosen in split.chosen.items():
            part = _Part(chosen, request, until)
            parts[node] = await self._begin(forwarder, context, waiting, node, part, brokers)
        while True:
            for node, part in parts.items():
                if part.ended_early(until):
                    waiting.parts.pop(node, None)
                    part = _Part(part.chosen, request, until)
                    parts[node] = await self._begin(forwarder, context, waiting, node, part, brokers)
            sizes = [part.size() for part in parts.values() if part.answer.done()]
            pending = [part.answer for part in parts.values() if not part.answer.done()]
            left_s = until + _GRACE_S - loop.time()
            if not pending or any(size < 0 for size in sizes) or (sizes and sum(sizes) >= wanted):
                break
            if left_s <= 0 and brokers > 1:
                break
            await asyncio.wait(
                pending, timeout=left_s if brokers > 1 else None, return_when=asyncio.FIRST_COMPLETED
            )
        throttle_ms = 0
        for node, part in parts.items():
            throttle_ms = max(throttle_ms, await self._take(forwarder, context, split, waiting, node, part))
        answer = await context.finish(self._answer(context, request, split, waiting))
        return {**answer, "throttle_time_ms": throttle_ms}

    def _of(self, forwarder: RequestForwarder, context: RequestContext) -> _Waiting:
        lines = forwarder.lines(context.connection, context.client_id)
        if lines not in self._clients:
            self._clients[lines] = _Waiting()
            context.connection.on_close(lambda: self._forget(lines))
        return self._clients[lines]

    def _forget(self, lines: Lines) -> None:
        self._clients.pop(lines, None)

    async def _begin(
        self,
        forwarder: RequestForwarder,
        context: RequestContext,
        waiting: _Waiting,
        node: int,
        part: _Part,
        brokers: int,
    ) -> _Part:
        """Send a fetch to a broker, unless one in flight requests the same."""
        before = waiting.parts.get(node)
        if before is not None and before.serves(part):
            return before
        request = part.message
        wait_ms = max(int((part.until - asyncio.get_running_loop().time()) * 1000), 0)
        answer_room = max(context.connection.answer_room(), _ANSWER_BYTES_MIN)
        room = min(request.max_bytes, context.broker.config.fetch_max_bytes, answer_room)
        changes = {
            "max_wait_ms": wait_ms,
            "max_bytes": max(room // brokers, 1),
            "session_id": 0,
            "session_epoch": FINAL_EPOCH,
            "forgotten_topics_data": [],
            "rack_id": "",
        }
        known = {name: value for name, value in changes.items() if name in request._fields}
        places = self._by_leader.places
        asked = as_consumer(request)._replace(**known)
        message = await context.finish(
            places.select(asked, context.api_version, part.chosen, forwarder.own.shown)
        )
        busy = before is not None and not before.answer.done() and before.purpose == _PURPOSES[0]
        part.purpose = _PURPOSES[busy]
        part.answer = forwarder.send(context, node, message, wait_ms=wait_ms, purpose=part.purpose)
        waiting.parts[node] = part
        return part

    async def _take(
        self,
        forwarder: RequestForwarder,
        context: RequestContext,
        split: Split,
        waiting: _Waiting,
        node: int,
        part: _Part,
    ) -> int:
        """Add a completed response; return the throttle time."""
        if not part.answer.done():
            return 0
        if waiting.parts.get(node) is part:
            del waiting.parts[node]
        try:
            response = part.answer.result()
            if code := getattr(response, "error_code", 0):
                raise KafkaError(code)
        except KafkaError as error:
            await context.finish(self._by_leader.lose(forwarder, split, part.chosen, error))
            return 0
        await context.finish(self._by_leader.take(forwarder, context, split, response))
        return throttle_of(response)

    def _answer(
        self, context: RequestContext, request: messages.FetchRequest, split: Split, waiting: _Waiting
    ) -> Steps[Fields]:
        """Return the response: pending partitions have no records, and the offsets last sent."""
        places, version = self._by_leader.places, context.api_version
        marks: dict[tuple[Key, int], tuple[int, int, int]] = {}
        for key, parts in places.read(request, version):
            for index, _ in parts:
                yield
                place = key, index
                found = split.answers.get(place)
                if found is None:
                    answered = waiting.marks.get(place, (-1, -1, -1))
                    split.answers[place] = {
                        "partition_index": index,
                        **dict(zip(_MARKS, answered, strict=True)),
                        "aborted_transactions": None,
                        "records": b"",
                    }
                    marks[place] = answered
                elif not isinstance(found, dict):
                    marks[place] = _marks_in(found)
        waiting.marks = marks
        return (yield from places.join(request, version, split.answers, ErrorCode.NONE))


def _marks_in(part: Message) -> tuple[int, int, int]:
    """Return a partition's offsets in a response."""
    high_watermark, last_stable_offset, log_start_offset = (getattr(part, name, -1) for name in _MARKS)
    return high_watermark, last_stable_offset, log_start_offset
