"""XXH3, 64 bits, without a seed (specified in xxHash's doc/xxhash_spec.md).

A Python implementation: it takes some tens of microseconds, and runs only when a group's topics change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct, unpack_from

_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_P32 = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
_P64 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
_MIX_1, _MIX_2 = 0x165667919E3779F9, 0x9FB21C651E98DF25
_MASK = 2**64 - 1
_STRIPE, _BLOCK = 64, 1024
_EIGHT = Struct("<8Q")
_LANES = (_P32[2], _P64[0], _P64[1], _P64[2], _P64[3], _P32[1], _P64[4], _P32[0])


def xxh3_64(data: bytes) -> int:
    """Return the hash of at least four bytes as an unsigned number."""
    size = len(data)
    if size > 240:
        return _long(data)
    if size > 128:
        return _avalanche(_medium(data))
    if size > 16:
        total = size * _P64[0]
        for step in range((size - 1) // 32 + 1):
            total += _mix(data, 16 * step, 32 * step) + _mix(data, size - 16 * (step + 1), 32 * step + 16)
        return _avalanche(total & _MASK)
    if size > 8:
        low = _word(data, 0) ^ _word(_SECRET, 24) ^ _word(_SECRET, 32)
        high = _word(data, size - 8) ^ _word(_SECRET, 40) ^ _word(_SECRET, 48)
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _avalanche((size + swapped + high + _fold(low, high)) & _MASK)
    return _short(data)


def _word(data: bytes, at: int) -> int:
    word: int = unpack_from("<Q", data, at)[0]
    return word


def _fold(a: int, b: int) -> int:
    product = a * b
    return (product & _MASK) ^ (product >> 64)


def _mix(data: bytes, at: int, secret_at: int) -> int:
    return _fold(
        _word(data, at) ^ _word(_SECRET, secret_at), _word(data, at + 8) ^ _word(_SECRET, secret_at + 8)
    )


def _avalanche(value: int) -> int:
    value ^= value >> 37
    value = value * _MIX_1 & _MASK
    return value ^ value >> 32


def _short(data: bytes) -> int:
    first, last = int.from_bytes(data[:4], "little"), int.from_bytes(data[-4:], "little")
    value = (last + (first << 32)) ^ _word(_SECRET, 8) ^ _word(_SECRET, 16)
    value ^= _rotated(value, 49) ^ _rotated(value, 24)
    value = value * _MIX_2 & _MASK
    value ^= (value >> 35) + len(data)
    value = value * _MIX_2 & _MASK
    return value ^ value >> 28


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> (64 - by)) & _MASK


def _medium(data: bytes) -> int:
    total = len(data) * _P64[0]
    total += sum(_mix(data, 16 * step, 16 * step) for step in range(8))
    total = _avalanche(total & _MASK)
    total += sum(_mix(data, 16 * step, 16 * (step - 8) + 3) for step in range(8, len(data) // 16))
    return (total + _mix(data, len(data) - 16, 119)) & _MASK


def _long(data: bytes) -> int:
    lanes: Sequence[int] = _LANES
    last = len(data) - _STRIPE
    for block in range(0, len(data), _BLOCK):
        for stripe in _stripes(block, len(data)):
            lanes = _accumulated(lanes, data, stripe, (stripe - block) // 8)
        if block + _BLOCK < len(data):
            keys = _EIGHT.unpack_from(_SECRET, 128)
            lanes = [
                (lane ^ lane >> 47 ^ key) * _P32[0] & _MASK for lane, key in zip(lanes, keys, strict=True)
            ]
    lanes = _accumulated(lanes, data, last, 121)
    keys = _EIGHT.unpack_from(_SECRET, 11)
    mixed = [lane ^ key for lane, key in zip(lanes, keys, strict=True)]
    total = len(data) * _P64[0] + sum(_fold(mixed[at], mixed[at + 1]) for at in range(0, 8, 2))
    return _avalanche(total & _MASK)


def _stripes(block: int, size: int) -> Iterator[int]:
    """Return the offsets of a block's stripes; the last bytes of the input form a separate stripe."""
    if block + _BLOCK < size:
        yield from range(block, block + _BLOCK, _STRIPE)
    else:
        count = (size - 1 - block) // _STRIPE
        yield from range(block, block + count * _STRIPE, _STRIPE)


def _accumulated(lanes: Sequence[int], data: bytes, at: int, secret_at: int) -> list[int]:
    words = _EIGHT.unpack_from(data, at)
    keys = _EIGHT.unpack_from(_SECRET, secret_at)
    return [
        (lanes[lane] + words[lane ^ 1] + ((keyed := words[lane] ^ keys[lane]) & 0xFFFFFFFF) * (keyed >> 32))
        & _MASK
        for lane in range(8)
    ]
