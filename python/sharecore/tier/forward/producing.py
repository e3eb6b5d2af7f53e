"""Produce: record batches go on as they are."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from sharecore.broker.handlers.produce import may_begin
from sharecore.broker.requests.context import RequestContext
from sharecore.errors import ErrorCode
from sharecore.network import Disconnect
from sharecore.tier.forward.by_leader import ByLeader, Split
from sharecore.tier.forward.forwarder import RequestForwarder
from sharecore.waiting import exhaust

_NO_ACKNOWLEDGEMENT, _BY_THE_LEADER = 0, 1
_ATTRIBUTES_LOW = 22
_TRANSACTIONAL = 0x10
"""Where a batch says that it is of a transaction."""
_ENTRIES_AT_ONCE = 200
"""More topics and partitions are looked at in turns of the event loop, and what comes behind waits."""
_UNKNOWN_S = 1.0
"""How long a batch waits for its partition to be known here: a topic that another node has made is, soon."""


class _Turn:
    """The order of one connection, while something of it waits."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.waiting = 0


class Producing:
    """Produce.

    A client that wants no acknowledgement gets none; the leader is asked for one all the same, and the client
    loses its connection where a batch was refused, as it does with Kafka.

    Args:
        by_leader: how the partitions of a request are split.
    """

    def __init__(self, by_leader: ByLeader) -> None:
        self._by_leader = by_leader
        self._turns: dict[int, _Turn] = {}

    async def handle(
        self, forwarder: RequestForwarder, context: RequestContext, request: Any
    ) -> dict[str, Any] | None:
        """Forward a request; no answer where the client wants none."""
        refused = self._refusal(forwarder, context, request)
        if refused is not None:
            message = await context.finish(
                self._by_leader.places.join(request, context.api_version, {}, refused)
            )
        elif request.acks == _NO_ACKNOWLEDGEMENT:
            message = await self._forward(forwarder, context, request._replace(acks=_BY_THE_LEADER))
        else:
            return await self._forward(forwarder, context, request)
        if request.acks != _NO_ACKNOWLEDGEMENT:
            return message
        for topic in message["responses"]:
            for part in topic["partition_responses"]:
                code = part["error_code"] if isinstance(part, dict) else part.error_code
                if code:
                    name = ErrorCode(code).name
                    raise Disconnect(f"produce without acknowledgement failed: {name}")
        return None

    async def _forward(
        self, forwarder: RequestForwarder, context: RequestContext, request: Any
    ) -> dict[str, Any]:
        """Send the batches of one connection on in the order in which they came.

        A partition that this node does not know yet is asked for, and what comes behind waits: were the first
        batch of an idempotent producer refused and the second one sent on, the cluster would take the second
        for the producer's first, and refuse the first for ever.
        """
        by_leader, connection = self._by_leader, context.connection
        turn = self._turns.get(connection.id)
        if turn is None and _entries(request) <= _ENTRIES_AT_ONCE:
            split = exhaust(by_leader.split(forwarder, context, request))
            if not split.unknown:
                sent = exhaust(by_leader.send(forwarder, context, request, split))
                return await by_leader.end(forwarder, context, request, split, sent)
        if turn is None:
            turn = self._turns[connection.id] = _Turn()
        turn.waiting += 1
        try:
            async with turn.lock:
                split = await self._known(forwarder, context, request)
                sent = await context.finish(by_leader.send(forwarder, context, request, split))
        finally:
            turn.waiting -= 1
            if not turn.waiting:
                del self._turns[connection.id]
        return await by_leader.end(forwarder, context, request, split, sent)

    async def _known(self, forwarder: RequestForwarder, context: RequestContext, request: Any) -> Split:
        """Return the request by its leaders, once they are known; or as it is when that has taken long."""
        split = await context.finish(self._by_leader.split(forwarder, context, request))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(request.timeout_ms / 1000, _UNKNOWN_S)):
                while split.unknown:
                    await forwarder.upstream.refreshed()
                    split = await context.finish(self._by_leader.split(forwarder, context, request))
        return split

    def _refusal(
        self, forwarder: RequestForwarder, context: RequestContext, request: Any
    ) -> ErrorCode | None:
        name = request.transactional_id
        own = name is not None and forwarder.own.is_transactional_id(name)
        if own or (_is_transactional(request) and not may_begin(context, name)):
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return None


def _entries(request: Any) -> int:
    return len(request.topic_data) + sum(len(topic.partition_data) for topic in request.topic_data)


def _is_transactional(request: Any) -> bool:
    return any(
        part.records is not None
        and len(part.records) > _ATTRIBUTES_LOW
        and part.records[_ATTRIBUTES_LOW] & _TRANSACTIONAL
        for topic in request.topic_data
        for part in topic.partition_data
    )
