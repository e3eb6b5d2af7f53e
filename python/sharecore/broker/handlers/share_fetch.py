"""ShareFetch: acknowledges what a member has processed, then leases more records to it (KIP-932).

`_core.ShareFetch` handles it, and asks here what is not mechanical.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from uuid import UUID

from sharecore._core import ShareFetch
from sharecore.broker.context import RequestContext, Result
from sharecore.broker.share_rights import check_share_group, hidden, may_read
from sharecore.errors import ErrorCode, KafkaError
from sharecore.partition import SharePartition
from sharecore.session import SharePartitionId, ShareSession

if TYPE_CHECKING:
    from sharecore.broker.services import Services
    from sharecore.broker.share import ShareServices

_MISSING_MAX = 1000
Refused = dict[SharePartitionId, KafkaError]
"""Partitions of which nothing is fetched, and why."""


class ShareFetchHandler(ShareFetch):
    """The handler of one broker."""

    def _open(self, context: RequestContext, request: Any) -> ShareSession:
        """A new session, for a request with epoch 0; raises KafkaError."""
        share = context.broker.share
        topics = request.topics
        _check_missing(
            share, ((each.topic_id, one.partition_index) for each in topics for one in each.partitions)
        )
        share.watch(context.connection)
        return share.sessions.open(request.group_id, request.member_id, context.connection)

    def _refuse(self, request: Any, error: KafkaError) -> Result:
        """The answer to a request that is refused as a whole."""
        if error.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            return _refuse_slowly(request.max_wait_ms, error)
        return {"error_code": error.code}

    def _sift(
        self, context: RequestContext, session: ShareSession, first: int, refuses_all: bool
    ) -> tuple[list[SharePartition], Refused, Refused]:
        """Leaders of partitions that the session does not know yet; partitions of which nothing is fetched;
        those that are passed over.

        Args:
            first: the place at which the request begins to serve.
            refuses_all: the request asks for less than nothing.
        """
        share = context.broker.share
        if session.partition_count > _MISSING_MAX:
            try:
                _check_missing(share, session.unknown)
            except KafkaError:
                # its member begins anew, and is refused then
                share.sessions.close(session)
                raise
        unreadable = hidden(context, session.partitions)
        unknown = session.in_order(session.unknown - unreadable.keys(), first)
        found, refused = context.broker.share.partitions.get_all(session.group_id, unknown)
        if refuses_all:
            refusal = KafkaError(ErrorCode.INVALID_REQUEST)
            everything = session.in_order(session.partitions, first)
            refused = dict.fromkeys(everything, refusal) | refused | unreadable
            return [], refused, refused
        return found, refused | unreadable, unreadable


def _check_missing(share: ShareServices, partitions: Iterable[tuple[UUID | None, int]]) -> None:
    """Raise KafkaError if more of the partitions are not there than an honest member may ask for."""
    counts: dict[UUID | None, int] = {}
    missing = 0
    for topic_id, index in partitions:
        count = counts.get(topic_id)
        if count is None:
            count = counts[topic_id] = 0 if topic_id is None else share.partition_count(topic_id) or 0
        missing += not 0 <= index < count
        if missing > _MISSING_MAX:
            raise KafkaError(
                ErrorCode.SHARE_SESSION_LIMIT_REACHED,
                f"a share session has {_MISSING_MAX} partitions at most that are not there",
            )


def begin(broker: Services) -> ShareFetch:
    """The handler of one broker."""
    return ShareFetchHandler(check_share_group, may_read)


async def _refuse_slowly(wait_ms: int, error: KafkaError) -> dict[str, Any]:
    """Delays the answer: a client tries again at once, and would keep the broker busy."""
    await asyncio.sleep(max(wait_ms, 0) / 1000)
    return {"error_code": error.code}
