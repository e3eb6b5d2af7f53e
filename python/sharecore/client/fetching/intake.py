"""Turns a share partition's response into leases and records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharecore._core import decode_records
from sharecore.client.errors import CorruptRecords
from sharecore.client.fetching.buffer import Fetched
from sharecore.client.fetching.host import Host, Source
from sharecore.client.fetching.lease import GAP, AcknowledgeType, Lease
from sharecore.client.wire.cluster import TopicIdPartition
from sharecore.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from sharecore.protocol.received import ShareFetchPartitionData


def take_in(key: TopicIdPartition, answer: ShareFetchPartitionData, link: Source, host: Host) -> int:
    """Decode and deliver the acquired records of a share partition; return their number.

    Acquired offsets without a record are acknowledged as gaps, those of a truncated batch are released, and
    those of unreadable batches are rejected.

    Raises:
        KafkaError: CORRUPT_MESSAGE: the acquired ranges are invalid.
    """
    topic = host.cluster.topics[key.topic_id].name
    acquired = answer.acquired_records
    lease = Lease(topic, key, acquired, host.now_ms() + host.lock_ms, link)
    try:
        records, gaps, cut_off, corrupt = decode_records(
            answer.records or b"", acquired, topic, key.partition, lease
        )
    except ValueError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{topic}-{key.partition}: {error}") from error
    link.leases.add(lease)
    for first, last in gaps:
        link.mark(lease, *lease.positions(first, last), GAP)
    for first, last in cut_off:
        link.mark(lease, *lease.positions(first, last), AcknowledgeType.RELEASE)
    for first, last, _ in corrupt:
        link.mark(lease, *lease.positions(first, last), AcknowledgeType.REJECT)
    if corrupt:
        ranges = [(first, last) for first, last, _ in corrupt]
        host.fail(CorruptRecords(topic, key.partition, ranges, corrupt[0][2]), False)
    if records:
        host.deliver(Fetched(lease, records))
    return len(records)
