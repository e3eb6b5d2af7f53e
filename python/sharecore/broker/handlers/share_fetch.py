"""ShareFetch: acknowledges what a member has processed, then leases more records to it (KIP-932).

Acknowledgements begin first; the fetch goes on while they become durable, and the answer leaves when both
have ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from sharecore.broker.context import RequestContext, Result
from sharecore.broker.share_acknowledgements import acknowledge
from sharecore.broker.share_answer import ShareAnswer
from sharecore.broker.share_rights import may_read, split
from sharecore.errors import ErrorCode, KafkaError
from sharecore.partition import FetchLimits, PartitionFetch, ShareFetch
from sharecore.security.acl import Operation, ResourceType
from sharecore.session import FINAL_EPOCH, INITIAL_EPOCH, SharePartitionId, ShareSession
from sharecore.waiting import Gather, reply

_RECORD_LIMIT = 1


def handle(context: RequestContext, request: Any) -> Result:
    context.broker.features.check_share_groups()
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    try:
        _check(request)
        session = _session(context, request)
    except KafkaError as error:
        if error.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            return _refuse_slowly(request, error)
        return {"error_code": error.code}
    return _Call(context, request, session).begin()


def _check(request: Any) -> None:
    """What is refused before the session takes notice of the request."""
    if not 0 <= request.share_acquire_mode <= _RECORD_LIMIT:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"there is no acquire mode {request.share_acquire_mode}")
    if request.is_renew_ack and (
        request.max_wait_ms > 0 or request.min_bytes > 0 or request.max_bytes > 0 or request.max_records > 0
    ):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a request that renews locks must not ask for records")
    if request.share_session_epoch == INITIAL_EPOCH and any(
        partition.acknowledgement_batches for topic in request.topics for partition in topic.partitions
    ):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the first request of a session acknowledges nothing")


def _session(context: RequestContext, request: Any) -> ShareSession:
    """The session as this request leaves it: partitions added and forgotten."""
    context.broker.share.watch(context.connection)
    sessions, epoch = context.broker.share.sessions, request.share_session_epoch
    if epoch == INITIAL_EPOCH:
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
    """The client tries again at once: that it may not keep the broker busy, the answer takes its time."""
    await asyncio.sleep(max(request.max_wait_ms, 0) / 1000)
    return {"error_code": error.code}


class _Call:
    """One ShareFetch on its way: its acknowledgements, and its fetch under the name None."""

    def __init__(self, context: RequestContext, request: Any, session: ShareSession) -> None:
        self._context = context
        self._node_id = context.broker.identity.node_id
        self._share = context.broker.share
        self._request = request
        self._session = session
        self._gather: Gather[SharePartitionId | None] = Gather()
        self._refused: dict[SharePartitionId, KafkaError] = {}
        self._fetched: Sequence[PartitionFetch] = ()
        self._fetch: ShareFetch | None = None

    def begin(self) -> Result:
        """Answers at once where that is possible."""
        request, session = self._request, self._session
        acknowledge(
            self._share,
            session.group_id,
            session.member_id,
            request.topics,
            self._gather,
            may_renew=request.is_renew_ack,
            may_read=partial(may_read, self._context),
        )
        if request.share_session_epoch == FINAL_EPOCH:
            self._share.sessions.close(session)
        else:
            self._gather.run(None, self._begin_fetch)
        answer = reply(self._gather, self._answer)
        if isinstance(answer, asyncio.Future):
            session.fetches[self] = None
            answer.add_done_callback(self._done)
        return answer

    def _begin_fetch(self, done: Callable[[None], None]) -> None:
        request, session = self._request, self._session
        partitions = session.rotation()
        hidden: dict[SharePartitionId, KafkaError] = {}
        if self._context.broker.authorizer is not None:
            partitions, hidden = split(self._context, partitions)
        leaders, self._refused = self._share.partitions.get_all(session.group_id, partitions)
        self._refused |= hidden
        limits = FetchLimits(
            request.max_wait_ms if leaders else 0,
            request.min_bytes,
            request.max_bytes,
            request.max_records,
            request.batch_size,
            request.share_acquire_mode == _RECORD_LIMIT,
        )

        def ended(fetched: list[PartitionFetch]) -> None:
            self._fetch = None  # each holds the other: a cycle a fetch is work for the collector
            self._fetched = fetched
            for each in fetched:
                if each.acquired:
                    session.touched.add((each.partition.key.topic_id, each.partition.key.partition))
            done(None)

        fetch = ShareFetch(session.member_id, leaders, limits, asyncio.get_running_loop().call_later, ended)
        fetched = fetch.begin()
        if fetched is None:
            self._fetch = fetch
        else:
            ended(fetched)

    def abandon(self) -> None:
        """The session has ended: the answer is what there is."""
        if self._fetch is not None:
            self._fetch.end([])

    def _done(self, future: asyncio.Future[dict[str, Any]]) -> None:
        self._session.fetches.pop(self, None)
        if future.cancelled() and self._fetch is not None:
            self._fetch.cancel()
            self._fetch = None

    def _answer(self) -> dict[str, Any]:
        group_id = self._session.group_id
        partitions = self._share.partitions
        answer = ShareAnswer(self._node_id, partitions.config(group_id).share_record_lock_duration_ms)
        failed, served = list(self._refused), []
        for fetched in self._fetched:
            partition = fetched.partition.key.topic_id, fetched.partition.key.partition
            acquired = [
                {"first_offset": first, "last_offset": last, "delivery_count": count}
                for first, last, count in fetched.acquired
            ]
            answer.name(partition, records=fetched.records, acquired_records=acquired)
            if acquired:
                served.append(partition)
            if fetched.error is not None:
                answer.refuse(partition, fetched.error)
                failed.append(partition)
        for partition, error in self._refused.items():
            answer.refuse(partition, error)
        if self._request.max_records > 0 and self._request.max_bytes > 0:
            for partition in self._session.unreported:
                if partitions.can_acquire(group_id, *partition):
                    answer.name(partition)
        self._session.report(answer.partitions, failed, served)
        for name, error in self._gather.outcomes.items():
            if name is not None:
                answer.name(name)
                if error is not None:
                    answer.refuse(name, error, "acknowledge_")
        for entry in answer.partitions.values():
            entry.setdefault("records", b"")
        return answer.message()
