"""Values of the records of `__share_group_state`, written by hand."""

from __future__ import annotations

from struct import Struct

from sharecore.sharestate.records import STATE_BATCH, UNINITIALIZED, Snapshot, Update

_VERSION = 0
_SNAPSHOT_HEAD = Struct(">hiiiqqq")
_UPDATE_HEAD = Struct(">hiiq")
_TAGGED_COUNT = Struct(">bbbi")


def encode_snapshot(value: Snapshot) -> bytes:
    """Value of a ShareSnapshot record, with its version before it."""
    head = _SNAPSHOT_HEAD.pack(_VERSION, *value[:6])
    return head + _tail(value.batches, value.delivery_complete_count)


def encode_update(value: Update) -> bytes:
    """Value of a ShareUpdate record, with its version before it."""
    head = _UPDATE_HEAD.pack(_VERSION, *value[:3])
    return head + _tail(value.batches, value.delivery_complete_count)


def _tail(batches: bytes, delivery_complete_count: int) -> bytes:
    size = len(batches) // STATE_BATCH.size + 1
    length = bytearray()
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    length.append(size)
    if delivery_complete_count == UNINITIALIZED:
        return b"".join((length, batches, b"\x00"))
    return b"".join((length, batches, _TAGGED_COUNT.pack(1, 0, 4, delivery_complete_count)))
