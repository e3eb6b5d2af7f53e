"""Operations of a trace, as JSON objects and as objects for the driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from sharecore.trace.engines import Configurable, StateBatch

Line = Mapping[str, object]
"""A trace's JSON object."""


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
    """New limits, named as in `Partition.configure`; None: unchanged."""

    max_delivery_count: int | None = None
    max_inflight: int | None = None
    lock_ms: int | None = None
    renew_enabled: bool | None = None
    dead_letters: bool | None = None

    def apply(self, partition: Configurable) -> None:
        """Give a partition the limits."""
        partition.configure(**asdict(self))

    def over(self, init: Init) -> Init:
        """Return the initial limits with these in their place."""
        return replace(init, **{name: value for name, value in asdict(self).items() if value is not None})


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


def parse(line: Line) -> Operation:
    """Return the operation of a trace's JSON object.

    Raises:
        TraceError: the object is not an operation, or a field is missing or invalid.
    """
    kind = line.get("op")
    if not isinstance(kind, str) or kind not in _PARSERS:
        raise TraceError(f"op is one of {', '.join(_PARSERS)}, not {kind!r}")
    try:
        return _PARSERS[kind](line)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise TraceError(f"malformed {kind}: {type(error).__name__}: {error}") from error


def state_batches(batches: object) -> list[StateBatch]:
    """Return state batches of a trace, given as objects or as lists."""
    found = []
    for batch in _list(batches):
        if isinstance(batch, Mapping):
            fields = [batch["first"], batch["last"], batch["state"], batch["delivery_count"]]
        else:
            fields = list(_list(batch))
        first, last, state, count = map(integer, fields[:4])
        found.append((first, last, state, count))
    return found


def integer(value: object) -> int:
    """Return a number of a trace; raise TypeError if it is none."""
    if not isinstance(value, int | float | str):
        raise TypeError(f"{value!r} is not a number")
    return int(value)


def _list(value: object) -> Sequence[object]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise TypeError(f"{value!r} is not a list")
    return value


def _pair(value: object) -> tuple[int, int]:
    first, last = map(integer, _list(value))
    return first, last


def _init(line: Line) -> Init:
    return Init(
        integer(line.get("start_offset", 0)),
        state_batches(line.get("state_batches", ())),
        integer(line.get("max_delivery_count", 5)),
        integer(line.get("max_inflight", 2000)),
        integer(line.get("lock_ms", 30000)),
        bool(line.get("renew_enabled", True)),
        bool(line.get("dead_letters", False)),
    )


def _acquire(line: Line) -> Acquire:
    mode = line.get("mode", "batch_optimized")
    if mode not in ("batch_optimized", "record_limit"):
        raise ValueError(f"mode is batch_optimized or record_limit, not {mode!r}")
    fetch_offset = integer(line.get("fetch_offset", -1))
    return Acquire(
        str(line["member"]),
        [_pair(batch) for batch in _list(line["batches"])],
        fetch_offset if fetch_offset >= 0 else None,
        integer(line.get("max_fetch_records", 500)),
        integer(line.get("batch_size", 500)),
        mode == "record_limit",
    )


def _acknowledge(line: Line) -> Acknowledge:
    batches = []
    for batch in _list(line["batches"]):
        if not isinstance(batch, Mapping):
            raise TypeError(f"{batch!r} is not an object")
        types = bytes(integer(each) & 0xFF for each in _list(batch["types"]))
        batches.append((integer(batch["first"]), integer(batch["last"]), types))
    return Acknowledge(str(line["member"]), batches)


def _configure(line: Line) -> Configure:
    def limit(name: str) -> int | None:
        return integer(line[name]) if name in line else None

    def switch(name: str) -> bool | None:
        return bool(line[name]) if name in line else None

    return Configure(
        limit("max_delivery_count"),
        limit("max_inflight"),
        limit("lock_ms"),
        switch("renew_enabled"),
        switch("dead_letters"),
    )


def _configure_writes(line: Line) -> ConfigureWrites:
    return ConfigureWrites(
        bool(line.get("hold", False)),
        integer(line.get("fail_next", 0)),
        integer(line.get("error_code", -1)),
    )


def _complete(line: Line) -> Complete:
    return Complete(integer(line["n"]) if "n" in line else None, integer(line.get("error_code", 0)))


def _advance(line: Line) -> Advance:
    kept = tuple(str(member) for member in _list(line.get("keep", ())))
    return Advance(integer(line["ms"]), kept, integer(line.get("keep_ms", _KEPT_MS)))


_PARSERS: dict[str, Callable[[Line], Operation]] = {
    "init": _init,
    "acquire": _acquire,
    "ack": _acknowledge,
    "release": lambda line: Release(str(line["member"])),
    "advance": _advance,
    "lso": lambda line: MoveLogStart(integer(line["offset"])),
    "archive": lambda line: Archive(integer(line["first"]), integer(line["last"])),
    "configure": _configure,
    "writes": _configure_writes,
    "complete": _complete,
    "letters": lambda line: Letters(integer(line["n"]) if "n" in line else None),
    "reload": lambda line: Reload(),
}
