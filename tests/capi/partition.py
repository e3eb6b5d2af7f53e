"""The interface of `sharecore._core.Partition` on top of the C ABI, so that the trace driver can drive it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.capi.library import load

from sharecore.errors import ErrorCode, KafkaError
from sharecore.trace.engines import Engine, StateBatch

ffi, lib = load()
_AT_ONCE, _NEVER = -(2**63), 2**63 - 1
_FIRST_CAPACITY = 4  # small, so that the traces also cover "too small, ask again"


class CError(Exception):
    """A status that no trace should lead to."""


def last_error() -> str:
    length = lib.sharecore_last_error(ffi.NULL, 0)
    out = ffi.new("char[]", length)
    lib.sharecore_last_error(out, length)
    return bytes(ffi.buffer(out, length - 1)).decode()


def _check(status: int) -> None:
    if status > 0:
        raise KafkaError(ErrorCode(status), last_error())
    if status < 0:
        raise CError(f"{status}: {last_error()}")


def _list(kind: str, first: Callable[..., int], again: Callable[..., int] | None = None) -> list[Any]:
    """The structs, as tuples, of a call that takes an array, its capacity and a place for the count."""
    count = ffi.new("size_t *")
    out = ffi.new(f"{kind}[]", _FIRST_CAPACITY)
    status = first(out, _FIRST_CAPACITY, count)
    if status == lib.SHARECORE_STATUS_TOO_SMALL:
        out = ffi.new(f"{kind}[]", count[0])
        status = (again or first)(out, len(out), count)
    _check(status)
    fields = [name for name, _ in ffi.typeof(kind).fields]
    return [tuple(getattr(item, name) for name in fields) for item in out[0 : count[0]]]


def _state_batches(batches: Iterable[StateBatch]) -> Any:
    return ffi.new("SharecoreStateBatch[]", [tuple(batch) for batch in batches])


def _rules(rules: Mapping[str, Any]) -> Any:
    """`_core.Rules` by its arguments; with a header as key others are looked for."""
    fields = dict(rules)
    made = ffi.new("SharecoreRules *")
    _check(lib.sharecore_rules_default(made))
    made.ordering = {"none": 0, "key": 1, "partition": 2}[fields.pop("ordering")]
    header = fields.pop("key_header")
    made.looks_for = 2 if header else 1
    for name, value in fields.items():
        setattr(made, name, value)
    return made


@dataclass(frozen=True, slots=True)
class CWrite:
    id: int
    start_offset: int
    state: list[StateBatch]

    def batches(self) -> list[StateBatch]:
        return self.state


# looked up here: the collector may call __del__ while cffi holds the lock that the first look-up takes
_free = lib.sharecore_free


class CPartition:
    def __init__(
        self,
        start_offset: int,
        state_batches: Sequence[StateBatch],
        *,
        rules: Mapping[str, Any] | None = None,
        now_ms: int = 0,
        **limits: Any,
    ) -> None:
        self.is_managed = rules is not None
        self._config = ffi.new("SharecoreConfig *")
        _check(lib.sharecore_config_default(self._config))
        self._set(limits)
        made = ffi.new("SharecorePartition *")
        state = _state_batches(state_batches)
        if rules is None:
            _check(lib.sharecore_load(self._config, start_offset, state, len(state), made))
        else:
            chosen = _rules(rules)
            if not state_batches:
                _check(lib.sharecore_create_managed(self._config, chosen, start_offset, made))
            else:
                _check(
                    lib.sharecore_load_managed(
                        self._config, chosen, now_ms, start_offset, state, len(state), made
                    )
                )
        self._number: int = made[0]

    def __del__(self) -> None:
        if hasattr(self, "_number"):
            _check(_free(self._number))

    def _set(self, limits: dict[str, Any]) -> None:
        for name, value in limits.items():
            if value is not None:
                setattr(self._config, name, value)

    def configure(self, **limits: Any) -> None:
        self._set(limits)
        _check(lib.sharecore_configure(self._number, self._config))

    def acquire(
        self,
        now_ms: int,
        member: str,
        batches: list[tuple[int, int]],
        fetch_offset: int,
        max_fetch_records: int = 500,
        batch_size: int = 500,
        record_limit: bool = False,
    ) -> list[tuple[int, int, int]]:
        name, ranges = member.encode(), ffi.new("SharecoreRange[]", batches)
        fetch = ffi.new("SharecoreFetch *", (fetch_offset, max_fetch_records, batch_size, record_limit))
        return _list(
            "SharecoreAcquired",
            lambda *out: lib.sharecore_acquire(
                self._number, now_ms, name, len(name), ranges, len(ranges), fetch, *out
            ),
            lib.sharecore_acquired,
        )

    def acknowledge(self, now_ms: int, member: str, batches: list[tuple[int, int, bytes]]) -> CWrite | None:
        name, types = member.encode(), [ffi.from_buffer(types) for _, _, types in batches]
        each = [(first, last, held, len(held)) for (first, last, _), held in zip(batches, types, strict=True)]
        given = ffi.new("SharecoreAcknowledgement[]", each)
        return self._write(
            lambda write: lib.sharecore_acknowledge(
                self._number, now_ms, name, len(name), given, len(given), write
            )
        )

    def release(self, now_ms: int, member: str) -> CWrite | None:
        name = member.encode()
        return self._write(lambda write: lib.sharecore_release(self._number, name, len(name), write))

    def advance(self, now_ms: int, wall_ms: int | None = None) -> CWrite | None:
        if wall_ms is None:
            return self._write(lambda write: lib.sharecore_advance(self._number, now_ms, write))
        return self._write(lambda write: lib.sharecore_advance_at(self._number, now_ms, wall_ms, write))

    def set_rules(self, rules: Mapping[str, Any]) -> None:
        _check(lib.sharecore_set_rules(self._number, _rules(rules)))

    def admit(
        self,
        now_ms: int,
        wall_ms: int,
        fetch_offset: int,
        batches: Sequence[tuple[int, int]],
        entries: Sequence[tuple[int, int | None, int | None, int]],
        batch_size: int,
    ) -> bool:
        # due delivery times take effect from here
        self.wanted(now_ms, wall_ms)
        ranges = ffi.new("SharecoreRange[]", list(batches))
        each = [
            (offset, _AT_ONCE if due is None else due, _NEVER if ends is None else ends, digest)
            for offset, due, ends, digest in entries
        ]
        said, admitted = ffi.new("SharecoreEntry[]", each), ffi.new("bool *")
        _check(
            lib.sharecore_admit(
                self._number,
                now_ms,
                wall_ms,
                fetch_offset,
                ranges,
                len(ranges),
                said,
                len(said),
                batch_size,
                admitted,
            )
        )
        return bool(admitted[0])

    def wanted(self, now_ms: int, wall_ms: int) -> tuple[int, int, bool]:
        wanted = ffi.new("SharecoreWanted *")
        _check(lib.sharecore_wanted(self._number, now_ms, wall_ms, wanted))
        return wanted.offset, wanted.max_records, bool(wanted.admits)

    def reasons(self) -> Any:
        waiting = ffi.new("SharecoreWaiting *")
        _check(lib.sharecore_waiting(self._number, waiting))
        return waiting

    def details(self) -> Any:
        details = ffi.new("SharecoreWaitingDetails *")
        _check(lib.sharecore_waiting_details(self._number, details))
        return details

    def keys(self, limit: int) -> list[tuple[int, int, int]]:
        out, count = ffi.new("SharecoreKey[]", limit), ffi.new("size_t *")
        _check(lib.sharecore_keys(self._number, out, limit, count))
        return [(key.digest, key.records, key.first) for key in out[0 : count[0]]]

    def keep_locks(self, now_ms: int, members: Sequence[str], max_ms: int) -> None:
        for member in members:
            name = member.encode()
            _check(lib.sharecore_keep_locks(self._number, now_ms, name, len(name), max_ms))

    def _write(self, call: Callable[[Any], int]) -> CWrite | None:
        write = ffi.new("SharecoreWrite *")
        _check(call(write))
        if write.id == 0:
            return None
        batches = _list(
            "SharecoreStateBatch",
            lambda *out: lib.sharecore_write_batches(self._number, write.id, *out),
        )
        assert len(batches) == write.batch_count
        return CWrite(write.id, write.start_offset, batches)

    def take_dead_letters(self) -> list[tuple[int, int, int, int]]:
        due = _list("SharecoreDeadLetter", lambda *out: lib.sharecore_take_dead_letters(self._number, *out))
        return [
            (first, last, count, 2 if expired else int(rejected))
            for first, last, count, rejected, expired in due
        ]

    def finish_archiving(self, now_ms: int, first: int, last: int) -> CWrite | None:
        return self._write(lambda write: lib.sharecore_finish_archiving(self._number, first, last, write))

    def move_log_start(self, now_ms: int, offset: int) -> None:
        _check(lib.sharecore_move_log_start(self._number, offset))

    def archive(self, now_ms: int, first: int, last: int) -> None:
        _check(lib.sharecore_archive(self._number, first, last))

    def pass_hole(self, now_ms: int, first: int, last: int) -> None:
        _check(lib.sharecore_pass_hole(self._number, first, last))

    def commit(self, write_id: int, now_ms: int) -> None:
        if self.is_managed:
            _check(lib.sharecore_commit_at(self._number, write_id, now_ms))
        else:
            _check(lib.sharecore_commit(self._number, write_id))

    def rollback(self, write_id: int, now_ms: int) -> None:
        _check(lib.sharecore_rollback(self._number, write_id, now_ms))

    def _state(self) -> Any:
        state = ffi.new("SharecoreState *")
        _check(lib.sharecore_inspect(self._number, state))
        return state

    @property
    def start_offset(self) -> int:
        return int(self._state().start_offset)

    @property
    def end_offset(self) -> int:
        return int(self._state().end_offset)

    @property
    def next_fetch_offset(self) -> int:
        return int(self._state().next_fetch_offset)

    @property
    def can_acquire(self) -> bool:
        return bool(self._state().can_acquire)

    @property
    def delivery_complete_count(self) -> int:
        return int(self._state().delivery_complete_count)

    @property
    def next_deadline_ms(self) -> int | None:
        deadline_ms = int(self._state().next_deadline_ms)
        return None if deadline_ms == 2**63 - 1 else deadline_ms

    def inflight(self) -> list[StateBatch]:
        return _list("SharecoreStateBatch", lambda *out: lib.sharecore_inflight(self._number, *out))

    def check(self) -> None:
        _check(lib.sharecore_check(self._number))


def combine(existing: Sequence[StateBatch], new: Sequence[StateBatch], start_offset: int) -> list[StateBatch]:
    left, right = _state_batches(existing), _state_batches(new)
    return _list(
        "SharecoreStateBatch",
        lambda *out: lib.sharecore_combine(left, len(left), right, len(right), start_offset, *out),
    )


ENGINE = Engine("rust", CPartition, combine)
