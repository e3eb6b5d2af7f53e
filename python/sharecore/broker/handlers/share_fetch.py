"""ShareFetch: acknowledges what a member has processed, then leases more records to it (KIP-932)."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

from sharecore.broker.context import RequestContext, Result
from sharecore.broker.share_fetching import RECORD_LIMIT, ShareFetching, acknowledges
from sharecore.broker.share_rights import check_share_group
from sharecore.errors import ErrorCode, KafkaError
from sharecore.session import FINAL_EPOCH, INITIAL_EPOCH, ShareSession


def handle(context: RequestContext, request: Any) -> Result:
    check_share_group(context, request.group_id)
    try:
        _check(request)
        session = _session(context, request)
        _check_mode(request, session)
    except KafkaError as error:
        if error.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            return _refuse_slowly(request, error)
        return {"error_code": error.code}
    return ShareFetching(context, request, session).begin()


def _check(request: Any) -> None:
    """What is refused before the session takes notice of the request."""
    if request.is_renew_ack and (
        request.max_wait_ms > 0 or request.min_bytes > 0 or request.max_bytes > 0 or request.max_records > 0
    ):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a request that renews locks must not ask for records")
    if request.share_session_epoch == INITIAL_EPOCH and acknowledges(request):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the first request of a session acknowledges nothing")


def _check_mode(request: Any, session: ShareSession) -> None:
    """What is refused where there is something to fetch; the session has taken notice of the request."""
    if request.share_session_epoch == FINAL_EPOCH or not session.partitions:
        return
    if not 0 <= request.share_acquire_mode <= RECORD_LIMIT:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"there is no acquire mode {request.share_acquire_mode}")


def _session(context: RequestContext, request: Any) -> ShareSession:
    """The session as this request leaves it: partitions added and forgotten."""
    sessions, epoch = context.broker.share.sessions, request.share_session_epoch
    if epoch == INITIAL_EPOCH:
        context.broker.share.watch(context.connection)
        session = sessions.open(request.group_id, request.member_id, context.connection)
    else:
        session = sessions.resume(request.group_id, request.member_id, epoch)
    for topic in request.topics:
        topic_id = topic.topic_id or UUID(int=0)
        session.add((topic_id, partition.partition_index) for partition in topic.partitions)
    if epoch == INITIAL_EPOCH:
        return session  # there is nothing to forget yet
    for topic in request.forgotten_topics_data:
        session.forget((topic.topic_id or UUID(int=0), index) for index in topic.partitions)
    return session


async def _refuse_slowly(request: Any, error: KafkaError) -> dict[str, Any]:
    """Delays the answer: a client tries again at once, and would keep the broker busy."""
    await asyncio.sleep(max(request.max_wait_ms, 0) / 1000)
    return {"error_code": error.code}
