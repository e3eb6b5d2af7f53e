"""Batches that are not what they say, several hundred of them, the same ones for each seed."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.differential.produce.codecs import (
    CODECS,
    gzip_member,
    lz4_frame,
    skippable,
    snappy_block,
    snappy_java,
    zstd_frame,
    zstd_of_zeros,
)
from tests.harness.checksum import crc32c

PLAIN, COMPACTED, APPEND_TIME, RECENT = "plain", "compacted", "append-time", "recent"
"""Topics, named after their settings."""
TOPICS = {
    PLAIN: {},
    COMPACTED: {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1"},
    APPEND_TIME: {"message.timestamp.type": "LogAppendTime"},
    RECENT: {"message.timestamp.before.max.ms": "3600000", "message.timestamp.after.max.ms": "3600000"},
}
_HEAD = struct.Struct(">qiibIhiqqqhii")
_HIGHEST = 2**31 - 1
LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, HORIZON = 0x08, 0x10, 0x20, 0x40
_BOMB_BYTES = 8 << 20


@dataclass(frozen=True)
class Case:
    """One batch for one topic."""

    name: str
    records: bytes = field(repr=False)
    topic: str = PLAIN
    version: int = 9


@dataclass(frozen=True)
class Header:
    """What a batch says about its records."""

    attributes: int = 0
    count: int = 3
    last_delta: int | None = None
    first_ms: int = 0
    max_ms: int | None = None
    base: int = 0
    producer: tuple[int, int, int] = (-1, -1, -1)

    def on(self, payload: bytes) -> bytes:
        """Return the whole batch, with the right length and checksum."""
        last = self.count - 1 if self.last_delta is None else self.last_delta
        newest = self.first_ms + 2 if self.max_ms is None else self.max_ms
        head = (self.attributes, last, self.first_ms, newest, *self.producer, self.count)
        checked = struct.pack(">hiqqqhii", *head) + payload
        return struct.pack(">qiibI", self.base, len(checked) + 9, -1, 2, crc32c(checked)) + checked


def varint(value: int) -> bytes:
    """A zigzag number as records have them."""
    rest = (value << 1 ^ value >> 63) & (1 << 64) - 1
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def sized(content: bytes | None) -> bytes:
    return varint(-1) if content is None else varint(len(content)) + content


def inner(
    delta: int,
    *,
    time: int | None = None,
    key: bytes | None = b"k",
    value: bytes | None = b"value",
    attributes: int = 0,
    headers: bytes = b"\x02" + sized(b"h") + sized(b"1"),
) -> bytes:
    """Return a record behind its length."""
    head = bytes([attributes]) + varint(delta if time is None else time) + varint(delta)
    return head + sized(key) + sized(value) + headers


def record(
    delta: int, *, time: int | None = None, key: bytes | None = b"k", headers: bytes | None = None
) -> bytes:
    return sized(
        inner(delta, time=time, key=key) if headers is None else inner(delta, key=key, headers=headers)
    )


THREE = record(0) + record(1) + record(2)


def cases(now_ms: int, seed: int = 1, flips: int = 40) -> list[Case]:
    """All cases.

    Args:
        now_ms: time of the records.
        flips: batches a codec whose compressed bytes have one that is wrong.
    """
    return [
        *(case for codec in CODECS for case in _of_each_codec(codec, now_ms)),
        *_of_gzip(now_ms),
        *_of_snappy(now_ms),
        *_of_lz4(now_ms),
        *_of_zstd(now_ms),
        *_mislabeled(now_ms),
        *_older_formats(now_ms),
        *_flipped(now_ms, Random(seed), flips),
    ]


def _of_each_codec(codec: str, now_ms: int) -> Iterator[Case]:
    number, compress = CODECS[codec]

    def case(name: str, payload: bytes, topic: str = PLAIN, version: int = 9, **fields: Any) -> Case:
        more: dict[str, Any] = {"attributes": 0, "first_ms": now_ms} | fields
        more["attributes"] |= number
        return Case(f"{codec}: {name}", Header(**more).on(payload), topic, version)

    def records(name: str, content: bytes, topic: str = PLAIN, **fields: Any) -> Case:
        return case(name, compress(content), topic, **fields)

    for topic in TOPICS:
        yield records(f"right, {topic}", THREE, topic)
    for version in (3, 7, 12):
        yield case(f"right, version {version}", compress(THREE), version=version)
    for count in (1, 2, 4, 1_000_000, _HIGHEST):
        yield records(f"claims {count} of 3", THREE, count=count)
    yield records("claims 2^31-1 of 3, compacted", THREE, COMPACTED, count=_HIGHEST)
    yield records("claims 0", b"", count=0)
    yield records("claims 1 of none", b"", count=1)
    yield records("claims -1", THREE, count=-1)
    yield records("count without last offset", THREE, last_delta=100)
    yield records("last offset without count", THREE, count=4, last_delta=2)
    yield records("last offset below 0", THREE, last_delta=-5)
    for deltas in ((2, 1, 0), (0, 0, 0), (0, 1, 500), (0, -1, -2), (1, 2, 3), (0, 2, 1), (0, 1, _HIGHEST)):
        for topic in (PLAIN, APPEND_TIME):
            content = b"".join(record(delta, time=at) for at, delta in enumerate(deltas))
            yield records(f"offsets {deltas}, {topic}", content, topic)
    for name, behind in {"zero": b"\0", "bytes": b"zz", "record": record(3), "zeros": bytes(100)}.items():
        yield records(f"{name} behind the last record", THREE + behind)
    for name, first in _odd_records(0).items():
        yield records(f"first record: {name}", first + record(1) + record(2))
    for name, last in _odd_records(2).items():
        yield records(f"last record: {name}", record(0) + record(1) + last)
    for name, headers in _headers().items():
        yield records(f"headers: {name}", record(0) + record(1, headers=headers) + record(2))
    for place in range(3):
        content = b"".join(record(delta, key=None if delta == place else b"k") for delta in range(3))
        yield records(f"record {place} without a key", content, COMPACTED)
    yield records("no record with a key", b"".join(record(d, key=None) for d in range(3)), COMPACTED)
    yield records("control", THREE, attributes=CONTROL)
    yield records("control of a transaction", THREE, attributes=CONTROL | TRANSACTIONAL, producer=(1, 0, 0))
    yield records("transaction of nobody", THREE, attributes=TRANSACTIONAL)
    yield records("producer without sequence", THREE, producer=(5, 0, -1))
    yield records("producer, claims 5 of 3", THREE, producer=(6, 0, 0), count=5)
    yield records("delete horizon", THREE, attributes=HORIZON)
    yield records("broker's time", THREE, attributes=LOG_APPEND_TIME)
    yield records("broker's time, compacted", THREE, COMPACTED, attributes=LOG_APPEND_TIME)
    yield records("unknown attributes", THREE, attributes=0x7F80)
    yield records("base offset 77", THREE, base=77)
    for shift in (-(10**8), 10**8, -now_ms - 1, 2**62):
        for topic in (PLAIN, RECENT, APPEND_TIME):
            fields = {"first_ms": now_ms + shift, "max_ms": now_ms}
            yield records(f"times {shift} from now, {topic}", THREE, topic, **fields)
    yield records("max time too low", THREE, RECENT, max_ms=now_ms - 10**9)
    yield records("max time too high", THREE, RECENT, max_ms=now_ms + 10**9)
    yield records("one record too old", record(0) + record(1, time=-(10**8)) + record(2), RECENT)
    mixed = record(0, key=None) + record(1, time=2**60) + record(2)
    yield records("one without a key, one too new", mixed, COMPACTED)
    yield records("one record too new", record(0) + record(1, time=10**8) + record(2), RECENT)
    yield records("times that overflow", record(0, time=2**63 - 1) + record(1) + record(2))
    whole = compress(THREE)
    for cut in (1, 4, 6, 8, 9, len(whole) // 2, len(whole)):
        yield case(f"{cut} bytes cut off", whole[:-cut])
        yield case(f"{cut} bytes cut off, compacted", whole[:-cut], COMPACTED)
    for name, behind in {"zeros": bytes(8), "garbage": b"\xff" * 40, "byte": b"\1"}.items():
        yield case(f"{name} behind the stream", whole + behind)
        yield case(f"{name} behind the stream, compacted", whole + behind, COMPACTED)
    yield case("the stream twice", whole * 2)
    yield case("the stream twice, of 6", whole * 2, count=6)
    yield case("in two streams", compress(record(0)) + compress(record(1) + record(2)))
    yield case("in two streams, cut in a record", compress(THREE[:10]) + compress(THREE[10:]))
    yield case("in two streams, claims the first", compress(record(0)) + compress(record(1)), count=1)
    yield case("an empty stream behind", whole + compress(b""))
    yield case("an empty stream before", compress(b"") + whole)
    yield records("a stream of garbage", b"\xff" * 100)
    yield case("garbage", b"garbage!" * 4)
    large = sized(inner(0, value=bytes(_BOMB_BYTES >> 5)))
    yield records("large record", large, count=1)
    yield records("large record, claims 2", large, count=2)


def _odd_records(delta: int) -> dict[str, bytes]:
    whole = inner(delta)
    size = len(whole)
    head, key, value = b"\0\0" + varint(delta), sized(b"k"), sized(b"v")
    return {
        "negative size": varint(-5),
        "size 0": varint(0) + whole,
        "huge size": varint(2**30) + whole,
        "size 2^31-1": varint(_HIGHEST) + whole,
        "size of 64 bits": varint(2**40) + whole,
        "size one too small": varint(size - 1) + whole,
        "size one too large": varint(size + 1) + whole,
        "size below any record": varint(3) + whole,
        "longer than its fields": varint(size + 4) + whole + b"more",
        "endless size": b"\xff" * 12,
        "padded size": bytes([varint(size)[0] | 0x80, 0x80, 0]) + whole,
        "attributes": sized(inner(delta, attributes=0xFF)),
        "padded offset": sized(b"\0\0" + bytes([2 * delta | 0x80, 0x80, 0x80, 0]) + key + value + b"\0"),
        "offset padded to 6 bytes": sized(
            b"\0\0" + bytes([2 * delta | 0x80, *[0x80] * 4, 0]) + key + value + b"\0"
        ),
        "offset of 64 bits": sized(b"\0\0" + varint(2**40) + key + value + b"\0"),
        "endless time": sized(b"\0" + b"\xff" * 11 + b"\0" + key + value + b"\0"),
        "key length -2": sized(head + varint(-2) + value + b"\0"),
        "key length -2^31": sized(head + varint(-(2**31)) + value + b"\0"),
        "key behind the record": sized(head + varint(100) + value + b"\0"),
        "key of 2 GB": sized(head + varint(_HIGHEST) + value + b"\0"),
        "value length -2": sized(head + key + varint(-2) + b"\0"),
        "value behind the record": sized(head + key + varint(100) + b"v\0"),
        "no value": sized(inner(delta, value=None)),
        "empty key and value": sized(inner(delta, key=b"", value=b"")),
        "no headers field": sized(head + key + value),
    }


def _headers() -> dict[str, bytes]:
    return {
        "none": b"\0",
        "count -1": varint(-1),
        "count -2^31": varint(-(2**31)),
        "count 2 of 1": varint(2) + sized(b"h") + sized(b"1"),
        "count 0 of 1": varint(0) + sized(b"h") + sized(b"1"),
        "count 2^31-1": varint(_HIGHEST) + sized(b"h") + sized(b"1"),
        "name length -1": varint(1) + varint(-1) + sized(b"1"),
        "name length -2": varint(1) + varint(-2) + sized(b"1"),
        "name behind the record": varint(1) + varint(100) + sized(b"1"),
        "name that is not UTF-8": varint(1) + sized(b"\xff\xfe") + sized(b"1"),
        "empty name": varint(1) + sized(b"") + sized(b"1"),
        "no value": varint(1) + sized(b"h") + varint(-1),
        "value length -2": varint(1) + sized(b"h") + varint(-2),
        "value behind the record": varint(1) + sized(b"h") + varint(100) + b"1",
        "a thousand": varint(1000) + (sized(b"h") + sized(b"1")) * 1000,
    }


def _streams(codec: str, now_ms: int, streams: dict[str, bytes]) -> Iterator[Case]:
    header = Header(attributes=CODECS[codec][0], first_ms=now_ms)
    for topic in (PLAIN, COMPACTED):
        for name, payload in streams.items():
            yield Case(f"{codec} stream: {name}, {topic}", header.on(payload), topic)


def _of_gzip(now_ms: int) -> Iterator[Case]:
    whole = gzip_member(THREE)
    yield from _streams(
        "gzip",
        now_ms,
        {
            "wrong checksum": gzip_member(THREE, crc_xor=1),
            "wrong size": gzip_member(THREE, size_plus=1),
            "name": gzip_member(THREE, flags=8, extra=b"name\0"),
            "extra field": gzip_member(THREE, flags=4, extra=b"\2\0xx"),
            "endless name": gzip_member(THREE, flags=8)[:10] + b"n" * 50,
            "unknown flags": gzip_member(THREE, flags=0xE0),
            "wrong method": whole[:2] + b"\7" + whole[3:],
            "wrong magic": b"\x1f\x8c" + whole[2:],
            "head alone": whole[:10],
            "wrong checksum of an empty member behind": whole + gzip_member(b"", crc_xor=1),
            "half a head behind": whole + whole[:5],
            "a head behind": whole + whole[:10],
            "no compression": gzip.compress(THREE, 0),
        },
    )


def _of_snappy(now_ms: int) -> Iterator[Case]:
    whole = snappy_java(THREE)
    yield from _streams(
        "snappy",
        now_ms,
        {
            "version 2": snappy_java(THREE, version=2),
            "version 0": snappy_java(THREE, version=0),
            "compatible with 2": snappy_java(THREE, compatible=2),
            "block length too large": snappy_java(THREE, size_plus=1),
            "block length too small": snappy_java(THREE, size_plus=-1),
            "negative block length": whole[:16] + struct.pack(">i", -1),
            "block length 2^31-1": whole[:16] + struct.pack(">i", _HIGHEST) + whole[20:],
            "empty block": whole + bytes(4),
            "empty block between": whole[:16] + bytes(4) + whole[16:],
            "block of nothing": whole + struct.pack(">i", 1) + b"\0",
            "head alone": whole[:16],
            "half a head": whole[:10],
            "half a block length": whole + b"\0\0",
            "claims 2^32-1": b"\xff\xff\xff\xff\x0f" + bytes(20),
            "claims 2^31-1": b"\xff\xff\xff\xff\x07" + bytes(20),
            "claims one too many": snappy_block(THREE, claims=len(THREE) + 1),
            "claims one too few": snappy_block(THREE, claims=len(THREE) - 1),
            "block claims one too many": whole[:16] + sized_block(snappy_block(THREE, claims=len(THREE) + 1)),
            "block claims 2^30": whole[:16] + sized_block(snappy_block(THREE, claims=2**30)),
            "copy from before the start": whole[:16] + sized_block(b"\x0a\x01\x01" + b"x" * 8),
        },
    )


def sized_block(block: bytes) -> bytes:
    return struct.pack(">i", len(block)) + block


def _of_lz4(now_ms: int) -> Iterator[Case]:
    whole = lz4_frame(THREE)
    yield from _streams(
        "lz4",
        now_ms,
        {
            "literals": lz4_frame(THREE, compressed=True),
            "content checksum": lz4_frame(THREE, flags=0x64),
            "wrong content checksum": lz4_frame(THREE, flags=0x64, content_xor=1),
            "block checksums": lz4_frame(THREE, flags=0x70),
            "wrong block checksum": lz4_frame(THREE, flags=0x70, block_xor=1),
            "content size": lz4_frame(THREE, flags=0x68),
            "wrong content size": lz4_frame(THREE, flags=0x68, content_size=len(THREE) + 1),
            "huge content size": lz4_frame(THREE, flags=0x68, content_size=2**62),
            "dependent blocks": lz4_frame(THREE, flags=0x40),
            "dictionary": lz4_frame(THREE, flags=0x61),
            "reserved flag": lz4_frame(THREE, flags=0x62),
            "version 0": lz4_frame(THREE, flags=0x20),
            "wrong header checksum": lz4_frame(THREE, header_xor=1),
            "blocks of 4 MB": lz4_frame(THREE, size_code=7),
            "block size code 3": lz4_frame(THREE, size_code=3),
            "no end mark": lz4_frame(THREE, end=b""),
            "half an end mark": lz4_frame(THREE, end=b"\0\0"),
            "huge block": whole[:7] + struct.pack("<I", 0x7FFFFFFF) + whole[11:],
            "block larger than its frame allows": whole[:7]
            + struct.pack("<I", (70_000) | 1 << 31)
            + bytes(70_000),
            "match from before the start": whole[:7]
            + struct.pack("<I", 6)
            + b"\x1ax\xff\xff\x00\x00"
            + bytes(4),
            "magic of legacy frames": struct.pack("<I", 0x184C2102) + whole[4:],
            "skippable frame before": skippable() + whole,
            "skippable frame behind": whole + skippable(),
            "skippable frame alone": skippable(),
        },
    )


def _of_zstd(now_ms: int) -> Iterator[Case]:
    whole = zstd_frame(THREE)
    yield from _streams(
        "zstd",
        now_ms,
        {
            "content size": zstd_frame(THREE, content_size=len(THREE)),
            "wrong content size": zstd_frame(THREE, content_size=len(THREE) + 1),
            "huge content size": zstd_frame(THREE, content_size=2**62),
            "wrong checksum": zstd_frame(THREE, checksum=1),
            "reserved flag": zstd_frame(THREE, descriptor=0x08),
            "unused flag": zstd_frame(THREE, descriptor=0x10),
            "no last block": zstd_frame(THREE, last=False),
            "no last block, end of another frame": zstd_frame(THREE, last=False) + zstd_frame(b""),
            "reserved block": whole[:6] + struct.pack("<I", 1 | 3 << 1 | 8 << 3)[:3] + bytes(8),
            "block larger than its window": zstd_frame(bytes(2000), window_log=10),
            "skippable frame before": skippable() + whole,
            "skippable frame behind": whole + skippable(),
            "skippable frame alone": skippable(),
            "cut skippable frame behind": whole + skippable()[:-3],
            "skippable frame of 4 GB behind": whole + struct.pack("<II", 0x184D2A50, 0xFFFFFFFF),
            "magic of version 0.7": struct.pack("<I", 0xFD2FB527) + whole[4:],
            **{
                f"window of 2^{log} bytes": zstd_frame(THREE, window_log=log)
                for log in (10, 26, 27, 28, 31, 41)
            },
        },
    )
    value = _BOMB_BYTES
    front = b"\0\0\0" + sized(b"k") + varint(value)
    head = varint(len(front) + value + 1) + front
    for count in (1, 2):
        header = Header(attributes=4, first_ms=now_ms, count=count)
        for topic in (PLAIN, COMPACTED):
            name = f"zstd: a record of 8 MB out of 400 bytes, claims {count}, {topic}"
            yield Case(name, header.on(zstd_of_zeros(head, value, b"\0")), topic)


def _mislabeled(now_ms: int) -> Iterator[Case]:
    for written, (_, compress) in CODECS.items():
        for label in range(8):
            header = Header(attributes=label, first_ms=now_ms)
            yield Case(f"{written} called {label}", header.on(compress(THREE)))
    whole = Header(attributes=1, first_ms=now_ms).on(gzip.compress(THREE))
    yield Case("two batches", whole * 2)
    yield Case("a batch and bytes", whole + b"abc")
    yield Case("half a batch", whole[:40])
    yield Case("wrong checksum", whole[:-1] + bytes([whole[-1] ^ 1]))
    yield Case("wrong checksum of claims", struct.pack(">i", 9).join((whole[:57], whole[61:])))


def _older_formats(now_ms: int) -> Iterator[Case]:
    for magic in (0, 1):
        message = _message(magic, 0, b"k", b"value", now_ms)
        for version in (3, 9):
            yield Case(f"format {magic}, version {version}", message, version=version)
            wrapped = _message(magic, 1, None, gzip.compress(message), now_ms)
            yield Case(f"format {magic} compressed, version {version}", wrapped, version=version)
        yield Case(f"format {magic}, compacted", message, COMPACTED)
        yield Case(f"format {magic} cut", message[:-2])


def _message(magic: int, attributes: int, key: bytes | None, value: bytes, now_ms: int) -> bytes:
    from zlib import crc32

    time = struct.pack(">q", now_ms) if magic else b""
    fields = b"".join(
        struct.pack(">i", -1) if each is None else struct.pack(">i", len(each)) + each
        for each in (key, value)
    )
    checked = struct.pack(">bb", magic, attributes) + time + fields
    return struct.pack(">qiI", 0, len(checked) + 4, crc32(checked)) + checked


def _flipped(now_ms: int, random: Random, count: int) -> Iterator[Case]:
    for codec, (number, compress) in CODECS.items():
        header = Header(attributes=number, first_ms=now_ms)
        whole = compress(THREE)
        for _ in range(count):
            at, value = random.randrange(len(whole)), random.randrange(1, 256)
            payload = whole[:at] + bytes([whole[at] ^ value]) + whole[at + 1 :]
            yield Case(f"{codec}: byte {at} xor {value:#x}", header.on(payload))
