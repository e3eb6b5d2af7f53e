"""DeleteGroups: deletes groups of any type without members."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.coordinator.share.group import ShareGroup
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Done, Gather, Steps, reply


def handle(context: RequestContext, request: Any) -> Result:
    return context.run(_delete_all(context, request))


def _delete_all(context: RequestContext, request: Any) -> Steps[Result]:
    names = dict.fromkeys(request.groups_names)
    deletable = yield from context.may_each(Operation.DELETE, ResourceType.GROUP, names)
    gather: Gather[str] = Gather(names)
    for group_id in names:
        if group_id in deletable:
            gather.run(group_id, _delete, context, group_id)
        else:
            gather.put(group_id, KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED))
        yield
    return reply(gather, lambda: _answer(gather.outcomes))


def _delete(context: RequestContext, group_id: str, done: Done) -> None:
    broker = context.broker
    broker.cluster.check_coordinator(group_id)
    group = broker.groups.registry.get(group_id)
    if isinstance(group, ShareGroup):
        broker.share.delete_group(group, done)
    else:
        broker.groups.delete(group_id, done)


def _answer(errors: dict[str, KafkaError | None]) -> dict[str, Any]:
    return {
        "results": [
            {"group_id": group_id, "error_code": ErrorCode.NONE if error is None else error.code}
            for group_id, error in errors.items()
        ]
    }
