"""Differences on purpose: docs/decisions/differences-from-apache.md, "Records of a Produce request"."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.differential.produce.cases import Case

_SERVER_ERROR, _TAKEN, _TOO_LARGE, _INVALID_RECORD = -1, 0, 10, 87
_BEHIND = ("behind the stream", "half a block length", "half a head behind", "a head behind", "frame behind")
_TWICE = ("the stream twice", "claims the first", "an empty stream behind")
_LZ4_FIELDS = ("content checksum", "content size")
_SIZES = ("size 0", "huge size", "size 2^31-1", "size one too", "size below any record")

_WRITTEN_ANEW = {"records", "first_ms"}

Told = Mapping[str, Any]


def _refused(ours: Told) -> bool:
    return bool(ours.get("error_code") == _INVALID_RECORD)


def _no_server_error(case: Case, apache: Told, ours: Told) -> bool:
    """Apache Kafka answers UNKNOWN_SERVER_ERROR to what it cannot read."""
    return apache.get("error_code") == _SERVER_ERROR and _refused(ours)


def _record_sizes(case: Case, apache: Told, ours: Told) -> bool:
    """Apache Kafka does not hold the length of a compressed record against its fields; its consumers do."""
    named = any(name in case.name for name in _SIZES) or ": byte " in case.name
    return named and apache.get("error_code") == _TAKEN and _refused(ours)


def _bytes_behind(case: Case, apache: Told, ours: Told) -> bool:
    """Apache Kafka passes over what follows a stream of gzip, snappy or LZ4; other consumers do not."""
    behind = any(name in case.name for name in _BEHIND)
    behind |= case.name.startswith("lz4") and any(name in case.name for name in _TWICE)
    return behind and apache.get("error_code") == _TAKEN and _refused(ours)


def _lz4_sums(case: Case, apache: Told, ours: Told) -> bool:
    """Apache Kafka does not hold the size and the checksum of a whole LZ4 frame against its content."""
    named = case.name.startswith("lz4") and (
        any(name in case.name for name in _LZ4_FIELDS) or ": byte " in case.name
    )
    return named and apache.get("error_code") == _TAKEN and _refused(ours)


def _gzip_flags(case: Case, apache: Told, ours: Told) -> bool:
    """Apache Kafka passes over flags of gzip that no standard knows."""
    named = case.name.startswith("gzip") and ("unknown flags" in case.name or ": byte 3 " in case.name)
    return named and apache.get("error_code") == _TAKEN and _refused(ours)


def _made_anew(case: Case, apache: Told, ours: Told) -> bool:
    """Apache Kafka writes each record anew where the topic is compressed otherwise: what was wrong with it is
    put right, and offsets are counted. Here records stay as they came.
    """
    theirs, own = apache.get("read"), ours.get("read")
    if apache.get("error_code") != _TAKEN or not isinstance(theirs, Mapping):
        return False
    if not isinstance(own, Mapping):
        return _refused(ours) and ("offsets" in case.name or "twice" in case.name)
    return all(own.get(name) == value for name, value in theirs.items() if name not in _WRITTEN_ANEW)


def _too_large_first(case: Case, apache: Told, ours: Told) -> bool:
    """A batch that is kept uncompressed is refused for its size before all of its records have been seen."""
    told = apache.get("error_code"), ours.get("error_code")
    return told == (_INVALID_RECORD, _TOO_LARGE) and "out of 400 bytes" in case.name


_KNOWN: dict[str, Callable[[Case, Told, Told], bool]] = {
    "unreadable records": _no_server_error,
    "length of a compressed record": _record_sizes,
    "bytes behind a stream": _bytes_behind,
    "sums of an LZ4 frame": _lz4_sums,
    "unknown flags of gzip": _gzip_flags,
    "records that are written anew": _made_anew,
    "too large before all is seen": _too_large_first,
}


def explain(case: Case, apache: Told, ours: Told) -> str | None:
    """Return the name of a difference; None where it has none."""
    return next((name for name, shows in _KNOWN.items() if shows(case, apache, ours)), None)
