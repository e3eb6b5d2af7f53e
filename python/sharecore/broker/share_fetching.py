"""Carries out a ShareFetch: its acknowledgements, its records, and the answer with both."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

from sharecore._core import ShareAnswer, acknowledge
from sharecore.broker.context import RequestContext, Result
from sharecore.broker.share_rights import hidden, may_read
from sharecore.errors import ErrorCode, KafkaError
from sharecore.partition import FetchLimits, PartitionFetch, ReadySet, ShareFetch, SharePartition
from sharecore.session import FINAL_EPOCH, SharePartitionId, ShareSession
from sharecore.waiting import Gather, Later, reply

RECORD_LIMIT = 1
"""The acquire mode of requests whose number of records is exact (KIP-1206)."""


def acknowledges(request: Any) -> bool:
    """Whether a ShareFetch acknowledges anything."""
    return any(
        partition.acknowledgement_batches for topic in request.topics for partition in topic.partitions
    )


class ShareFetching:
    """One ShareFetch on its way: its acknowledgements, and its fetch under the name None.

    Acknowledgements begin first; the fetch goes on while they become durable, and the answer leaves when both
    have ended.

    Args:
        request: the message, checked.
        session: as the request has left it.
    """

    def __init__(self, context: RequestContext, request: Any, session: ShareSession) -> None:
        self._context = context
        self._cluster = context.broker.cluster
        self._share = context.broker.share
        self._request = request
        self._session = session
        self._gather: Gather[SharePartitionId | None] = Gather()
        self._refused: dict[SharePartitionId, KafkaError] = {}
        self._fetched: Sequence[PartitionFetch] = ()
        self._fetch: ShareFetch | None = None

    def begin(self) -> Result:
        """The answer, at once where that is possible."""
        request, session = self._request, self._session
        if request.topics and acknowledges(request):
            acknowledge(self._context, may_read, session, request.topics, request.is_renew_ack, self._gather)
        if request.share_session_epoch == FINAL_EPOCH:
            self._share.sessions.close(session)
        elif not request.is_renew_ack:  # which asks for no records, and hears of no partition's trouble
            self._gather.run(None, self._begin_fetch)
        answer = reply(self._gather, self._answer)
        if isinstance(answer, Later):
            session.fetches[self] = None
            answer.add_done_callback(self._done)
        return answer

    def _begin_fetch(self, done: Callable[[None], None]) -> None:
        request, session = self._request, self._session
        first, ready = session.rotation(), _ready_set(session)
        unreadable = hidden(self._context, session.partitions)
        found: Sequence[SharePartition] = ()
        if ready.unknown:
            found, self._refused = self._share.partitions.get_all(
                session.group_id, session.in_order(ready.unknown - unreadable.keys(), first)
            )
        passed_over: Container[SharePartitionId] = unreadable
        if request.max_bytes < 0 and request.max_records != 0:
            refusal = KafkaError(ErrorCode.INVALID_REQUEST)
            everything = session.in_order(session.partitions, first)
            self._refused = dict.fromkeys(everything, refusal) | self._refused
            found, passed_over = (), self._refused
        if unreadable:
            self._refused |= unreadable
        waits = len(session.partitions) > len(self._refused)
        room = min(self._context.records_room(), self._context.broker.config.fetch_max_bytes)
        limits = FetchLimits(
            request.max_wait_ms if waits else 0,
            min(request.min_bytes, room),
            min(request.max_bytes, room),
            request.max_records,
            request.batch_size,
            request.share_acquire_mode == RECORD_LIMIT,
        )

        def ended(fetched: list[PartitionFetch]) -> None:
            self._fetch = None  # each holds the other: a cycle a fetch is work for the collector
            self._fetched = fetched
            for each in fetched:
                if each.acquired:
                    session.touched.add(each.partition.id)
            done(None)

        fetch = ShareFetch(
            session.member_id,
            found,
            ready,
            limits,
            self._share.call_later,
            ended,
            first=first,
            hidden=passed_over,
        )
        fetched = fetch.begin()
        if fetched is None:
            self._fetch = fetch
        else:
            ended(fetched)

    def abandon(self) -> None:
        """The session has ended: the answer is what there is."""
        if self._fetch is not None:
            self._fetch.end([])

    def _done(self, later: Later[ShareAnswer]) -> None:
        self._session.fetches.pop(self, None)
        if later.cancelled() and self._fetch is not None:
            self._fetch.cancel()
            self._fetch = None

    def _answer(self) -> ShareAnswer:
        group_id = self._session.group_id
        partitions = self._share.partitions
        lock_ms = partitions.config(group_id).share_record_lock_duration_ms
        answer = ShareAnswer(self._cluster, self._context.connection.listener, lock_ms)
        for fetched in self._fetched:
            answer.fetched(self._still_led(fetched))
        for partition, error in self._refused.items():
            answer.refuse(partition, error)
        request = self._request
        if request.max_records != 0 and request.max_bytes > 0 and request.share_session_epoch != FINAL_EPOCH:
            for partition in self._session.unreported:
                if partitions.can_acquire(group_id, *partition):
                    answer.name(partition)
        self._session.report(answer.partitions, [*self._refused, *answer.failed], answer.served)
        answer.acknowledged(self._gather, beside=True)
        return answer.message()

    def _still_led(self, fetched: PartitionFetch) -> PartitionFetch:
        """What may be told: a leader that has lost its place meanwhile, asleep perhaps, leases nothing."""
        try:
            self._cluster.check_leader(*fetched.partition.id)
        except KafkaError as error:
            return PartitionFetch(fetched.partition, b"", [], error)
        return fetched


def _ready_set(session: ShareSession) -> ReadySet:
    if session.ready is None:
        session.ready = ReadySet(session.partitions)
    assert isinstance(session.ready, ReadySet)
    return session.ready
