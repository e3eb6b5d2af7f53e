"""Records of `__share_group_state` (ShareSnapshot and ShareUpdate): keys and values.

State batches stay in their encoded form, which `_core.combine_state_batches` processes. A batch has 20 bytes:
first offset, last offset, delivery state, delivery count, and an empty tagged-field section.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from struct import Struct
from struct import error as PackError
from sys import intern
from typing import NamedTuple
from uuid import UUID

from sharecore.errors import ErrorCode, KafkaError
from sharecore.sharestate.keys import SharePartitionKey

SNAPSHOT = 0
UPDATE = 1
UNINITIALIZED = -1
"""A start offset, leader epoch or delivery-complete count that is not known yet."""

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING, ARCHIVED = range(5)
"""Delivery states of records."""

STATE_BATCH = Struct(">qqbhx")

_KEY_KIND = Struct(">h")
_KEY_HEAD = Struct(">hh")
_KEY_TAIL = Struct(">16si")
_SNAPSHOT_HEAD = Struct(">hiiiqqq")
_UPDATE_HEAD = Struct(">hiiq")
_VERSION = 0
_TAGGED_COUNT = Struct(">bbbi")
_TAGGED_COUNT_HEAD = b"\x01\x00\x04"

_HEAD_BYTES_MAX = 4096


def state_bytes_max(records: int) -> int:
    """Return the maximum record size of a share partition with this many in-flight records."""
    return _HEAD_BYTES_MAX + STATE_BATCH.size * records


StateBatch = tuple[int, int, int, int]
"""First offset, last offset, delivery state, delivery count."""


class Snapshot(NamedTuple):
    """Value of a ShareSnapshot record: the complete state of a share partition."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    create_ms: int
    write_ms: int
    batches: bytes
    delivery_complete_count: int = UNINITIALIZED


class Update(NamedTuple):
    """Value of a ShareUpdate record: a change; start offset -1 means unchanged."""

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    batches: bytes
    delivery_complete_count: int = UNINITIALIZED


class StateRecord(NamedTuple):
    """A decoded record; without a value it deletes the state of the share partition."""

    kind: int
    key: SharePartitionKey
    value: Snapshot | Update | None


class UnknownRecordType(ValueError):
    """A record of an unknown type; as in Kafka it is logged and skipped."""


def decode_record(key: bytes | None, value: bytes | None) -> StateRecord:
    """Decode a record of the topic.

    Raises:
        UnknownRecordType: the type is unknown.
        ValueError: key or value is damaged, or the value's version is unknown.
    """
    kind, partition = decode_key(key or b"")
    if value is None:
        return StateRecord(kind, partition, None)
    return StateRecord(kind, partition, decode_snapshot(value) if kind == SNAPSHOT else decode_update(value))


def encode_key(kind: int, key: SharePartitionKey) -> bytes:
    """Return the key of a record of either kind."""
    group = key.group_id.encode()
    return _KEY_HEAD.pack(kind, len(group)) + group + _KEY_TAIL.pack(key.topic_id.bytes, key.partition)


def decode_key(data: bytes) -> tuple[int, SharePartitionKey]:
    """Return kind and share partition of a record's key.

    Raises:
        UnknownRecordType: the type is unknown.
        ValueError: the bytes are damaged.
    """
    try:
        (kind,) = _KEY_KIND.unpack_from(data)
        if kind not in (SNAPSHOT, UPDATE):
            raise UnknownRecordType(f"record type {kind} is not known")
    except PackError as error:
        raise ValueError(f"damaged key: {error}") from error
    return kind, key_of(data[_KEY_KIND.size :])


def key_tail(key: SharePartitionKey) -> bytes:
    """Return the part after the kind in the keys of a share partition's records."""
    return encode_key(UPDATE, key)[_KEY_KIND.size :]


