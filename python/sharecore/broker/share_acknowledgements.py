"""What ShareFetch and ShareAcknowledge have in common: acknowledgements in, errors a partition out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from sharecore.broker.share import ShareServices
from sharecore.errors import ErrorCode, KafkaError
from sharecore.session import SharePartitionId
from sharecore.waiting import Done, Gather

_RENEW = 4

Batches = list[Any]
"""Acknowledgement batches as they are in the request: first offset, last offset, types."""


def acknowledge(
    share: ShareServices,
    group_id: str,
    member_id: str,
    topics: Iterable[Any],
    gather: Gather[Any],
    *,
    may_renew: bool,
    may_read: Callable[[UUID], bool],
) -> None:
    """Begins the acknowledgements of one request; their errors are the outcomes of `gather`.

    Args:
        topics: the request's. Where one partition is acknowledged, the answer tells of each that is named.
        may_renew: whether the request says that it renews locks.
        may_read: whether the client may read a topic.
    """
    asked = {
        ((topic.topic_id or UUID(int=0)), partition.partition_index): partition.acknowledgement_batches
        for topic in topics
        for partition in topic.partitions
    }
    if any(asked.values()):
        for partition, batches in asked.items():
            if may_read(partition[0]):
                gather.run(partition, _begin, share, group_id, member_id, partition, batches, may_renew)
            else:
                gather.put(partition, KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED))


def _begin(
    share: ShareServices,
    group_id: str,
    member_id: str,
    partition: SharePartitionId,
    batches: Batches,
    may_renew: bool,
    done: Done,
) -> None:
    _check(batches, may_renew=may_renew)
    leader = share.partitions.get(group_id, *partition)
    if batches:
        leader.load()
        leader.acknowledge(member_id, batches, done)
    else:
        done(None)


def _check(batches: Batches, *, may_renew: bool) -> None:
    """Refuses, with the code alone as Kafka does, what is malformed: strange types or a wrong number of them,
    and batches that do not ascend.
    """
    types = b"".join([batch[2] for batch in batches])
    if types and (largest := max(types)) >= _RENEW and not (largest == _RENEW and may_renew):
        # an unknown type, or a renewal that was not announced
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    end = -1
    for first, last, own in batches:
        if first < end or last < first or len(own) not in (1, last - first + 1):
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        end = last
