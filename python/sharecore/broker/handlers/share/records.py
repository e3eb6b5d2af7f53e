"""Records of share groups: acquired and acknowledged (KIP-932).

ShareFetch: acknowledges a member's records, then acquires more for it (KIP-932).
ShareAcknowledge: acknowledges acquired records without fetching more (KIP-932).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import UUID

from sharecore._core import ShareAcknowledge, ShareFetch
from sharecore.broker.requests.context import RequestContext, Result
from sharecore.errors import ErrorCode, KafkaError
from sharecore.partition import SharePartition
from sharecore.security.acl import Operation, ResourceType
from sharecore.session import SharePartitionId, ShareSession
from sharecore.waiting import Steps, exhaust

if TYPE_CHECKING:
    from sharecore.broker.coordinators.share import ShareServices
    from sharecore.broker.requests.services import Services
    from sharecore.protocol import messages


_MISSING_MAX = 1000
_MADE_AT_ONCE = 256
"""Share-partition leaders created before other clients are served."""
_LARGE = 1000
"""Sessions with more partitions get one request per event-loop turn."""
Refused = dict[SharePartitionId, KafkaError]
"""Partitions excluded from a fetch, with errors."""


class RareCases:
    """The rare cases of one broker's handler."""

    def __init__(self) -> None:
        self._making: set[ShareSession] = set()
        """Sessions whose partitions' leaders are being created."""

    def open(
        self,
        context: RequestContext,
        group_id: str | None,
        member_id: str | None,
        partitions: Sequence[SharePartitionId],
    ) -> ShareSession:
        """Return a new session for a request with epoch 0; raise KafkaError if it is refused."""
        share = context.broker.share
        _check_missing(share, partitions)
        share.watch(context.connection)
        return share.sessions.open(group_id, member_id, context.connection)

    def refuse(self, max_wait_ms: int, error: KafkaError) -> Result[messages.ShareFetchResponse]:
        """Return the answer to a request that is refused as a whole."""
        if error.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            return _refuse_slowly(max_wait_ms, error)
        return {"error_code": error.code}

    def exclude(
        self, context: RequestContext, session: ShareSession, first: int, refuses_all: bool
    ) -> tuple[list[SharePartition], Refused, Refused]:
        """Return leaders of the session's new partitions, refused partitions, and skipped partitions.

        Args:
            first: the position at which the request starts to read.
            refuses_all: whether the request's limits are negative.
        """
        share = context.broker.share
        if session.partition_count > _MISSING_MAX:
            try:
                _check_missing(share, session.unknown)
            except KafkaError:
                # the member opens a new session, and is refused then
                share.sessions.close(session)
                raise
        unreadable = hidden(context, session.partitions)
        unknown = session.in_order(session.unknown - unreadable.keys(), first)
        if session.partition_count > _LARGE or len(unknown) > _MADE_AT_ONCE:
            context.end_turn()
        if len(unknown) > _MADE_AT_ONCE:
            unknown = self._make_some(context, session, unknown)
        found, refused = share.partitions.get_all(session.group_id, unknown)
        if refuses_all:
            refusal = KafkaError(ErrorCode.INVALID_REQUEST)
            everything = session.in_order(session.partitions, first)
            refused = dict.fromkeys(everything, refusal) | refused | unreadable
            return [], refused, refused
        return found, refused | unreadable, unreadable

    def _make_some(
        self, context: RequestContext, session: ShareSession, unknown: list[SharePartitionId]
    ) -> list[SharePartitionId]:
        """Return the partitions to look at now; only some of them need new leaders.

        The other leaders are created in later event-loop turns. Waiting fetches are then answered with the
        available records, and the member's next fetch covers all partitions.
        """
        share = context.broker.share
        group_id = session.group_id
        new = [each for each in unknown if share.partitions.lacks(group_id, *each)]
        later = new[_MADE_AT_ONCE:]
        if not later:
            return unknown

        def make() -> Steps[None]:
            for each in later:
                with suppress(KafkaError):
                    share.partitions.get(group_id, *each).load()
                yield
            self._making.discard(session)
            for fetching in list(session.fetches):
                fetching.abandon()

        if session not in self._making:
            self._making.add(session)
            context.broker.turns.run(make())
        left_out = set(later)
        return [each for each in unknown if each not in left_out]


def _check_missing(share: ShareServices, partitions: Iterable[SharePartitionId]) -> None:
    """Raise KafkaError if too many partitions do not exist."""
    counts: dict[UUID, int] = {}
    missing = 0
    for topic_id, index in partitions:
        count = counts.get(topic_id)
        if count is None:
            count = counts[topic_id] = share.partition_count(topic_id) or 0
        missing += not 0 <= index < count
        if missing > _MISSING_MAX:
            raise KafkaError(
                ErrorCode.SHARE_SESSION_LIMIT_REACHED,
                f"a share session has {_MISSING_MAX} partitions at most that are not there",
            )


def make_share_fetch(broker: Services) -> ShareFetch:
    """Return the handler of one broker."""
    rare = RareCases()
    return ShareFetch(check_share_group, may_read, rare.open, rare.refuse, rare.exclude)


async def _refuse_slowly(wait_ms: int, error: KafkaError) -> messages.ShareFetchResponse:
    """Delay a refusal, as the client would retry at once and keep the broker busy."""
    await asyncio.sleep(max(wait_ms, 0) / 1000)
    return {"error_code": error.code}


def make_share_acknowledge(broker: Services) -> ShareAcknowledge:
    """Return the handler of one broker."""
    return ShareAcknowledge(check_share_group, may_read)


def check_share_group(context: RequestContext, group_id: str) -> None:
    """Raise KafkaError if share groups are not served, or the client may not read the group."""
    broker = context.broker
    if not broker.features.has_share_groups:
        broker.features.check_share_groups()
    if broker.authorizer is not None:
        context.require(Operation.READ, ResourceType.GROUP, group_id)


def may_read(context: RequestContext, topic_id: UUID) -> bool:
    """Return whether the client may read a topic; unknown topics are not secret."""
    if context.broker.authorizer is None:
        return True
    topic = context.broker.topics.by_id(topic_id)
    return topic is None or context.may(Operation.READ, ResourceType.TOPIC, topic.name)


def hidden(
    context: RequestContext, partitions: Iterable[SharePartitionId]
) -> dict[SharePartitionId, KafkaError]:
    """Return the partitions that the client may not read, with errors; empty without an authorizer."""
    if context.broker.authorizer is None:
        return {}
    find = context.broker.topics.by_id
    partitions = list(partitions)
    ids = {topic_id for topic_id, _ in partitions}
    names = {each: topic.name for each in ids if (topic := find(each)) is not None}
    readable = exhaust(context.may_each(Operation.READ, ResourceType.TOPIC, sorted(names.values())))
    denied = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return {each: denied for each in partitions if each[0] in names and names[each[0]] not in readable}