def key_of(tail: bytes) -> SharePartitionKey:
    """Return the share partition of a key without its kind; see `key_tail`.

    Raises:
        ValueError: the bytes are damaged.
    """
    try:
        (size,) = _KEY_KIND.unpack_from(tail)
        if size < 0:
            raise ValueError("damaged key: the group id has a negative length")
        group = tail[2 : 2 + size].decode()
        topic_id, partition = _KEY_TAIL.unpack(tail[2 + size :])
    except (PackError, UnicodeDecodeError) as error:
        raise ValueError(f"damaged key: {error}") from error
    return SharePartitionKey(intern(group), _uuid(topic_id), partition)


@lru_cache(maxsize=4096)
def _uuid(data: bytes) -> UUID:
    """Return a cached UUID: few topics have many share partitions."""
    return UUID(bytes=data)


def decode_snapshot(data: bytes) -> Snapshot:
    """Decode the value of a ShareSnapshot record.

    Raises:
        ValueError: the bytes are damaged, or their version is unknown.
    """
    try:
        version, snapshot, state, leader, start, create, write = _SNAPSHOT_HEAD.unpack_from(data)
        batches, count = _read_tail(version, data, _SNAPSHOT_HEAD.size)
    except (PackError, IndexError) as error:
        raise ValueError(f"damaged snapshot: {error}") from error
    return Snapshot(snapshot, state, leader, start, create, write, batches, count)


def decode_update(data: bytes) -> Update:
    """Decode the value of a ShareUpdate record.

    Raises:
        ValueError: the bytes are damaged, or their version is unknown.
    """
    try:
        version, snapshot, leader, start = _UPDATE_HEAD.unpack_from(data)
        batches, count = _read_tail(version, data, _UPDATE_HEAD.size)
    except (PackError, IndexError) as error:
        raise ValueError(f"damaged update: {error}") from error
    return Update(snapshot, leader, start, batches, count)


def pack_batches(batches: Iterable[StateBatch]) -> bytes:
    """Encode state batches.

    Raises:
        KafkaError: INVALID_REQUEST for a batch that ends before it starts, or a field out of range.
    """
    try:
        packed = []
        for first, last, state, count in batches:
            if last < first or first < 0 or count < 0:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"impossible state batch {first}-{last}")
            packed.append(STATE_BATCH.pack(first, last, state, count))
    except PackError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"impossible state batch: {error}") from error
    return b"".join(packed)


def unpack_batches(data: bytes) -> Iterator[StateBatch]:
    """Decode state batches."""
    return STATE_BATCH.iter_unpack(data)


def _read_tail(version: int, data: bytes, offset: int) -> tuple[bytes, int]:
    if version != _VERSION:
        raise ValueError(f"version {version} is not known")
    size = data[offset]
    if 0 < size < 0x80:
        # fast path for nearly all records: a one-byte length and the one known tagged field
        end = offset + 1 + (size - 1) * STATE_BATCH.size
        if data[end : end + 3] == _TAGGED_COUNT_HEAD and len(data) == end + _TAGGED_COUNT.size:
            return data[offset + 1 : end], int.from_bytes(data[end + 3 :], "big", signed=True)
    size, offset = _uvarint(data, offset)
    end = offset + (size - 1) * STATE_BATCH.size
    if size < 1 or end > len(data):
        raise ValueError("the state batches are truncated")
    batches = data[offset:end]
    tags, offset = _uvarint(data, end)
    count = UNINITIALIZED
    for _ in range(tags):
        tag, offset = _uvarint(data, offset)
        length, offset = _uvarint(data, offset)
        if tag == 0 and length == 4:
            count = int.from_bytes(data[offset : offset + 4], "big", signed=True)
        offset += length
    if offset != len(data):
        raise ValueError(f"{len(data) - offset} bytes too many")
    return batches, count


def _uvarint(data: bytes, offset: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, offset
        shift += 7
        if shift > 28:
            raise ValueError("varint is too long")
