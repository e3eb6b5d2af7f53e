"""What a share-partition leader looks at in record batches: their sizes, and whose transactions they are."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

AckBatch = tuple[int, int, bytes]
"""First offset, last offset, acknowledge types: one for all, or one an offset."""

Acquired = tuple[int, int, int]
"""First offset, last offset, delivery count."""

_BATCH_LENGTH = Struct(">i")
_LENGTH_AT = 8
_LOG_OVERHEAD = 12
_ATTRIBUTES = Struct(">h")
_ATTRIBUTES_AT = 21
_PRODUCER = Struct(">q")
_PRODUCER_AT = 43
_TRANSACTIONAL, _CONTROL = 0x10, 0x20


def holding(
    records: bytes, batches: Sequence[tuple[int, int]], acquired: Sequence[tuple[int, int, int]]
) -> bytes:
    """The whole record batches that hold what was acquired, and no others.

    Args:
        records: record batches, one after the other.
        batches: first and last offset of each of them.
        acquired: first offset, last offset and delivery count of ranges, ascending.
    """
    if len(acquired) == 1 and acquired[0][0] <= batches[0][1] and acquired[0][1] >= batches[-1][0]:
        return records
    parts = []
    start = position = 0
    ranges = iter(acquired)
    first, last, _ = next(ranges)
    for batch_first, batch_last in batches:
        end = position + _LOG_OVERHEAD + _BATCH_LENGTH.unpack_from(records, position + _LENGTH_AT)[0]
        while last < batch_first:
            following = next(ranges, None)
            if following is None:
                parts.append(records[start:position])
                return b"".join(parts)
            first, last, _ = following
        if batch_last < first:
            if start < position:
                parts.append(records[start:position])
            start = end
        position = end
    if not start:
        return records
    parts.append(records[start:position])
    return b"".join(parts)


def aborted_ranges(
    records: bytes, batches: Sequence[tuple[int, int]], aborted: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """First and last offset of each record batch that is part of an aborted transaction.

    Args:
        records: record batches, one after the other.
        batches: first and last offset of each of them.
        aborted: producer and first offset of the aborted transactions that reach into them.
    """
    ranges = []
    position = 0
    pending = sorted(aborted, key=lambda transaction: transaction[1])
    open_ids: set[int] = set()
    for first, last in batches:
        while pending and pending[0][1] <= last:
            open_ids.add(pending.pop(0)[0])
        (attributes,) = _ATTRIBUTES.unpack_from(records, position + _ATTRIBUTES_AT)
        if attributes & _TRANSACTIONAL:
            (producer_id,) = _PRODUCER.unpack_from(records, position + _PRODUCER_AT)
            if attributes & _CONTROL:
                # a marker ends the transaction; a later one of the same producer is listed by itself
                open_ids.discard(producer_id)
            elif producer_id in open_ids:
                ranges.append((first, last))
        position += _LOG_OVERHEAD + _BATCH_LENGTH.unpack_from(records, position + _LENGTH_AT)[0]
    return ranges


def subtracted(
    acquired: Sequence[tuple[int, int, int]], ranges: Sequence[tuple[int, int]]
) -> list[tuple[int, int, int]]:
    """Acquired ranges without the offsets of `ranges`; both ascending."""
    left = []
    for first, last, delivery_count in acquired:
        for gone_first, gone_last in ranges:
            if gone_last < first or gone_first > last:
                continue
            if first < gone_first:
                left.append((first, gone_first - 1, delivery_count))
            first = gone_last + 1
            if first > last:
                break
        if first <= last:
            left.append((first, last, delivery_count))
    return left
