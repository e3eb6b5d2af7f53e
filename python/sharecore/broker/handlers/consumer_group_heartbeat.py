"""ConsumerGroupHeartbeat: joins, state reports and assignments of consumer-group members (KIP-848)."""

from __future__ import annotations

from functools import partial
from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.coordinator.consumer import Heartbeat, HeartbeatAnswer, by_topic
from sharecore.coordinator.expressions import fault_of, is_quick
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Later, Steps, outcome, promise

_OWN_ID_SINCE = 1


def handle(context: RequestContext, request: Any) -> Result:
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
    if not context.broker.features.has_consumer_groups:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if context.api_version >= _OWN_ID_SINCE and not request.member_id.strip():
        raise KafkaError(ErrorCode.INVALID_REQUEST, "MemberId can't be empty.")
    owned = request.topic_partitions
    heartbeat = Heartbeat(
        group_id=request.group_id,
        member_id=request.member_id,
        epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        subscribed_names=request.subscribed_topic_names,
        subscribed_regex=request.subscribed_topic_regex,
        server_assignor=request.server_assignor,
        owned=(
            None
            if owned is None
            else frozenset((each.topic_id, partition) for each in owned for partition in each.partitions)
        ),
        lists_topics=bool(owned),
        client_id=context.client_id or "",
        client_host=f"/{context.connection.peer_host}",
        may_describe=lambda topic: context.may(Operation.DESCRIBE, ResourceType.TOPIC, topic, quiet=True),
    )

    if heartbeat.subscribed_regex and not is_quick((heartbeat.subscribed_regex,)):
        return _beat_after_a_look(context, heartbeat)
    return _beat(context, heartbeat)


async def _beat_after_a_look(context: RequestContext, heartbeat: Heartbeat) -> Any:
    """Validate a long expression in a thread before the heartbeat."""
    look = partial(fault_of, heartbeat.subscribed_regex or "")
    fault = await context.broker.long_work.run(context.connection.owner, look)
    return await outcome(_beat(context, heartbeat._replace(expression_fault=fault)))


def _beat(context: RequestContext, heartbeat: Heartbeat) -> Later[dict[str, Any]]:
    def answer(result: HeartbeatAnswer | KafkaError) -> dict[str, Any]:
        if isinstance(result, KafkaError):
            return {"error_code": result.code, "error_message": result.message or None}
        assignment = None
        if result.assigned is not None:
            assignment = {
                "topic_partitions": [
                    {"topic_id": topic_id, "partitions": partitions}
                    for topic_id, partitions in by_topic(result.assigned).items()
                ]
            }
        return {
            "member_id": result.member_id,
            "member_epoch": result.epoch,
            "heartbeat_interval_ms": result.heartbeat_ms,
            "assignment": assignment,
        }

    return promise(lambda done: context.broker.groups.consumer.heartbeat(heartbeat, done), answer)
