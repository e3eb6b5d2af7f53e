"""OffsetForLeaderEpoch: the one leader there ever was has epoch 0."""

from __future__ import annotations

from typing import Any

from sharecore.broker.cluster import NO_EPOCH
from sharecore.broker.context import RequestContext
from sharecore.errors import ErrorCode
from sharecore.security.acl import Operation, ResourceType

_EPOCH = 0


def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    return {
        "topics": [
            {
                "topic": topic.topic,
                "partitions": [_answer(context, topic.topic, asked) for asked in topic.partitions],
            }
            for topic in request.topics
        ]
    }


def _answer(context: RequestContext, name: str, asked: Any) -> dict[str, Any]:
    answer = {"partition": asked.partition, "leader_epoch": -1, "end_offset": -1}
    log = context.broker.topics.log(name, asked.partition)
    # a replica may ask for all of them
    if not context.may(Operation.CLUSTER_ACTION, ResourceType.CLUSTER) and not context.may(
        Operation.DESCRIBE, ResourceType.TOPIC, name
    ):
        answer["error_code"] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    elif log is None:
        answer["error_code"] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    elif asked.current_leader_epoch > _EPOCH:
        answer["error_code"] = ErrorCode.UNKNOWN_LEADER_EPOCH
    elif asked.current_leader_epoch < NO_EPOCH:
        answer["error_code"] = ErrorCode.FENCED_LEADER_EPOCH
    elif asked.leader_epoch == _EPOCH:
        answer.update(leader_epoch=_EPOCH, end_offset=log.high_watermark)
    return answer
