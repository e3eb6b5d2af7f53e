"""Record batches (magic 2) made by hand."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Sequence

from tests.harness.checksum import crc32c

_HEAD = struct.Struct(">qiib")
_BODY = struct.Struct(">hiqqqhii")


def batch(
    values: Sequence[bytes],
    *,
    timestamps: Sequence[int] | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    sequence: int = -1,
    transactional: bool = False,
) -> bytes:
    """One uncompressed batch of records without keys.

    Args:
        values: one a record.
        timestamps: one a record, in milliseconds; 1,000,000 and up when not given.
        producer_id, producer_epoch, sequence: of an idempotent producer.
        transactional: whether it belongs to the producer's transaction.
    """
    return keyed_batch(
        [(None, value) for value in values],
        timestamps=timestamps,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        sequence=sequence,
        transactional=transactional,
    )


def keyed_batch(
    entries: Sequence[tuple[bytes | None, bytes | None]],
    *,
    base: int = 0,
    timestamps: Sequence[int] | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    sequence: int = -1,
    gzipped: bool = False,
    headers: Sequence[tuple[str, bytes | None]] = (),
    transactional: bool = False,
) -> bytes:
    """One batch of keys and values at an offset, each with the headers; the rest as in `batch`."""
    times = list(timestamps or range(1_000_000, 1_000_000 + len(entries)))
    records = b"".join(
        _record(index, time - times[0], key, value, headers)
        for index, (time, (key, value)) in enumerate(zip(times, entries, strict=True))
    )
    count = len(entries)
    if gzipped:
        records = gzip.compress(records)
    body = (
        _BODY.pack(
            int(gzipped) | transactional << 4,
            count - 1,
            times[0],
            max(times),
            producer_id,
            producer_epoch,
            sequence,
            count,
        )
        + records
    )
    crc = struct.pack(">I", crc32c(body))
    return _HEAD.pack(base, 4 + 1 + 4 + len(body), -1, 2) + crc + body


def headers_of(records: bytes) -> list[dict[str, int]]:
    """What the headers of batches say, but for base timestamps; a batch that is cut off is left out."""
    found = []
    at = 0
    while at + 61 <= len(records):
        base, size = struct.unpack_from(">qi", records, at)
        attributes, last, _, newest, producer_id, epoch, sequence, count = _BODY.unpack_from(records, at + 21)
        at += 12 + size
        if at > len(records):
            break
        found.append(
            {
                "base_offset": base,
                "last_offset": base + last,
                "attributes": attributes,
                "max_timestamp": newest,
                "producer_id": producer_id,
                "producer_epoch": epoch,
                "sequence": sequence,
                "count": count,
            }
        )
    return found


def values_of(records: bytes) -> list[tuple[int, bytes]]:
    """Offsets and values of records in batches that `batch` made."""
    found = []
    at = 0
    while at < len(records):
        base, size = struct.unpack_from(">qi", records, at)
        (count,) = struct.unpack_from(">i", records, at + 57)
        where = at + 61
        for index in range(count):
            length, where = _read_varint(records, where)
            end = where + length
            where += 1
            _, where = _read_varint(records, where)
            _, where = _read_varint(records, where)
            _, where = _read_varint(records, where)
            value_size, where = _read_varint(records, where)
            found.append((base + index, records[where : where + value_size]))
            where = end
        at += 12 + size
    return found


def _record(
    offset_delta: int,
    time_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]],
) -> bytes:
    head = b"\0" + _varint(time_delta) + _varint(offset_delta)
    named = b"".join(_field(name.encode()) + _field(content) for name, content in headers)
    inner = head + _field(key) + _field(value) + _varint(len(headers)) + named
    return _varint(len(inner)) + inner


def _field(content: bytes | None) -> bytes:
    return _varint(-1) if content is None else _varint(len(content)) + content


def _varint(value: int) -> bytes:
    value = value << 1 if value >= 0 else (-value << 1) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(raw: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
