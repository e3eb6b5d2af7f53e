"""Reads a broker's data directory by docs/store-format.md, with nothing of sharecore's own code."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.harness.checksum import crc32c

_SEGMENT_HEADER = 32


class Damaged(Exception):
    """A file is not as the page says."""


@dataclass
class Batch:
    """A record batch, and where it lies."""

    base: int
    last: int
    max_timestamp: int
    segment: int
    at: int
    bytes: bytes


@dataclass
class Producer:
    """What a log remembers of a producer."""

    epoch: int
    coordinator_epoch: int
    seen_ms: int
    transaction_start: int
    batches: list[tuple[int, ...]]


@dataclass
class Log:
    """One partition; producers and aborted transactions are those of the checkpoint."""

    start: int = 0
    end: int = 0
    cleaned: tuple[int, int, int] = (0, 0, 0)
    producers: dict[int, Producer] = field(default_factory=dict)
    aborted: list[tuple[int, int, int]] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)


@dataclass
class Directory:
    """All that counts in a directory."""

    format: int | None = None
    release: str | None = None
    first_frame: int = 1
    frames: int = 0
    catalog: dict[bytes, bytes] = field(default_factory=dict)
    logs: dict[int, Log] = field(default_factory=dict)
    journals: set[int] = field(default_factory=set)
    compacts: set[int] = field(default_factory=set)
    operations: dict[int, int] = field(default_factory=dict)


class Fields:
    """Little-endian fields, one after the other."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def take(self, count: int) -> bytes:
        if self.at + count > len(self.data):
            raise Damaged("the bytes end early")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, count: int, *, signed: bool = False) -> int:
        return int.from_bytes(self.take(count), "little", signed=signed)

    def sized(self) -> bytes:
        return self.take(self.number(4))

    def numbers(self) -> list[int]:
        return [self.number(8) for _ in range(self.number(4))]

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                value &= (1 << 64) - 1
                return (value >> 1) ^ -(value & 1)


def read(path: Path) -> Directory:
    """Read a directory that no broker is writing to."""
    found = Directory()
    if (path / "format").exists():
        lines = dict(line.split("=", 1) for line in (path / "format").read_text().splitlines())
        found.format, found.release = int(lines["format"]), lines["release"]
    checkpoints = _ids(path, "checkpoint")
    since = 1
    if checkpoints:
        since = checkpoints[-1]
        _read_checkpoint((path / f"{since:016x}.checkpoint").read_bytes(), since, found)
    sealed = set(found.journals)
    _read_journal(path, since, found)
    for segment in sorted(found.compacts | (sealed & found.journals)):
        kind = "compact" if segment in found.compacts else "journal"
        _read_index((path / f"{segment:016x}.{kind}").read_bytes(), segment, found)
    for log in found.logs.values():
        _, covered, replaced_before = log.cleaned
        log.batches = sorted(
            (
                batch
                for batch in log.batches
                if batch.last >= log.start
                and (batch.segment in found.journals or batch.segment in found.compacts)
                and not (batch.base < covered and batch.segment < replaced_before)
            ),
            key=lambda batch: batch.base,
        )
    return found


def _ids(path: Path, suffix: str) -> list[int]:
    return sorted(int(each.stem, 16) for each in path.glob(f"*.{suffix}"))


def _read_checkpoint(data: bytes, name: int, found: Directory) -> None:
    if crc32c(data[:-4]) != int.from_bytes(data[-4:], "little"):
        raise Damaged("checksum of the checkpoint")
    magic, fields = data[:8], Fields(data[:-4], 8)
    if magic not in (b"SCchk-1\n", b"SCchk-2\n") or fields.number(8) != name:
        raise Damaged("beginning of the checkpoint")
    found.first_frame = fields.number(8)
    fields.take(16)
    for _ in range(fields.number(4)):
        segment, is_compact, _ = fields.number(8), fields.number(4), fields.number(8)
        (found.compacts if is_compact else found.journals).add(segment)
    for _ in range(fields.number(4)):
        key = fields.sized()
        found.catalog[key] = fields.sized()
    for _ in range(fields.number(4)):
        log = fields.number(8)
        found.logs[log] = _read_log(fields, compacts=magic == b"SCchk-2\n")
    if fields.at != len(fields.data):
        raise Damaged("end of the checkpoint")


def _read_log(fields: Fields, *, compacts: bool) -> Log:
    log = Log(fields.number(8), fields.number(8))
    if compacts:
        log.cleaned = (fields.number(8), fields.number(8), fields.number(8))
    for _ in range(fields.number(4)):
        producer_id = fields.number(8)
        log.producers[producer_id] = Producer(
            fields.number(4),
            fields.number(4, signed=True),
            fields.number(8),
            fields.number(8, signed=True),
            [tuple(fields.number(n) for n in (4, 4, 8, 4, 8)) for _ in range(fields.number(4))],
        )
    log.aborted = [(fields.number(8), fields.number(8), fields.number(8)) for _ in range(fields.number(4))]
    return log


