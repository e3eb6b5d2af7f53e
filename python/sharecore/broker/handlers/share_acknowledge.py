"""ShareAcknowledge: outcomes of records that a member holds, without fetching more (KIP-932)."""

from __future__ import annotations

import asyncio
from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.broker.share_acknowledgements import Acknowledgements
from sharecore.errors import ErrorCode, KafkaError
from sharecore.session import FINAL_EPOCH, INITIAL_EPOCH


def handle(context: RequestContext, request: Any) -> Result:
    context.broker.features.check_share_groups()
    share = context.broker.share
    share.watch(context.connection)
    if request.share_session_epoch == INITIAL_EPOCH:
        raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
    try:
        session = share.sessions.resume(request.group_id, request.member_id, request.share_session_epoch)
    except KafkaError as error:
        return {"error_code": error.code}
    acknowledgements = Acknowledgements(
        share,
        session.group_id,
        session.member_id,
        request.topics,
        may_renew=request.is_renew_ack,
    )
    if request.share_session_epoch == FINAL_EPOCH:
        share.sessions.close(session)
    lock_ms = share.partitions.config(session.group_id).share_record_lock_duration_ms
    if not acknowledgements.pending:
        return _answer(context, acknowledgements, lock_ms)
    future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    def ended() -> None:
        if not future.done():
            future.set_result(_answer(context, acknowledgements, lock_ms))

    acknowledgements.when_ended(ended)
    return future


def _answer(context: RequestContext, acknowledgements: Acknowledgements, lock_ms: int) -> dict[str, Any]:
    leader = {"leader_id": context.broker.identity.node_id, "leader_epoch": 0}
    topics: dict[Any, list[dict[str, Any]]] = {}
    for (topic_id, index), error in acknowledgements.errors.items():
        entry: dict[str, Any] = {"partition_index": index, "current_leader": leader}
        if error is not None:
            entry["error_code"] = error.code
            entry["error_message"] = (
                None if error.code is ErrorCode.INVALID_REQUEST else error.message or None
            )
        topics.setdefault(topic_id, []).append(entry)
    return {
        "acquisition_lock_timeout_ms": lock_ms,
        "responses": [
            {"topic_id": topic_id, "partitions": partitions} for topic_id, partitions in topics.items()
        ],
    }
