"""Record batches of upstream logs, cut and decoded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import NamedTuple

from sharecore._core import decode_records

_HEADER = Struct(">qi")
_LAST_OFFSET_DELTA = Struct(">i")
_PRODUCER = Struct(">qh")
_SEQUENCE = Struct(">i")
_ATTRIBUTES_LOW_AT, _CONTROL = 22, 1 << 5
_LOG_OVERHEAD, _DELTA_AT, _PRODUCER_AT, _SEQUENCE_AT = 12, 23, 43, 53

Scanned = tuple[int, int, bytes | None, bytes | None]
"""Offset, timestamp, key and value of a record."""


class Batch(NamedTuple):
    """A record batch in the log."""

    base_offset: int
    last_offset: int
    producer: tuple[int, int]
    data: bytes

    @property
    def sequence(self) -> int:
        """Sequence number of its first record; 0 follows 2**31 - 1."""
        (sequence,) = _SEQUENCE.unpack_from(self.data, _SEQUENCE_AT)
        return int(sequence)

    @property
    def is_control(self) -> bool:
        """Whether it is a transaction marker."""
        return bool(self.data[_ATTRIBUTES_LOW_AT] & _CONTROL)

    @property
    def following_sequence(self) -> int:
        """Sequence number of its producer's next batch."""
        return (self.sequence + self.last_offset - self.base_offset + 1) & 0x7FFF_FFFF

    def is_ahead_of(self, sequence: int) -> bool:
        """Return whether its producer sent it after the batch with that sequence."""
        return 0 < (self.sequence - sequence) & 0x7FFF_FFFF < 1 << 30


def measure_batches(records: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield first offset, last offset and end position of each whole record batch."""
    position = 0
    while position + _LOG_OVERHEAD <= len(records):
        base, length = _HEADER.unpack_from(records, position)
        (delta,) = _LAST_OFFSET_DELTA.unpack_from(records, position + _DELTA_AT)
        position += _LOG_OVERHEAD + length
        yield base, base + delta, position


def producer_at(records: bytes, position: int) -> tuple[int, int]:
    """Return producer id and epoch of the batch at a position."""
    producer_id, epoch = _PRODUCER.unpack_from(records, position + _PRODUCER_AT)
    return producer_id, epoch


def cut_batches(records: bytes) -> Iterator[Batch]:
    """Yield whole record batches one by one."""
    begin = 0
    for base, last, end in measure_batches(records):
        yield Batch(base, last, producer_at(records, begin), records[begin:end])
        begin = end


def last_batch(records: bytes) -> Batch | None:
    """Return the last whole record batch; None without one."""
    begin = 0
    found: Batch | None = None
    for base, last, end in measure_batches(records):
        if end >= len(records):
            found = Batch(base, last, producer_at(records, begin), records[begin:end])
        begin = end
    return found


def decode(batches: Sequence[Batch], name: str) -> list[Scanned]:
    """Return the records of batches; raise ValueError for an unreadable one."""
    ranges = [(batch.base_offset, batch.last_offset, 1) for batch in batches]
    records, _, _, unreadable = decode_records(
        b"".join(batch.data for batch in batches), ranges, name, 0, None
    )
    if unreadable:
        first, last, reason = unreadable[0]
        raise ValueError(f"{name}: offsets {first} to {last} cannot be read: {reason}")
    return [(record.offset, record.timestamp, record.key, record.value) for record in records]