def _read_journal(path: Path, since: int, found: Directory) -> None:
    segments = [segment for segment in _ids(path, "journal") if segment >= since]
    files = [(segment, (path / f"{segment:016x}.journal").read_bytes()) for segment in segments]
    if files and _first_frame(*files[-1]) is None:
        files.pop()
    frame = found.first_frame
    for number, (segment, data) in enumerate(files):
        if _first_frame(segment, data) != frame:
            raise Damaged(f"segment {segment} does not go on with frame {frame}")
        found.journals.add(segment)
        ends = _first_frame(*files[number + 1]) if number + 1 < len(files) else None
        at = _SEGMENT_HEADER
        while frame != ends and (size := _frame_size(data, at, frame)):
            _apply(data, at, segment, found)
            at, frame = at + size, frame + 1
        if ends is not None and frame != ends:
            raise Damaged(f"frames {frame} to {ends - 1} are missing")
    found.frames = frame - found.first_frame


def _first_frame(segment: int, data: bytes) -> int | None:
    """Return the number in a segment's header; None where the header is not whole."""
    magic, named, first, crc = struct.unpack("<8sQQI", data[:28].ljust(28, b"\0"))
    whole = magic == b"SCseg-1\n" and named == segment and crc == crc32c(data[:24])
    return first if whole else None


def _frame_size(data: bytes, at: int, number: int) -> int:
    """Bytes of the frame at `at`, if it is whole and its turn; else 0."""
    if data[at : at + 4] != b"SCfr" or at + 32 > len(data):
        return 0
    crc, body, _, found = struct.unpack_from("<IIIQ", data, at + 4)
    end = at + 32 + body
    whole = end <= len(data) and crc == crc32c(data[at + 8 : end])
    return 32 + body if whole and found == number else 0


def _apply(data: bytes, at: int, segment: int, found: Directory) -> None:
    body, count = struct.unpack_from("<II", data, at + 8)
    fields = Fields(data[: at + 32 + body], at + 32)
    for _ in range(count):
        operation = fields.number(1)
        found.operations[operation] = found.operations.get(operation, 0) + 1
        if operation == 1:
            log, _, size = fields.number(8), fields.number(8), fields.number(4)
            begins = fields.at
            if log in found.logs:
                batch = _batch(fields.take(size), segment, begins)
                found.logs[log].batches.append(batch)
                found.logs[log].end = batch.last + 1
            else:
                fields.take(size)
        elif operation == 2:
            key_size, value_size = fields.number(4), fields.number(4)
            key = fields.take(key_size)
            found.catalog[key] = fields.take(value_size)
        elif operation == 3:
            found.catalog.pop(fields.sized(), None)
        elif operation == 4:
            found.logs[fields.number(8)] = Log()
        elif operation == 5:
            found.logs.pop(fields.number(8), None)
        elif operation == 6:
            log, offset = fields.number(8), fields.number(8)
            if log in found.logs:
                found.logs[log].start = max(found.logs[log].start, offset)
        elif operation == 7:
            found.compacts |= set(fields.numbers())
            removed = set(fields.numbers())
            found.compacts -= removed
            found.journals -= removed
        elif operation == 8:
            log, cleaned = fields.number(8), (fields.number(8), fields.number(8), fields.number(8))
            found.compacts |= set(fields.numbers())
            fields.numbers()
            if log in found.logs:
                found.logs[log].cleaned = cleaned
        else:
            raise Damaged(f"operation {operation}")
    if fields.at != len(fields.data):
        raise Damaged("end of a frame")


def _read_index(data: bytes, segment: int, found: Directory) -> None:
    magic, named, at, size, crc, own_crc = struct.unpack("<8sQIIII", data[-32:])
    if magic != b"SCidx-1\n" or named != segment or own_crc != crc32c(data[-32:-4]):
        raise Damaged(f"trailer of segment {segment}")
    if crc != crc32c(data[at : at + size]):
        raise Damaged(f"directory of segment {segment}")
    for log, first, last, newest, stored, begins, length, block_crc in struct.iter_unpack(
        "<QqqqQIII", data[at : at + size]
    ):
        block = data[begins : begins + length]
        if crc32c(block) != block_crc:
            raise Damaged(f"a block of segment {segment}")
        batches = list(_block(block, data, segment))
        listed = (batches[0].base, batches[-1].last, max(each.max_timestamp for each in batches))
        if listed != (first, last, newest) or sum(len(each.bytes) for each in batches) != stored:
            raise Damaged(f"a block of segment {segment} is not as it is listed")
        if log in found.logs:
            found.logs[log].batches += batches


def _block(block: bytes, data: bytes, segment: int) -> Iterator[Batch]:
    fields = Fields(block)
    end = at = timestamp = 0
    while fields.at < len(block):
        base = end + fields.varint()
        last = base + fields.varint()
        at += fields.varint()
        size = fields.varint()
        timestamp += fields.varint()
        batch = _batch(data[at : at + size], segment, at)
        if (batch.base, batch.last, batch.max_timestamp) != (base, last, timestamp):
            raise Damaged(f"the batch at byte {at} of segment {segment} is not as it is listed")
        yield batch
        end, at = last + 1, at + size


def _batch(data: bytes, segment: int, at: int) -> Batch:
    """Return a record batch of Kafka's format v2, by what stands in its header."""
    base, length = struct.unpack_from(">qi", data)
    magic, crc = struct.unpack_from(">bI", data, 16)
    last_delta, _, newest = struct.unpack_from(">iqq", data, 23)
    if length + 12 != len(data) or magic != 2 or crc != crc32c(data[21:]):
        raise Damaged(f"the batch at byte {at} of segment {segment}")
    return Batch(base, base + last_delta, newest, segment, at, data)
