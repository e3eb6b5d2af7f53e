"""OffsetCommit: commits consumer offsets."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.broker.offsets import answer_commit, read_commits, refuse_all
from sharecore.coordinator.commits import CommitRequest
from sharecore.coordinator.offset_records import NO_TIME
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Gather, Steps

_IDS_SINCE = 10


def handle(context: RequestContext, request: Any) -> Result:
    by_id = context.api_version >= _IDS_SINCE
    retention_ms = getattr(request, "retention_time_ms", NO_TIME)
    expire_ms = NO_TIME if retention_ms == NO_TIME else context.broker.clock.now_ms() + retention_ms
    if not context.may(Operation.READ, ResourceType.GROUP, request.group_id):
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return context.run(refuse_all(request.topics, code, by_id=by_id))
    return context.run(_commit(context, request, expire_ms, by_id=by_id))


def _commit(context: RequestContext, request: Any, expire_ms: int, *, by_id: bool) -> Steps[Result]:
    commits = yield from read_commits(context, request.topics, by_id=by_id, expire_ms=expire_ms)

    def answer(error: KafkaError | None) -> Steps[dict[str, Any]]:
        return answer_commit(request.topics, commits, error.code if error else None, by_id=by_id)

    if commits.is_empty:
        # the coordinator has nothing to commit
        return (yield from answer(None))
    wanted = CommitRequest(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id_or_member_epoch,
        context.api_version,
        commits.taken,
    )
    gather: Gather[None] = Gather()
    gather.run(None, context.broker.groups.commits.commit, wanted)
    return context.broker.turns.after(gather, lambda: answer(gather.outcomes[None]))
