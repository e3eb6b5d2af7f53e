"""Record batches of `__share_group_state`, wherever they were read, one record after the other."""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple, Protocol

from sharecore._core import decode_records
from sharecore.sharestate.keys import STATE_TOPIC

_BATCH_HEAD = Struct(">qi11xi")
_LENGTH_COUNTS_FROM = 12
_BATCH_HEADER_BYTES = 61
CHUNK_BYTES = 4 << 20
"""How much of a partition is read at a time."""


class StateProblem(NamedTuple):
    """A record, or a batch of them, that could not be read, or has no meaning.

    Args:
        partition: of the state topic.
        damaged: whether state may be missing for it; a coordinator refuses to load the partition then.
    """

    partition: int
    offset: int
    reason: str
    damaged: bool = True


class RawRecord(NamedTuple):
    """A record of the state topic as it was written."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


class StateSink(Protocol):
    """Receives the topic's records, partition by partition, each in the order of its offsets."""

    def take(self, record: RawRecord) -> None:
        """Take a record."""

    def problem(self, problem: StateProblem) -> None:
        """Note an unreadable record."""


def feed(sink: StateSink, partition: int, data: bytes, first: int, end: int) -> int:
    """Decode record batches into a sink.

    Args:
        data: record batches, of which the last may be cut off.
        first: offset from which on records count.
        end: offset behind the last that counts.

    Returns:
        The offset to go on at; `first` when there is no whole batch.
    """
    size, last = _whole(data)
    if last < first:
        return first
    last = min(last, end - 1)
    records, _, _, corrupt = decode_records(data[:size], [(first, last, 1)], STATE_TOPIC, partition, None)
    for record in records:
        sink.take(RawRecord(partition, record.offset, record.timestamp, record.key, record.value))
    for damaged_first, damaged_last, reason in corrupt:
        sink.problem(
            StateProblem(partition, damaged_first, f"batch up to offset {damaged_last} is damaged: {reason}")
        )
    return last + 1


def _whole(data: bytes) -> tuple[int, int]:
    """Bytes of the batches that are complete, and the last offset of them."""
    position, last = 0, -1
    while len(data) - position >= _BATCH_HEADER_BYTES:
        base, length, delta = _BATCH_HEAD.unpack_from(data, position)
        following = position + _LENGTH_COUNTS_FROM + length
        if length < _BATCH_HEADER_BYTES - _LENGTH_COUNTS_FROM or following > len(data):
            break
        position, last = following, base + delta
    return position, last
