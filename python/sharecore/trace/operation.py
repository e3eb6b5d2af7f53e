"""Operations of a trace, as JSON objects and as objects for the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sharecore.trace.engines import StateBatch


class TraceError(Exception):
    """An invalid operation."""


_KEPT_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Init:
    """Create the partition, from persisted state and limits."""

    start_offset: int
    state_batches: list[StateBatch]
    max_delivery_count: int
    max_inflight: int
    lock_ms: int
    renew_enabled: bool
    dead_letters: bool = False


@dataclass(frozen=True, slots=True)
class Acquire:
    """`fetch_offset` is None for the partition's next fetch offset."""

    member: str
    batches: list[tuple[int, int]]
    fetch_offset: int | None
    max_fetch_records: int
    batch_size: int
    record_limit: bool


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """Acknowledge batches: first and last offset, and a type for all or for each record."""

    member: str
    batches: list[tuple[int, int, bytes]]


@dataclass(frozen=True, slots=True)
class Release:
    """Release a member's records, as when its session closes."""

    member: str


@dataclass(frozen=True, slots=True)
class Advance:
    """Let `ms` milliseconds pass: locks expire."""

    ms: int
    kept: tuple[str, ...] = ()
    """Members whose expired locks are renewed."""
    kept_ms: int = _KEPT_MS


@dataclass(frozen=True, slots=True)
class MoveLogStart:
    """Move the log's start, as retention does."""

    offset: int


@dataclass(frozen=True, slots=True)
class Archive:
    """Archive offsets that have no record for the group."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Configure:
    """New limits, named as in `Partition.configure`."""

    limits: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ConfigureWrites:
    """Hold writes, or fail the next ones with an error."""

    hold: bool
    fail_next: int
    error_code: int


@dataclass(frozen=True, slots=True)
class Complete:
    """Complete held writes; `most` is None for all."""

    most: int | None
    error_code: int


@dataclass(frozen=True, slots=True)
class Letters:
    """Write the dead letters of the oldest `most` operations with any; None for all."""

    most: int | None


@dataclass(frozen=True, slots=True)
class Reload:
    """Load the partition anew from its persisted state."""


Leasing = Acquire | Acknowledge | Release | Advance | MoveLogStart
Administering = Archive | Configure
Persisting = ConfigureWrites | Complete | Letters | Reload
Operation = Init | Leasing | Administering | Persisting


def parse(line: Mapping[str, Any]) -> Operation:
    """Return the operation of a trace's JSON object.

    Raises:
        TraceError: the object is not an operation, or a field is missing or invalid.
    """
    kind = line.get("op")
    if kind not in _PARSERS:
        raise TraceError(f"op is one of {', '.join(_PARSERS)}, not {kind!r}")
    try:
        return _PARSERS[kind](line)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise TraceError(f"malformed {kind}: {type(error).__name__}: {error}") from error


def state_batches(batches: Iterable[Any]) -> list[StateBatch]:
    """Return state batches of a trace, given as objects or as lists."""
    return [
        (int(b["first"]), int(b["last"]), int(b["state"]), int(b["delivery_count"]))
        if isinstance(b, Mapping)
        else (int(b[0]), int(b[1]), int(b[2]), int(b[3]))
        for b in batches
    ]


def _init(line: Mapping[str, Any]) -> Init:
    return Init(
        int(line.get("start_offset", 0)),
        state_batches(line.get("state_batches", ())),
        int(line.get("max_delivery_count", 5)),
        int(line.get("max_inflight", 2000)),
        int(line.get("lock_ms", 30000)),
        bool(line.get("renew_enabled", True)),
        bool(line.get("dead_letters", False)),
    )


def _acquire(line: Mapping[str, Any]) -> Acquire:
    mode = line.get("mode", "batch_optimized")
    if mode not in ("batch_optimized", "record_limit"):
        raise ValueError(f"mode is batch_optimized or record_limit, not {mode!r}")
    fetch_offset = int(line.get("fetch_offset", -1))
    return Acquire(
        str(line["member"]),
        [(int(first), int(last)) for first, last in line["batches"]],
        fetch_offset if fetch_offset >= 0 else None,
        int(line.get("max_fetch_records", 500)),
        int(line.get("batch_size", 500)),
        mode == "record_limit",
    )


def _acknowledge(line: Mapping[str, Any]) -> Acknowledge:
    return Acknowledge(
        str(line["member"]),
        [(int(b["first"]), int(b["last"]), bytes(t & 0xFF for t in b["types"])) for b in line["batches"]],
    )


def _configure(line: Mapping[str, Any]) -> Configure:
    limits = {
        name: int(line[name]) for name in ("max_delivery_count", "max_inflight", "lock_ms") if name in line
    }
    switches = {name: bool(line[name]) for name in ("renew_enabled", "dead_letters") if name in line}
    return Configure({**limits, **switches})


def _configure_writes(line: Mapping[str, Any]) -> ConfigureWrites:
    return ConfigureWrites(
        bool(line.get("hold", False)), int(line.get("fail_next", 0)), int(line.get("error_code", -1))
    )


def _complete(line: Mapping[str, Any]) -> Complete:
    return Complete(int(line["n"]) if "n" in line else None, int(line.get("error_code", 0)))


def _advance(line: Mapping[str, Any]) -> Advance:
    kept = tuple(str(member) for member in line.get("keep", ()))
    return Advance(int(line["ms"]), kept, int(line.get("keep_ms", _KEPT_MS)))


_PARSERS: dict[Any, Callable[[Mapping[str, Any]], Operation]] = {
    "init": _init,
    "acquire": _acquire,
    "ack": _acknowledge,
    "release": lambda line: Release(str(line["member"])),
    "advance": _advance,
    "lso": lambda line: MoveLogStart(int(line["offset"])),
    "archive": lambda line: Archive(int(line["first"]), int(line["last"])),
    "configure": _configure,
    "writes": _configure_writes,
    "complete": _complete,
    "letters": lambda line: Letters(int(line["n"]) if "n" in line else None),
    "reload": lambda line: Reload(),
}
