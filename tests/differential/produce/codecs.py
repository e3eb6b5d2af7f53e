"""Compressed streams written by hand, so that each of their fields can be wrong."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable, Mapping

SNAPPY_JAVA = b"\x82SNAPPY\x00"
LZ4_MAGIC = 0x184D2204
ZSTD_MAGIC = 0xFD2FB528
SKIPPABLE_MAGIC = 0x184D2A50
_PRIMES = (2654435761, 2246822519, 3266489917, 668265263, 374761393)
_SNAPPY_BLOCK_BYTES = 1 << 15
_ZSTD_BLOCK_BYTES = 1 << 17
_MASK = 0xFFFFFFFF


def xxh32(data: bytes) -> int:
    """XXH32 with seed 0, which LZ4 frames use."""
    one, two, three, four, five = _PRIMES
    at = 0
    if len(data) >= 16:
        lanes = [(one + two) & _MASK, two, 0, -one & _MASK]
        while at + 16 <= len(data):
            for lane, word in enumerate(struct.unpack_from("<4I", data, at)):
                lanes[lane] = _rotate((lanes[lane] + word * two) & _MASK, 13) * one & _MASK
            at += 16
        turns = zip(lanes, (1, 7, 12, 18), strict=True)
        value = sum(_rotate(lane, turn) for lane, turn in turns) & _MASK
    else:
        value = five
    value = (value + len(data)) & _MASK
    while at + 4 <= len(data):
        value = _rotate((value + struct.unpack_from("<I", data, at)[0] * three) & _MASK, 17) * four & _MASK
        at += 4
    for byte in data[at:]:
        value = _rotate((value + byte * five) & _MASK, 11) * one & _MASK
    value = (value ^ value >> 15) * two & _MASK
    value = (value ^ value >> 13) * three & _MASK
    return value ^ value >> 16


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK


def gzip_member(
    data: bytes, *, crc_xor: int = 0, size_plus: int = 0, flags: int = 0, extra: bytes = b""
) -> bytes:
    """One member of RFC 1952; `flags` announce `extra`."""
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    head = b"\x1f\x8b\x08" + bytes([flags]) + bytes(4) + b"\x00\xff" + extra
    sizes = struct.pack("<II", zlib.crc32(data) ^ crc_xor, (len(data) + size_plus) & _MASK)
    return head + packer.compress(data) + packer.flush() + sizes


def snappy_block(data: bytes, *, claims: int | None = None) -> bytes:
    """Return a bare block of literals, which claims to expand to `claims` bytes."""
    out = _uvarint(len(data) if claims is None else claims)
    for at in range(0, len(data), 60):
        literal = data[at : at + 60]
        out += bytes([len(literal) - 1 << 2]) + literal
    return out


def snappy_java(data: bytes, *, version: int = 1, compatible: int = 1, size_plus: int = 0) -> bytes:
    """Blocks in the framing of snappy-java; `size_plus` is added to the length of each."""
    out = SNAPPY_JAVA + struct.pack(">ii", version, compatible)
    for at in range(0, len(data), _SNAPPY_BLOCK_BYTES):
        block = snappy_block(data[at : at + _SNAPPY_BLOCK_BYTES])
        out += struct.pack(">i", len(block) + size_plus) + block
    return out


def lz4_frame(
    data: bytes,
    *,
    flags: int = 0x60,
    size_code: int = 4,
    content_size: int | None = None,
    header_xor: int = 0,
    block_xor: int = 0,
    content_xor: int = 0,
    end: bytes = bytes(4),
    compressed: bool = False,
) -> bytes:
    """An LZ4 frame of blocks, each stored or of literals; `flags` name the checksums and sizes it carries."""
    descriptor = bytes([flags, size_code << 4])
    if flags & 0x08:
        descriptor += struct.pack("<Q", len(data) if content_size is None else content_size)
    if flags & 0x01:
        descriptor += bytes(4)
    out = struct.pack("<I", LZ4_MAGIC) + descriptor + bytes([(xxh32(descriptor) >> 8 & 0xFF) ^ header_xor])
    block_bytes = 1 << 7 + 2 * size_code
    for at in range(0, len(data), block_bytes):
        content = data[at : at + block_bytes]
        block = _lz4_literals(content) if compressed else content
        out += struct.pack("<I", len(block) | (0 if compressed else 1 << 31)) + block
        if flags & 0x10:
            out += struct.pack("<I", xxh32(block) ^ block_xor)
    out += end
    if flags & 0x04:
        out += struct.pack("<I", xxh32(data) ^ content_xor)
    return out


def _lz4_literals(data: bytes) -> bytes:
    if len(data) < 15:
        return bytes([len(data) << 4]) + data
    rest = len(data) - 15
    return b"\xf0" + b"\xff" * (rest // 255) + bytes([rest % 255]) + data


def zstd_frame(
    data: bytes,
    *,
    window_log: int = 17,
    content_size: int | None = None,
    descriptor: int = 0,
    checksum: int | None = None,
    last: bool = True,
) -> bytes:
    """Return a Zstandard frame of raw blocks.

    Args:
        content_size: a size that the frame claims, in eight bytes.
        descriptor: more bits of the frame header descriptor.
        checksum: the last four bytes of a frame that has a checksum.
        last: whether the last block says that it is.
    """
    flags = descriptor | (0 if checksum is None else 0x04) | (0 if content_size is None else 0xC0)
    out = struct.pack("<I", ZSTD_MAGIC) + bytes([flags, window_log - 10 << 3])
    if content_size is not None:
        out += struct.pack("<Q", content_size)
    blocks = [data[at : at + _ZSTD_BLOCK_BYTES] for at in range(0, len(data), _ZSTD_BLOCK_BYTES)] or [b""]
    for number, block in enumerate(blocks, 1):
        out += zstd_block(block, last=last and number == len(blocks))
    return out if checksum is None else out + struct.pack("<I", checksum)


def zstd_block(data: bytes, *, last: bool = False, repeat: int = 0) -> bytes:
    """One block, raw; or with `repeat` one that repeats a byte so often."""
    size = repeat or len(data)
    return struct.pack("<I", last | (2 if repeat else 0) | size << 3)[:3] + data


def zstd_of_zeros(head: bytes, zeros: int, tail: bytes) -> bytes:
    """Return a frame of `head`, a multiple of 128 KiB of zeros, and `tail`: 4 bytes for each 128 KiB."""
    out = struct.pack("<I", ZSTD_MAGIC) + bytes([0, 17 - 10 << 3]) + zstd_block(head)
    return out + zstd_block(b"\0", repeat=1 << 17) * (zeros >> 17) + zstd_block(tail, last=True)


def skippable(content: bytes = b"passed over") -> bytes:
    """Return a frame that readers of LZ4 and Zstandard pass over."""
    return struct.pack("<II", SKIPPABLE_MAGIC, len(content)) + content


def _uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


Codec = Callable[[bytes], bytes]
CODECS: Mapping[str, tuple[int, Codec]] = {
    "none": (0, lambda data: data),
    "gzip": (1, gzip.compress),
    "snappy block": (2, snappy_block),
    "snappy": (2, snappy_java),
    "lz4": (3, lz4_frame),
    "zstd": (4, zstd_frame),
}
"""Each codec's number in the attributes of a batch, and what writes it."""
