"""Record batches v2, encoded here to be read by the code under test."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from tests.harness.checksum import crc32c

LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20


class Content(NamedTuple):
    """A producer's input; `delta` is relative to the batch's base offset."""

    delta: int
    value: bytes | None = b""
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp_delta: int = 0


def varint(value: int) -> bytes:
    rest = (value << 1) ^ (value >> 63)
    out = bytearray()
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _field(value: bytes | None) -> bytes:
    return varint(-1) if value is None else varint(len(value)) + value


def _record(content: Content) -> bytes:
    body = b"\0" + varint(content.timestamp_delta) + varint(content.delta)
    body += _field(content.key) + _field(content.value) + varint(len(content.headers))
    for name, value in content.headers:
        body += _field(name.encode()) + _field(value)
    return varint(len(body)) + body


def batch(
    base_offset: int,
    records: Sequence[Content],
    *,
    attributes: int = 0,
    base_timestamp: int = 1_000,
    max_timestamp: int = 2_000,
    last_delta: int | None = None,
    leader_epoch: int = 0,
) -> bytes:
    """Return an uncompressed batch; `last_delta` extends it over compacted offsets."""
    if last_delta is None:
        last_delta = records[-1].delta if records else 0
    checked = struct.pack(
        ">hiqqqhii", attributes, last_delta, base_timestamp, max_timestamp, -1, -1, -1, len(records)
    ) + b"".join(map(_record, records))
    after_length = struct.pack(">ibI", leader_epoch, 2, crc32c(checked)) + checked
    return struct.pack(">qi", base_offset, len(after_length)) + after_length


def plain(base_offset: int, count: int) -> bytes:
    """Return a batch of `count` records with their offsets as values."""
    return batch(base_offset, [Content(delta, b"%d" % (base_offset + delta)) for delta in range(count)])
