"""Engines for the driver, and their interface."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

StateBatch = tuple[int, int, int, int]
EngineName = Literal["rust", "reference"]


class Write(Protocol):
    @property
    def id(self) -> int: ...
    @property
    def start_offset(self) -> int: ...
    def batches(self) -> list[StateBatch]: ...


class LastingLocks(Protocol):
    """Operations that the C ABI lacks."""

    def keep_locks(self, now_ms: int, members: Sequence[str], max_ms: int) -> None: ...


class Configurable(Protocol):
    """A partition's limits; None: unchanged."""

    def configure(
        self,
        *,
        max_delivery_count: int | None = None,
        max_inflight: int | None = None,
        lock_ms: int | None = None,
        renew_enabled: bool | None = None,
        dead_letters: bool | None = None,
    ) -> None: ...


class Partition(Configurable, Protocol):
    """Common interface of both engines; see docs/internals.md."""

    def acquire(
        self,
        now_ms: int,
        member: str,
        batches: list[tuple[int, int]],
        fetch_offset: int,
        max_fetch_records: int = 500,
        batch_size: int = 500,
        record_limit: bool = False,
    ) -> list[tuple[int, int, int]]: ...
    def acknowledge(
        self, now_ms: int, member: str, batches: list[tuple[int, int, bytes]]
    ) -> Write | None: ...
    def release(self, now_ms: int, member: str) -> Write | None: ...
    def advance(self, now_ms: int) -> Write | None: ...
    def move_log_start(self, now_ms: int, offset: int) -> None: ...
    def archive(self, now_ms: int, first: int, last: int) -> None: ...
    def pass_hole(self, now_ms: int, first: int, last: int) -> None: ...
    def take_dead_letters(self) -> list[tuple[int, int, int, int]]: ...
    def finish_archiving(self, now_ms: int, first: int, last: int) -> Write | None: ...
    def commit(self, write_id: int, now_ms: int) -> None: ...
    def rollback(self, write_id: int, now_ms: int) -> None: ...
    @property
    def start_offset(self) -> int: ...
    @property
    def end_offset(self) -> int: ...
    @property
    def next_fetch_offset(self) -> int: ...
    @property
    def can_acquire(self) -> bool: ...
    @property
    def delivery_complete_count(self) -> int: ...
    @property
    def next_deadline_ms(self) -> int | None: ...
    def inflight(self) -> list[StateBatch]: ...
    def check(self) -> None: ...


class MakePartition(Protocol):
    def __call__(
        self,
        start_offset: int,
        state_batches: Sequence[StateBatch],
        *,
        max_delivery_count: int,
        max_inflight: int,
        lock_ms: int,
        renew_enabled: bool,
        dead_letters: bool,
    ) -> Partition: ...


Combine = Callable[[Sequence[StateBatch], Sequence[StateBatch], int], list[StateBatch]]


@dataclass(frozen=True, slots=True)
class Engine:
    """A partition class and its combiner."""

    name: EngineName
    partition: MakePartition
    combine: Combine


def engine(name: EngineName) -> Engine:
    """Return the engine of that name; only that one is imported."""
    if name == "reference":
        from sharecore import reference

        return Engine(name, reference.Partition, reference.combine)
    from sharecore import _core

    return Engine(name, _core.Partition, _core.combine)
