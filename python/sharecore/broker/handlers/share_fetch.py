"""ShareFetch: acknowledges what a member has processed, then leases more records to it (KIP-932).

Acknowledgements begin first; the fetch goes on while they become durable, and the answer leaves when both
have ended.
"""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

from sharecore.broker.context import RequestContext, Result
from sharecore.broker.share_acknowledgements import Acknowledgements
from sharecore.errors import ErrorCode, KafkaError
from sharecore.partition import FetchLimits, PartitionFetch, ShareFetch
from sharecore.session import FINAL_EPOCH, INITIAL_EPOCH, SharePartitionId, ShareSession

_RECORD_LIMIT = 1


def handle(context: RequestContext, request: Any) -> Result:
    context.broker.features.check_share_groups()
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
    """One ShareFetch on its way."""

    def __init__(self, context: RequestContext, request: Any, session: ShareSession) -> None:
        self._context = context
        self._request = request
        self._session = session
        self._share = context.broker.share
        self._refused: dict[SharePartitionId, KafkaError] = {}
        self._fetched: list[PartitionFetch] | None = None
        self._fetch: ShareFetch | None = None
        self._future: asyncio.Future[dict[str, Any]] | None = None

    def begin(self) -> Result:
        """Answers at once where that is possible."""
        request, session = self._request, self._session
        self._acknowledgements = Acknowledgements(
            self._share,
            session.group_id,
            session.member_id,
            request.topics,
            may_renew=request.is_renew_ack,
        )
        if request.share_session_epoch == FINAL_EPOCH:
            self._share.sessions.close(session)
            self._fetched = []
        else:
            self._start_fetch()
        if self._fetched is not None and not self._acknowledgements.pending:
            return self._answer()
        self._future = asyncio.get_running_loop().create_future()
        self._future.add_done_callback(self._done)
        session.fetches[self] = None
        if self._acknowledgements.pending:
            self._acknowledgements.when_ended(self._part_ended)
        return self._future

    def _start_fetch(self) -> None:
        request, session = self._request, self._session
        leaders, self._refused = self._share.partitions.get_all(session.group_id, session.rotation())
        limits = FetchLimits(
            request.max_wait_ms if leaders else 0,
            request.min_bytes,
            request.max_bytes,
            request.max_records,
            request.batch_size,
            request.share_acquire_mode == _RECORD_LIMIT,
        )
        loop = asyncio.get_running_loop()
        fetch = ShareFetch(session.member_id, leaders, limits, loop.call_later, self._fetch_ended)
        self._fetched = fetch.start()
        if self._fetched is not None:
            self._touch()
        else:
            self._fetch = fetch

    def _fetch_ended(self, fetched: list[PartitionFetch]) -> None:
        self._fetched = fetched
        self._fetch = None  # each holds the other: a cycle a fetch is work for the collector
        self._touch()
        self._part_ended()

    def _touch(self) -> None:
        for fetched in self._fetched or ():
            if fetched.acquired:
                self._session.touched.add((fetched.partition.key.topic_id, fetched.partition.key.partition))

    def _part_ended(self) -> None:
        future = self._future
        if (
            future is not None
            and not future.done()
            and self._fetched is not None
            and not self._acknowledgements.pending
        ):
            future.set_result(self._answer())

    def abandon(self) -> None:
        """The session has ended: the answer is what there is."""
        self._cancel_fetch()
        if self._fetched is None:
            self._fetched = []
        self._part_ended()

    def _done(self, future: asyncio.Future[dict[str, Any]]) -> None:
        self._session.fetches.pop(self, None)
        if future.cancelled():
            self._cancel_fetch()

    def _cancel_fetch(self) -> None:
        if self._fetch is not None:
            self._fetch.cancel()
            self._fetch = None

    def _answer(self) -> dict[str, Any]:
        leader = {"leader_id": self._context.broker.identity.node_id, "leader_epoch": 0}
        entries: dict[SharePartitionId, dict[str, Any]] = {}
        for fetched in self._fetched or ():
            key = fetched.partition.key
            entry: dict[str, Any] = {
                "records": fetched.records,
                "acquired_records": [
                    {"first_offset": first, "last_offset": last, "delivery_count": count}
                    for first, last, count in fetched.acquired
                ],
            }
            if fetched.error is not None:
                entry["error_code"] = fetched.error.code
                entry["error_message"] = fetched.error.message or None
            entries[key.topic_id, key.partition] = entry
        for partition, error in self._refused.items():
            entries[partition] = {"error_code": error.code, "error_message": error.message or None}
        if self._request.max_records > 0 and self._request.max_bytes > 0:
            for partition in self._session.unreported:
                if self._share.partitions.can_acquire(self._session.group_id, *partition):
                    entries.setdefault(partition, {})
        self._session.report(entries, [key for key, entry in entries.items() if "error_code" in entry])
        for partition, failure in self._acknowledgements.errors.items():
            entry = entries.setdefault(partition, {})
            if failure is not None:
                entry["acknowledge_error_code"] = failure.code
                entry["acknowledge_error_message"] = failure.message or None
        topics: dict[UUID, list[dict[str, Any]]] = {}
        for (topic_id, index), entry in entries.items():
            entry["partition_index"] = index
            entry["current_leader"] = leader
            entry.setdefault("records", b"")
            topics.setdefault(topic_id, []).append(entry)
        group_id = self._session.group_id
        return {
            "acquisition_lock_timeout_ms": self._share.partitions.config(
                group_id
            ).share_record_lock_duration_ms,
            "responses": [
                {"topic_id": topic_id, "partitions": partitions} for topic_id, partitions in topics.items()
            ],
        }
