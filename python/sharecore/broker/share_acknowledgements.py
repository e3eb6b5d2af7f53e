"""What ShareFetch and ShareAcknowledge have in common: acknowledgements in, errors a partition out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from sharecore.broker.share import ShareServices
from sharecore.errors import ErrorCode, KafkaError
from sharecore.session import SharePartitionId, ShareSession
from sharecore.waiting import Done, Gather

_RENEW = 4

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
    asked = {
        ((topic.topic_id or UUID(int=0)), partition.partition_index): partition.acknowledgement_batches
        for topic in topics
        for partition in topic.partitions
    }
    some: list[SharePartitionId] = []
    nothing: list[SharePartitionId] = []
    for partition, batches in asked.items():
        refusal = _refusal(share, partition, batches, may_renew=may_renew, may_read=may_read)
        if refusal is not None:
            gather.put(partition, refusal)
        elif batches:
            some.append(partition)
        else:
            nothing.append(partition)
    for partition in some:
        gather.run(partition, _begin, share, session, partition, asked[partition])
    if some:
        for partition in nothing:
            gather.put(partition, None)


def _refusal(
    share: ShareServices,
    partition: SharePartitionId,
    batches: Batches,
    *,
    may_renew: bool,
    may_read: Callable[[UUID], bool],
) -> KafkaError | None:
    """Why acknowledgements of a partition do not get as far as its leader."""
    if not share.has_topic(partition[0]):
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    if _malformed(batches, may_renew=may_renew):
        return KafkaError(ErrorCode.INVALID_REQUEST)
    if not may_read(partition[0]):
        return KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if not share.has_partition(*partition):
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return None


def _begin(
    share: ShareServices, session: ShareSession, partition: SharePartitionId, batches: Batches, done: Done
) -> None:
    leader = share.partitions.get(session.group_id, *partition)
    leader.load()
    leader.acknowledge(session.member_id, batches, done)


def _malformed(batches: Batches, *, may_renew: bool) -> bool:
    """Whether types are strange or of a wrong number, or batches do not ascend."""
    types = b"".join([batch[2] for batch in batches])
    if types and (largest := max(types)) >= _RENEW and not (largest == _RENEW and may_renew):
        return True  # an unknown type, or a renewal that was not announced
    end = -1
    for first, last, own in batches:
        if first < end or last < first or len(own) not in (1, last - first + 1):
            return True
        end = last
    return False
