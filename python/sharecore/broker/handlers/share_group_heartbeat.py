"""ShareGroupHeartbeat: members join, stay in and leave share groups, and hear what they are to fetch
(KIP-932).
"""

from __future__ import annotations

import asyncio
from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.coordinator.share.coordinator import Heartbeat, HeartbeatAnswer
from sharecore.errors import KafkaError


def handle(context: RequestContext, request: Any) -> Result:
    context.broker.features.check_share_groups()
    heartbeat = Heartbeat(
        request.group_id,
        request.member_id,
        request.member_epoch,
        request.rack_id,
        request.subscribed_topic_names,
        context.client_id or "",
        f"/{context.connection.peer_host}",
    )
    answers: list[HeartbeatAnswer | KafkaError] = []
    future: asyncio.Future[dict[str, Any]] | None = None

    def answered(answer: HeartbeatAnswer | KafkaError) -> None:
        if future is None:
            answers.append(answer)
        elif not future.done():
            if isinstance(answer, KafkaError):
                future.set_exception(answer)
            else:
                future.set_result(_answer(answer))

    context.broker.share.groups.heartbeat(heartbeat, answered)
    if not answers:
        future = asyncio.get_running_loop().create_future()
        return future
    if isinstance(answers[0], KafkaError):
        raise answers[0]
    return _answer(answers[0])


def _answer(answer: HeartbeatAnswer) -> dict[str, Any]:
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
