"""Fetch: one request of a client becomes one at each broker that leads some of its partitions.

The client is answered when one of them has something. The others go on waiting at their brokers: what they
bring is the client's next answer, if it still asks for the same.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from sharecore.broker.requests.context import RequestContext
from sharecore.errors import ErrorCode, KafkaError
from sharecore.session import FINAL_EPOCH, INITIAL_EPOCH
from sharecore.tier.forward.by_leader import ByLeader
from sharecore.tier.forward.consumer_fields import as_consumer
from sharecore.tier.forward.forwarder import RequestForwarder, throttle_of
from sharecore.tier.forward.lines import Lines
from sharecore.tier.forward.shapes import Key
from sharecore.waiting import Steps

_ANSWER_BYTES_MIN = 64 << 10
"""Asked for even where answers that nobody reads fill the memory: the request is under way already."""
_PURPOSES = ("fetch", "fetch beside")
"""Of the connections to a broker: the second serves what is asked while another fetch waits on the first."""
_SOON_S, _GRACE_S = 0.005, 0.05
"""No broker is asked again for less than that; so much later than asked for one of several may answer."""
_MARKS = ("high_watermark", "last_stable_offset", "log_start_offset")


class _Part:
    """What one broker is asked.

    Attributes:
        chosen: partitions by topic, as the cluster names it.
        until: when the broker answers at the latest, on the clock of the event loop.
    """

    __slots__ = ("answer", "chosen", "message", "purpose", "until")

    def __init__(self, chosen: dict[Key, list[Any]], message: Any, until: float) -> None:
        self.chosen, self.message, self.until = chosen, message, until
        self.purpose = ""
        self.answer: asyncio.Future[Any]

    def serves(self, other: _Part) -> bool:
        """Whether its answer is one to the other's question, too."""
        mine, its = self.message, other.message
        return self.chosen == other.chosen and mine.isolation_level == its.isolation_level

    def ended_early(self, until: float) -> bool:
        """Whether it was begun for an earlier request, and ended before this one's time with no record."""
        return self.until < until - _SOON_S and self.answer.done() and self.size() == 0

    def size(self) -> int:
        """Bytes of records in its answer; -1 where it is an error, or one of a partition."""
        if self.answer.exception() is not None:
            return -1
        response: Any = self.answer.result()
        if getattr(response, "error_code", 0):
            return -1
        parts = [part for topic in response.responses for part in topic.partitions]
        failed = any(part.error_code for part in parts)
        return -1 if failed else sum(len(part.records or b"") for part in parts)


@dataclass(slots=True)
class _Waiting:
    """The fetches of a client that are under way, and what it was told last of partitions."""

    parts: dict[int, _Part] = field(default_factory=dict)
    marks: dict[tuple[Key, int], tuple[int, int, int]] = field(default_factory=dict)


class Fetching:
    """Fetch, without sessions: every request names its partitions, upstream's as well.

    Args:
        by_leader: how the partitions of a request are split.
    """

    def __init__(self, by_leader: ByLeader) -> None:
        self._by_leader = by_leader
        self._clients: dict[Lines, _Waiting] = {}

    async def handle(
        self, forwarder: RequestForwarder, context: RequestContext, request: Any
    ) -> dict[str, Any]:
        """Forward a fetch."""
        if getattr(request, "session_epoch", FINAL_EPOCH) not in (INITIAL_EPOCH, FINAL_EPOCH):
            return {"error_code": ErrorCode.FETCH_SESSION_ID_NOT_FOUND, "responses": []}
        split = await context.finish(self._by_leader.split(forwarder, context, request))
        waiting = self._of(forwarder, context)
        loop = asyncio.get_running_loop()
        # what is refused here is told at once
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
        """Asks a broker, unless a request that is under way there asks for the same."""
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
        split: Any,
        waiting: _Waiting,
        node: int,
        part: _Part,
    ) -> int:
        """Take in an answer that is there; return for how long the client is throttled."""
        if not part.answer.done():
            return 0
        if waiting.parts.get(node) is part:
            del waiting.parts[node]
        try:
            response = part.answer.result()
            if getattr(response, "error_code", 0):
                raise KafkaError(response.error_code)
        except KafkaError as error:
            await context.finish(self._by_leader.lose(forwarder, split, part.chosen, error))
            return 0
        await context.finish(self._by_leader.take(forwarder, context, split, response))
        return throttle_of(response)

    def _answer(
        self, context: RequestContext, request: Any, split: Any, waiting: _Waiting
    ) -> Steps[dict[str, Any]]:
        """Return the answer: what is not there yet has no records, and the ends that were told last."""
        places, version = self._by_leader.places, context.api_version
        marks: dict[tuple[Key, int], tuple[int, int, int]] = {}
        for key, parts in places.read(request, version):
            for index, _ in parts:
                yield
                place = key, index
                found = split.answers.get(place)
                if found is None:
                    told = waiting.marks.get(place, (-1, -1, -1))
                    split.answers[place] = {
                        "partition_index": index,
                        **dict(zip(_MARKS, told, strict=True)),
                        "aborted_transactions": None,
                        "records": b"",
                    }
                    marks[place] = told
                elif not isinstance(found, dict):
                    marks[place] = _marks_in(found)
        waiting.marks = marks
        return (yield from places.join(request, version, split.answers, ErrorCode.NONE))


def _marks_in(part: Any) -> tuple[int, int, int]:
    """Return what an answer tells of a partition's ends."""
    high_watermark, last_stable_offset, log_start_offset = (getattr(part, name, -1) for name in _MARKS)
    return high_watermark, last_stable_offset, log_start_offset
