"""ShareAcknowledge: outcomes of records that a member holds, without fetching more (KIP-932)."""

from __future__ import annotations

from functools import partial
from typing import Any

from sharecore._core import ShareAnswer
from sharecore.broker.context import RequestContext, Result
from sharecore.broker.share_acknowledgements import acknowledge
from sharecore.broker.share_rights import check_share_group, may_read
from sharecore.errors import ErrorCode, KafkaError
from sharecore.session import FINAL_EPOCH, INITIAL_EPOCH, SharePartitionId
from sharecore.waiting import Gather, reply


def handle(context: RequestContext, request: Any) -> Result:
    check_share_group(context, request.group_id)
    share = context.broker.share
    if request.share_session_epoch == INITIAL_EPOCH:
        raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
    try:
        session = share.sessions.resume(request.group_id, request.member_id, request.share_session_epoch)
    except KafkaError as error:
        return {"error_code": error.code}
    gather: Gather[SharePartitionId] = Gather()
    acknowledge(
        share,
        session,
        request.topics,
        gather,
        may_renew=request.is_renew_ack,
        may_read=partial(may_read, context),
    )
    if request.share_session_epoch == FINAL_EPOCH:
        share.sessions.close(session)
    lock_ms = share.partitions.config(session.group_id).share_record_lock_duration_ms
    answer = ShareAnswer(context.broker.cluster, context.connection.listener, lock_ms)

    def ended() -> ShareAnswer:
        answer.acknowledged(gather.outcomes)
        return answer.message()

    return reply(gather, ended)
