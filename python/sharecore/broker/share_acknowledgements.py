"""What ShareFetch and ShareAcknowledge have in common: acknowledgements in, errors a partition out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from sharecore._core import acknowledgements
from sharecore.broker.share import ShareServices
from sharecore.errors import ErrorCode, KafkaError
from sharecore.session import SharePartitionId, ShareSession
from sharecore.waiting import Done, Gather

_NO_TOPIC = UUID(int=0)

Batches = list[Any]
"""Acknowledgement batches as they are in the request: first offset, last offset, types."""


def acknowledge(
    share: ShareServices,
    session: ShareSession,
    topics: Iterable[Any],
    gather: Gather[Any],
    *,
    may_renew: bool,
    may_read: Callable[[UUID], bool],
) -> None:
    """Begins the acknowledgements of one request; their errors are the outcomes of `gather`.

    As with Kafka, the last one counts of a partition that is named twice, and those without batches are among
    the outcomes where something is acknowledged.

    Args:
        topics: the request's.
        may_renew: whether the request says that it renews locks.
        may_read: whether the client may read a topic.
    """
    some: list[tuple[SharePartitionId, Batches]] = []
    nothing: list[SharePartitionId] = []
    for name, batches, is_sound in acknowledgements(topics, may_renew, _NO_TOPIC):
        refusal = _refusal(share, session.group_id, name, may_read, is_sound=is_sound)
        if refusal is not None:
            gather.put(name, refusal)
        elif batches:
            some.append((name, batches))
        else:
            nothing.append(name)
    for name, batches in some:
        gather.run(name, _begin, share, session, name, batches)
    if some:
        for name in nothing:
            gather.put(name, None)


def _refusal(
    share: ShareServices,
    group_id: str,
    partition: SharePartitionId,
    may_read: Callable[[UUID], bool],
    *,
    is_sound: bool,
) -> KafkaError | None:
    """Why acknowledgements of a partition do not get as far as its leader."""
    topic_id, index = partition
    is_led = share.partitions.peek(group_id, topic_id, index) is not None
    count = index + 1 if is_led else share.partition_count(topic_id)
    if count is None:
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    if not is_sound:
        return KafkaError(ErrorCode.INVALID_REQUEST)
    if not may_read(topic_id):
        return KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if not 0 <= index < count:
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return None


def _begin(
    share: ShareServices, session: ShareSession, partition: SharePartitionId, batches: Batches, done: Done
) -> None:
    leader = share.partitions.get(session.group_id, *partition)
    leader.load()
    leader.acknowledge(session.member_id, batches, done)
