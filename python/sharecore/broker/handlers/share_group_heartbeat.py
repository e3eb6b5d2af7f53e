"""ShareGroupHeartbeat: joins, heartbeats and assignments of share-group members (KIP-932)."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.coordinator.share.coordinator import Heartbeat, HeartbeatAnswer
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Gather, Steps, reply


def handle(context: RequestContext, request: Any) -> Result:
    context.broker.features.check_share_groups()
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    if request.subscribed_topic_names:
        return context.run(_subscribe(context, request))
    return _heartbeat(context, request)


def _subscribe(context: RequestContext, request: Any) -> Steps[Result]:
    names = request.subscribed_topic_names
    seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.TOPIC, names)
    if not all(name in seen for name in names):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return _heartbeat(context, request)


def _heartbeat(context: RequestContext, request: Any) -> Result:
    heartbeat = Heartbeat(
        request.group_id,
        request.member_id,
        request.member_epoch,
        request.rack_id,
        request.subscribed_topic_names,
        context.client_id or "",
        f"/{context.connection.peer_host}",
    )
    gather: Gather[None] = Gather()
    gather.run(None, context.broker.share.groups.heartbeat, heartbeat)
    return reply(gather, lambda: _answer(gather.outcomes[None]))


def _answer(answer: HeartbeatAnswer | KafkaError) -> dict[str, Any]:
    if isinstance(answer, KafkaError):
        raise answer
    assignment = answer.assignment
    return {
        "member_id": answer.member_id,
        "member_epoch": answer.member_epoch,
        "heartbeat_interval_ms": answer.heartbeat_ms,
        "assignment": None
        if assignment is None
        else {
            "topic_partitions": [
                {"topic_id": topic_id, "partitions": partitions}
                for topic_id, partitions in assignment.items()
            ]
        },
    }
