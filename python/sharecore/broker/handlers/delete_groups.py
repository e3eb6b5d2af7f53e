"""DeleteGroups: groups of all types, each only without members."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.broker.gather import Gather
from sharecore.coordinator.share.group import ShareGroup
from sharecore.coordinator_log.topic_log import Done
from sharecore.errors import ErrorCode, KafkaError


def handle(context: RequestContext, request: Any) -> Result:
    gather: Gather[str] = Gather(dict.fromkeys(request.groups_names))
    for group_id in gather.names:
        gather.run(group_id, _delete, context, group_id)
    return gather.answer(_answer)


def _delete(context: RequestContext, group_id: str, done: Done) -> None:
    broker = context.broker
    group = broker.groups.registry.get(group_id)
    if isinstance(group, ShareGroup):
        broker.share.groups.delete(group, done)
    else:
        broker.groups.delete(group_id, done)


def _answer(errors: dict[str, KafkaError | None]) -> dict[str, Any]:
    return {
        "results": [
            {"group_id": group_id, "error_code": ErrorCode.NONE if error is None else error.code}
            for group_id, error in errors.items()
        ]
    }
