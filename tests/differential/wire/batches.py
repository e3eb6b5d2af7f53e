"""Record batches as scripts write them, and as answers are compared."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

from tests.differential.wire.producers import Ids
from tests.differential.wire.spoil import spoil
from tests.harness.batches import batch
from tests.harness.checksum import crc32c

_HEAD = 12
"""Bytes of a record batch up to and with its length."""
_LEADER_EPOCH = slice(12, 16)
_CRC = slice(17, 21)
_CHECKED = 21
_ATTRIBUTES_LOW = 22
_TIMES = slice(27, 43)
_PRODUCER = slice(43, 51)
_RECORDS = 61
_COORDINATOR_EPOCH = slice(73, 77)
_CONTROL = 0x20
_NO_PRODUCER = -1


def to_bytes(records: dict[str, Any], ids: Ids, began_ms: int) -> bytes:
    """Return the batch that a script writes as `{"values": ["x"]}`, or with what a producer adds: `producer`,
    `producer_epoch`, `sequence`, `transactional`. With `spoilt` it may be none: a list of what is done to its
    bytes in turn (`spoil`), and `{"sum": true}` for a checksum that is right again.

    Args:
        began_ms: time of a producer's records, and on; Apache Kafka forgets producers that wrote in 1970.
    """
    values = [text.encode() for text in records["values"]]
    if "producer" not in records:
        return _spoilt(batch(values), records.get("spoilt", ()))
    return batch(
        values,
        timestamps=range(began_ms, began_ms + len(values)),
        producer_id=ids.id_of(records["producer"]["producer"]),
        producer_epoch=records["producer_epoch"],
        sequence=records["sequence"],
        transactional=records["transactional"],
    )


def _spoilt(whole: bytes, changes: Iterable[dict[str, Any]]) -> bytes:
    for change in changes:
        if change == {"sum": True}:
            whole = spoil(whole, [{"at": _CRC.start, "hex": f"{crc32c(whole[_CHECKED:]):08x}"}])
        else:
            whole = spoil(whole, [change])
    return whole


def masked(records: bytes, ids: Ids) -> bytes:
    """Record batches without what two brokers cannot share: producer ids become numbers, a marker has no
    time, and a checksum over either is 0 where it is right. Leader and coordinator epochs, which a restart
    raises (`known`: "leader epoch"), are 0 as well.
    """
    left = bytearray(records)
    at = 0
    while at + _LEADER_EPOCH.stop <= len(left):
        size = _HEAD + int.from_bytes(left[at + 8 : at + _HEAD], "big")
        left[at : at + size] = _masked(bytes(left[at : at + size]), ids)
        at += size
    return bytes(left)


def _masked(one: bytes, ids: Ids) -> bytes:
    left = bytearray(one)
    left[_LEADER_EPOCH] = bytes(4)
    if len(one) >= _RECORDS:
        (producer_id,) = struct.unpack(">q", one[_PRODUCER])
        if producer_id != _NO_PRODUCER:
            right = crc32c(one[_CHECKED:]) == int.from_bytes(one[_CRC], "big")
            left[_CRC] = bytes(4) if right else b"bad!"
            left[_PRODUCER] = struct.pack(">q", ids.number(producer_id))
        if one[_ATTRIBUTES_LOW] & _CONTROL:
            left[_TIMES] = bytes(16)
            left[_COORDINATOR_EPOCH] = bytes(4)
    return bytes(left)
