"""Frames whose bytes lie: nulls, negative lengths, arrays longer than the frame, senseless tags."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

_HEADER_BYTES = 12
"""Size, API, version and correlation id; what follows is spoiled."""
_LARGE = 1 << 20


def spoiled(frame: bytes, rnd: random.Random) -> bytes:
    """Return a request with its size, of which one thing is wrong."""
    return rnd.choice(_WAYS)(frame, rnd)


def _sized(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def _put(value: bytes) -> Callable[[bytes, random.Random], bytes]:
    """Bytes in the place of as many others."""

    def put(frame: bytes, rnd: random.Random) -> bytes:
        at = rnd.randrange(_HEADER_BYTES, max(len(frame) - len(value), _HEADER_BYTES) + 1)
        return _sized((frame[:at] + value + frame[at + len(value) :])[4:])

    return put


def _cut(frame: bytes, rnd: random.Random) -> bytes:
    return _sized(frame[4 : rnd.randrange(_HEADER_BYTES, len(frame) + 1)])


def _longer(frame: bytes, rnd: random.Random) -> bytes:
    return _sized(frame[4:] + rnd.randbytes(rnd.choice([1, 100, _LARGE])))


def _inserted(frame: bytes, rnd: random.Random) -> bytes:
    at = rnd.randrange(_HEADER_BYTES, len(frame) + 1)
    return _sized(frame[4:at] + rnd.randbytes(rnd.choice([1, 2, 8])) + frame[at:])


def _tags(make: Callable[[random.Random], bytes]) -> Callable[[bytes, random.Random], bytes]:
    """Tagged fields in the place of a byte that says that there are none, most often the last one."""

    def tagged(frame: bytes, rnd: random.Random) -> bytes:
        places = [at for at in range(_HEADER_BYTES, len(frame)) if frame[at] == 0]
        if not places:
            return frame
        at = rnd.choice([places[-1], rnd.choice(places)])
        return _sized(frame[4:at] + make(rnd) + frame[at + 1 :])

    return tagged


def varint(value: int) -> bytes:
    """Return an unsigned number as flexible versions write it."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _tag(number: int, data: bytes, claimed: int | None = None) -> bytes:
    return varint(number) + varint(len(data) if claimed is None else claimed) + data


_WAYS: list[Callable[[bytes, random.Random], bytes]] = [
    *map(_put, (b"\0", b"\x01", b"\x7f", b"\x80", b"\xff", b"\xff\xff", b"\x7f\xff", b"\x80\0", b"\0\0")),
    *map(_put, (b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\xff" * 8, b"\xff\xff\xff\xff\x0f")),
    *map(_put, (b"\xff\xff\xff\xff\x7f", b"\x80\x80\x80\x80\x00", b"\xff" * 10)),
    _cut,
    _longer,
    _inserted,
    _tags(lambda rnd: varint(1) + _tag(9_999, bytes(_LARGE))),
    _tags(lambda rnd: varint(2) + _tag(9_999, b"a") * 2),
    _tags(lambda rnd: varint(2) + _tag(0, b"\1") * 2),
    _tags(lambda rnd: varint(2) + _tag(5, b"a") + _tag(4, b"a")),
    _tags(lambda rnd: varint(1) + _tag(rnd.randrange(4), rnd.randbytes(rnd.randrange(20)))),
    _tags(lambda rnd: varint(1) + _tag(7, b"", 2**31 - 1)),
    _tags(lambda rnd: varint(2**31 - 1)),
    _tags(lambda rnd: varint(5_000) + b"".join(_tag(number, b"") for number in range(10_000, 15_000))),
]
