"""A share partition that examines records before acquiring them, for delivery times and expiry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from sharecore.reference.acquire import cut
from sharecore.reference.managed import ManagedPartition
from sharecore.reference.managed import Rules as BackoffRules
from sharecore.reference.record import ARCHIVED, ARCHIVING, AVAILABLE, Batch, Record, StateBatch, Write

Entry = tuple[int, int | None, int | None, int]
"""A record's offset, delivery time, expiry, and key digest or 0."""


class Rules(BackoffRules, Protocol):
    """Rules of a group whose records may have times."""

    @property
    def looks_at_records(self) -> bool: ...
    @property
    def expired_letters(self) -> bool: ...
    def looks_otherwise(self, before: Any) -> bool: ...


class AdmittingPartition(ManagedPartition):
    """A partition with rules: each record knows whether it was examined, and its times.

    Args:
        rules: the rules for order, times and retries.
        now_ms: as for `ManagedPartition`.
    """

    _rules: Rules

    def __init__(
        self,
        start_offset: int = 0,
        state_batches: Iterable[StateBatch] = (),
        *,
        rules: Rules,
        now_ms: int = 0,
        **limits: Any,
    ) -> None:
        super().__init__(start_offset, state_batches, rules=rules, now_ms=now_ms, **limits)
        self._scanned = 0
        self._look_anew()

    def _look_anew(self) -> None:
        for _, record in self._window.all():
            record.unseen = self._rules.looks_at_records
            record.not_before_ms = record.expires_ms = None
            record.has_expired = False
            record.digest = 0
        self._scanned = self._unsettled_from(self._window.start_offset)

    def change(self, rules: Rules) -> None:
        """Change the rules; records are examined again if the rules need other information."""
        before, self._rules = self._rules, rules
        if rules.looks_otherwise(before):
            self._look_anew()

    def _unsettled_from(self, offset: int) -> int:
        while (record := self._window.records.get(offset)) is not None and record.settled:
            offset += 1
        return offset

    @property
    def next_admission(self) -> int | None:
        """Return where to read the log for records to examine."""
        if not self._rules.looks_at_records:
            return None
        offset = max(self._scanned, self._window.start_offset)
        is_known = bool(self._window.batches) and offset <= self._window.end_offset
        return offset if is_known or self._may_admit else None

    @property
    def next_fetch_offset(self) -> int:
        if not self._rules.looks_at_records:
            return super().next_fetch_offset
        ready = [
            offset
            for offset, record in self._window.all()
            if record.acquirable and offset >= self.start_offset
        ]
        unseen = self.next_admission
        return min([*ready[:1], *([] if unseen is None else [unseen])], default=self.end_offset + 1)

    @property
    def can_acquire(self) -> bool:
        if not self._rules.looks_at_records:
            return super().can_acquire
        ready = any(record.acquirable for _, record in self._window.all())
        more = self.next_admission is not None
        if self._rules.ordering == "partition":
            ready = ready and self._is_first_in_line(self._window.next_fetch_offset)
            # while records of the order are acquired, reading on finds nothing deliverable
            more = more and not self._leased and self._last_in_line + 1 >= self._scanned
        return self._leased < self._max_inflight and (ready or more)

    def admit(
        self,
        now_ms: int,
        wall_ms: int,
        fetch_offset: int,
        batches: Sequence[tuple[int, int]],
        entries: Sequence[Entry],
        batch_size: int = 500,
    ) -> bool:
        """Admit record batches read from the log from `fetch_offset`.

        Returns:
            Whether they continue the examined part; otherwise none is admitted.
        """
        self._come_up(now_ms, wall_ms)
        following = self.next_admission
        if following is None or not fetch_offset <= following <= batches[-1][1]:
            return False
        window = self._window
        (head, _), (_, last) = batches[0], batches[-1]
        if fetch_offset < head:
            window.pass_hole(fetch_offset, head - 1)
        first = max(head, window.start_offset)
        if not window.batches:
            first = max(first, window.end_offset)
        inserted = [hole for part in cut(batches, first, last, batch_size) for hole in self._holes(*part)]
        for hole in inserted:
            window.add(hole, Record(AVAILABLE, 0))
        if inserted and window.batches[0] == inserted[0]:
            window.start_offset = max(window.start_offset, inserted[0].first)
        window.end_offset = max(window.end_offset, last)
        window.read_up_to(last + 1)
        for offset, record in window.items(max(head, following, window.start_offset), last):
            _, not_before_ms, expires_ms, digest = next(
                (entry for entry in reversed(entries) if entry[0] <= offset), entries[0]
            )
            record.unseen = False
            record.expires_ms = expires_ms
            record.digest = digest
            if not record.settled and not_before_ms is not None and not_before_ms > wall_ms:
                record.not_before_ms = not_before_ms
        self._scanned = self._unsettled_from(last + 1)
        self._come_up(now_ms, wall_ms)
        return True

    def _holes(self, first: int, last: int) -> list[Batch]:
        """Return the ranges between two offsets that are not in flight."""
        holes: list[Batch] = []
        for offset in range(first, last + 1):
            if offset in self._window.records:
                continue
            if holes and holes[-1].last + 1 == offset:
                holes[-1] = Batch(holes[-1].first, offset)
            else:
                holes.append(Batch(offset, offset))
        return holes

    def advance(self, now_ms: int, wall_ms: int = 0) -> Write | None:
        self._come_up(now_ms, wall_ms)
        expired = [
            (offset, record)
            for offset, record in self._window.all()
            if record.is_free and record.has_expired and offset >= self.start_offset
        ]
        locks = self._expire_locks(now_ms)
        for _, record in expired:
            letter_is_due = self._rules.expired_letters and self._dead_letters
            record.end_lock(ARCHIVING if letter_is_due else ARCHIVED)
        offsets = [offset for offset, _ in expired]
        write = self._begin_write([*offsets, *locks], expiry=True, expired=set(offsets))
        if write is not None and self._rules.on_timeout:
            self._hold_back_batches(write.batches(), now_ms)
        return write

    def _come_up(self, now_ms: int, wall_ms: int) -> None:
        for _, record in self._window.all():
            if record.waits_until_ms is not None and record.waits_until_ms <= now_ms:
                record.waits_until_ms = None
            if record.not_before_ms is not None and record.not_before_ms <= wall_ms:
                record.not_before_ms = None
            if record.expires_ms is not None and record.expires_ms <= wall_ms:
                record.has_expired = True

    def _acquires_known_only(self) -> bool:
        return self._rules.looks_at_records

    def _limit(self, fetch_offset: int, wanted: int) -> tuple[int, int]:
        if not self._rules.looks_at_records:
            return super()._limit(fetch_offset, wanted)
        room, reach = min(wanted, self._max_inflight - self._leased), self._window.end_offset
        if self._rules.ordering != "partition":
            return room, reach
        if not self._is_first_in_line(fetch_offset):
            return 0, 0
        return min(room, self._rules.run_max), min(reach, self._last_in_line)
