"""Produce: record batches are forwarded unchanged."""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import TYPE_CHECKING, cast

from sharecore.broker.handlers.produce import may_begin
from sharecore.broker.requests.context import RequestContext
from sharecore.errors import ErrorCode
from sharecore.network import Disconnect
from sharecore.tier.forward.by_leader import ByLeader, Sent, Split
from sharecore.tier.forward.forwarder import RequestForwarder
from sharecore.tier.forward.sequences import Sequences
from sharecore.tier.forward.shapes import Answer, Entry, Fields, field_of, list_of
from sharecore.waiting import Steps, exhaust

if TYPE_CHECKING:
    from sharecore.protocol import messages

_NO_ACKNOWLEDGEMENT, _BY_THE_LEADER = 0, 1
_ATTRIBUTES_LOW = 22
_TRANSACTIONAL = 0x10
"""The transactional bit of a batch's attributes."""
_ENTRIES_AT_ONCE = 200
"""Larger requests are checked in several turns of the event loop, and later ones wait."""
_UNKNOWN_S = 1.0
"""How long a batch waits for an unknown partition: a topic created by another node soon becomes known."""


class _Turn:
    """The order of one connection, while a request waits."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.waiting = 0


class Producing:
    """Produce.

    With acks=0 the client gets no response; the leader is still asked for one, and the client is disconnected
    if a batch was refused, as by Kafka.

    Args:
        by_leader: how to split a request's partitions.
    """

    def __init__(self, by_leader: ByLeader) -> None:
        self._by_leader = by_leader
        self._turns: dict[int, _Turn] = {}
        self._sequences: dict[int, Sequences] = {}

    async def handle(
        self, forwarder: RequestForwarder, context: RequestContext, request: messages.ProduceRequest
    ) -> Fields | None:
        """Forward a request; return no response if the client wants none."""
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
        for topic in list_of(message, "responses"):
            for part in list_of(topic, "partition_responses"):
                if code := _code(part):
                    name = ErrorCode(code).name
                    raise Disconnect(f"produce without acknowledgement failed: {name}")
        return None

    async def _forward(
        self, forwarder: RequestForwarder, context: RequestContext, request: messages.ProduceRequest
    ) -> Fields:
        """Forward the batches of one connection in order.

        If a partition is unknown to this node, it is looked up, and later batches wait: if the first batch of
        an idempotent producer were refused and the second forwarded, the cluster would take the second for
        the producer's first, and refuse the first forever.
        """
        by_leader, connection = self._by_leader, context.connection
        turn = self._turns.get(connection.id)
        if turn is None and _entries(request) <= _ENTRIES_AT_ONCE:
            split = exhaust(by_leader.split(forwarder, context, request))
            if not split.unknown:
                sequences = exhaust(self._admit(forwarder, context, request, split))
                sent = exhaust(by_leader.send(forwarder, context, request, split))
                return await self._end(forwarder, context, request, split, sent, sequences)
        if turn is None:
            turn = self._turns[connection.id] = _Turn()
        turn.waiting += 1
        try:
            async with turn.lock:
                split = await self._known(forwarder, context, request)
                sequences = await context.finish(self._admit(forwarder, context, request, split))
                sent = await context.finish(by_leader.send(forwarder, context, request, split))
        finally:
            turn.waiting -= 1
            if not turn.waiting:
                del self._turns[connection.id]
        return await self._end(forwarder, context, request, split, sent, sequences)

    def _admit(
        self,
        forwarder: RequestForwarder,
        context: RequestContext,
        request: messages.ProduceRequest,
        split: Split,
    ) -> Steps[Sequences]:
        """Refuse batches that follow a lost one; note those that this node refuses already."""
        places, names, connection = self._by_leader.places, forwarder.own.named, context.connection
        sequences = self._sequences.get(connection.id)
        if sequences is None:
            sequences = self._sequences[connection.id] = Sequences()
            connection.on_close(partial(self._forget, connection.id))
        if split.answers:
            for name, named in places.read(request, context.api_version):
                for index, batch in named:
                    yield
                    if (answer := split.answers.get((name, index))) is not None:
                        sequences.end((name, index), _batch(batch).records, _code(answer))
        for node, chosen in list(split.chosen.items()):
            way = forwarder.way(context, node)
            for asked, parts in list(chosen.items()):
                key = names.get(asked, asked) if isinstance(asked, str) else asked
                admitted: list[Entry] = []
                for part in map(_batch, parts):
                    yield
                    if sequences.admit((key, part.index), part.records, way):
                        admitted.append(part)
                    else:
                        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                        split.refuse((key, part.index), places.refused(part.index, code), code)
                if admitted:
                    chosen[asked] = admitted
                else:
                    del chosen[asked]
            if not chosen:
                del split.chosen[node]
        return sequences

    def _forget(self, connection_id: int) -> None:
        self._sequences.pop(connection_id, None)

    async def _end(
        self,
        forwarder: RequestForwarder,
        context: RequestContext,
        request: messages.ProduceRequest,
        split: Split,
        sent: Sent,
        sequences: Sequences,
    ) -> Fields:
        """Return the answer, and note the outcome of each batch that was sent."""
        message = await self._by_leader.end(forwarder, context, request, split, sent)
        await context.finish(self._note(forwarder, split, sent, sequences))
        return message

    def _note(
        self, forwarder: RequestForwarder, split: Split, sent: Sent, sequences: Sequences
    ) -> Steps[None]:
        names = forwarder.own.named
        for chosen, _ in sent:
            for asked, parts in chosen.items():
                key = names.get(asked, asked) if isinstance(asked, str) else asked
                for part in map(_batch, parts):
                    yield
                    answer = split.answers.get((key, part.index))
                    code = ErrorCode.UNKNOWN_SERVER_ERROR if answer is None else _code(answer)
                    sequences.end((key, part.index), part.records, code)

    async def _known(
        self, forwarder: RequestForwarder, context: RequestContext, request: messages.ProduceRequest
    ) -> Split:
        """Return the request split by leader, once the leaders are known or the wait has timed out."""
        split = await context.finish(self._by_leader.split(forwarder, context, request))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(request.timeout_ms / 1000, _UNKNOWN_S)):
                while split.unknown:
                    await forwarder.upstream.refreshed()
                    split = await context.finish(self._by_leader.split(forwarder, context, request))
        return split

    def _refusal(
        self, forwarder: RequestForwarder, context: RequestContext, request: messages.ProduceRequest
    ) -> ErrorCode | None:
        name = request.transactional_id
        own = name is not None and forwarder.own.is_transactional_id(name)
        if own or (_is_transactional(request) and not may_begin(context, name)):
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return None


def _batch(part: Entry) -> messages.PartitionProduceData:
    return cast("messages.PartitionProduceData", part)


def _code(part: Answer) -> int:
    return field_of(part, "error_code", int)


def _entries(request: messages.ProduceRequest) -> int:
    return len(request.topic_data) + sum(len(topic.partition_data) for topic in request.topic_data)


def _is_transactional(request: messages.ProduceRequest) -> bool:
    return any(
        part.records is not None
        and len(part.records) > _ATTRIBUTES_LOW
        and part.records[_ATTRIBUTES_LOW] & _TRANSACTIONAL
        for topic in request.topic_data
        for part in topic.partition_data
    )
