"""ShareGroupHeartbeat: members join, stay in and leave share groups, and hear what they are to fetch
(KIP-932).
"""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.coordinator.share.coordinator import Heartbeat, HeartbeatAnswer
from sharecore.errors import KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Gather, reply


def handle(context: RequestContext, request: Any) -> Result:
    context.broker.features.check_share_groups()
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    for name in request.subscribed_topic_names or ():
        context.require(Operation.DESCRIBE, ResourceType.TOPIC, name)
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
