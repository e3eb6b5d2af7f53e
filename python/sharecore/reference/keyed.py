"""A share partition with order by key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sharecore.reference.admitting import AdmittingPartition, Entry, Rules
from sharecore.reference.record import ACQUIRED, AVAILABLE, Record, StateBatch, Write


class KeyedPartition(AdmittingPartition):
    """A partition with order by key: each record knows its key, and whether others precede it.

    Args:
        rules: the rules for order, times and retries.
        now_ms: as for `AdmittingPartition`.
    """

    def __init__(
        self,
        start_offset: int = 0,
        state_batches: Iterable[StateBatch] = (),
        *,
        rules: Rules,
        now_ms: int = 0,
        **limits: Any,
    ) -> None:
        self._is_settling = False
        """Members may hold records acquired under a previous key."""
        self._reach = 0
        """The longest run that has begun."""
        super().__init__(start_offset, state_batches, rules=rules, now_ms=now_ms, **limits)
        self._reorder()

    def _look_anew(self) -> None:
        super()._look_anew()
        self._is_settling = self._leased > 0
        self._reach = self._rules.run_max

    def change(self, rules: Rules) -> None:
        super().change(rules)
        self._reach = max(self._reach, rules.run_max)
        self._reorder()

    @property
    def next_admission(self) -> int | None:
        return None if self._is_settling and self._leased else super().next_admission

    def acquire(
        self,
        now_ms: int,
        member: str,
        batches: Sequence[tuple[int, int]],
        fetch_offset: int,
        max_fetch_records: int = 500,
        batch_size: int = 500,
        record_limit: bool = False,
    ) -> list[tuple[int, int, int]]:
        acquired = super().acquire(
            now_ms, member, batches, fetch_offset, max_fetch_records, batch_size, record_limit
        )
        self._reorder()
        return acquired

    def admit(
        self,
        now_ms: int,
        wall_ms: int,
        fetch_offset: int,
        batches: Sequence[tuple[int, int]],
        entries: Sequence[Entry],
        batch_size: int = 500,
    ) -> bool:
        admitted = super().admit(now_ms, wall_ms, fetch_offset, batches, entries, batch_size)
        self._is_settling &= not admitted
        self._reorder()
        return admitted

    def move_log_start(self, now_ms: int, offset: int) -> None:
        super().move_log_start(now_ms, offset)
        self._reorder()

    def archive(self, now_ms: int, first: int, last: int) -> None:
        super().archive(now_ms, first, last)
        self._reorder()

    def pass_hole(self, now_ms: int, first: int, last: int) -> None:
        super().pass_hole(now_ms, first, last)
        self._reorder()

    def advance(self, now_ms: int, wall_ms: int = 0) -> Write | None:
        write = super().advance(now_ms, wall_ms)
        self._reorder()
        return write

    def commit(self, write_id: int, now_ms: int) -> None:
        super().commit(write_id, now_ms)
        self._reorder()

    def rollback(self, write_id: int, now_ms: int) -> None:
        super().rollback(write_id, now_ms)
        self._reorder()

    def behind(self) -> int:
        """Count the records that wait only for earlier ones of their key."""
        records = self._window.all()
        return sum(record.is_free and record.is_behind and not record.waits for _, record in records)

    def _limit(self, fetch_offset: int, wanted: int) -> tuple[int, int]:
        ready = (offset for offset, record in self._window.all() if record.acquirable)
        first = next(ready, None)
        if self._reach > 1 and (first is None or first < fetch_offset):
            return 0, 0  # the second record of a run is not delivered without the first
        return super()._limit(fetch_offset, wanted)

    @property
    def _may_admit(self) -> bool:
        open_records = self._window.in_flight - self._window.delivery_complete_count
        keyed = [offset for offset, record in self._window.all() if self._is_open(record) and record.digest]
        without = max(0, open_records - len(keyed))
        return self._units(keyed) + without - self._leased < self._rules.max_waiting

    def _units(self, keyed: list[int]) -> int:
        """Count the ranges of neighbors with the same key."""
        units, before = 0, (-2, 0)
        for offset in keyed:
            digest = self._window.records[offset].digest
            units += before != (offset - 1, digest)
            before = (offset, digest)
        return units

    @staticmethod
    def _is_open(record: Record) -> bool:
        return record.before is not None or record.state in (AVAILABLE, ACQUIRED)

    def _reorder(self) -> None:
        """Set for each record whether it waits for others: all but the first ones of each key do."""
        keys: dict[int, list[Record]] = {}
        for _, record in self._window.all():
            record.is_behind = False
            if record.digest and self._is_open(record):
                keys.setdefault(record.digest, []).append(record)
        for records in keys.values():
            left = 0 if any(record.member for record in records) else self._rules.run_max
            for record in records:
                if record.member:
                    continue
                if record.waits:
                    left = 0
                record.is_behind = left == 0
                left -= left > 0
