"""Produce: record batches go on as they are."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.broker.handlers.produce import may_begin
from sharecore.errors import ErrorCode
from sharecore.network import Disconnect
from sharecore.tier.forward.by_leader import ByLeader
from sharecore.tier.forward.desk import Desk

_NO_ACKNOWLEDGEMENT, _BY_THE_LEADER = 0, 1
_ATTRIBUTES_LOW = 22
_TRANSACTIONAL = 0x10
"""Where a batch says that it is of a transaction."""


class Producing:
    """Produce.

    A client that wants no acknowledgement gets none; the leader is asked for one all the same, and the client
    loses its connection where a batch was refused, as it does with Kafka.

    Args:
        by_leader: how the partitions of a request are split.
    """

    def __init__(self, by_leader: ByLeader) -> None:
        self._by_leader = by_leader

    async def handle(self, desk: Desk, context: RequestContext, request: Any) -> dict[str, Any] | None:
        """Forwards a request; no answer where the client wants none."""
        refused = self._refusal(desk, context, request)
        if refused is not None:
            message = self._by_leader.places.join(request, context.api_version, {}, refused)
        elif request.acks == _NO_ACKNOWLEDGEMENT:
            acknowledged = request._replace(acks=_BY_THE_LEADER)
            message = await self._by_leader.handle(desk, context, acknowledged)
        else:
            return await self._by_leader.handle(desk, context, request)
        if request.acks != _NO_ACKNOWLEDGEMENT:
            return message
        for topic in message["responses"]:
            for part in topic["partition_responses"]:
                code = part["error_code"] if isinstance(part, dict) else part.error_code
                if code:
                    name = ErrorCode(code).name
                    raise Disconnect(f"produce without acknowledgement failed: {name}")
        return None

    def _refusal(self, desk: Desk, context: RequestContext, request: Any) -> ErrorCode | None:
        name = request.transactional_id
        own = name is not None and desk.own.is_transactional_id(name)
        if own or (_is_transactional(request) and not may_begin(context, name)):
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return None


def _is_transactional(request: Any) -> bool:
    return any(
        part.records is not None
        and len(part.records) > _ATTRIBUTES_LOW
        and part.records[_ATTRIBUTES_LOW] & _TRANSACTIONAL
        for topic in request.topic_data
        for part in topic.partition_data
    )
