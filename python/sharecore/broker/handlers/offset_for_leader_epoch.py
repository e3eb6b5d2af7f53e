"""OffsetForLeaderEpoch: the only leader of each partition has epoch 0."""

from __future__ import annotations

from typing import Any

from sharecore.broker.cluster import NO_EPOCH
from sharecore.broker.context import RequestContext, Result
from sharecore.errors import ErrorCode
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Steps

_EPOCH = 0


def handle(context: RequestContext, request: Any) -> Result:
    return context.run(_look_up(context, request))


def _look_up(context: RequestContext, request: Any) -> Steps[dict[str, Any]]:
    # a replica may request all of them
    sees_all = context.may(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, quiet=True)
    names = () if sees_all else (topic.topic for topic in request.topics)
    seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.TOPIC, names)
    topics = []
    for topic in request.topics:
        partitions = []
        for asked in topic.partitions:
            partitions.append(_answer(context, topic.topic, asked, seen=sees_all or topic.topic in seen))
            yield
        topics.append({"topic": topic.topic, "partitions": partitions})
        yield
    return {"topics": topics}


def _answer(context: RequestContext, name: str, asked: Any, *, seen: bool) -> dict[str, Any]:
    answer = {"partition": asked.partition, "leader_epoch": -1, "end_offset": -1}
    if not seen:
        return answer | {"error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    log = context.broker.topics.log(name, asked.partition)
    if log is None:
        answer["error_code"] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    elif asked.current_leader_epoch > _EPOCH:
        answer["error_code"] = ErrorCode.UNKNOWN_LEADER_EPOCH
    elif asked.current_leader_epoch < NO_EPOCH:
        answer["error_code"] = ErrorCode.FENCED_LEADER_EPOCH
    elif asked.leader_epoch == _EPOCH:
        answer.update(leader_epoch=_EPOCH, end_offset=log.high_watermark)
    return answer
