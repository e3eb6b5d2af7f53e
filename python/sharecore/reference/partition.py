"""The in-flight state of one share partition, as in KIP-932."""

from __future__ import annotations

import heapq
import sys
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass

from sharecore.errors import ErrorCode, KafkaError
from sharecore.reference.acknowledgement import REJECT, RELEASE, RENEW, STATE_AFTER, acknowledged, check_owned
from sharecore.reference.acquire import Acquisition
from sharecore.reference.dead_letters import DELIVERY_LIMIT, EXPIRED, REJECTED, DeadLetters
from sharecore.reference.record import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    Record,
    StateBatch,
    Write,
)
from sharecore.reference.window import Window


@dataclass(frozen=True, slots=True)
class _OpenWrite:
    offsets: list[int]
    expiry: bool
    given_up: list[tuple[int, int, int]]
    """Offset, delivery count and cause of records archived without a rejection."""
    batches: tuple[StateBatch, ...]
    """In persisted form."""


class Partition:
    """In-flight records of one share partition.

    Time is an argument, in milliseconds; locks expire only in `advance`. The interface is that of
    `sharecore._core.Partition`.

    Args:
        start_offset: the share partition's start offset (SPSO).
        state_batches: (first, last, state, delivery_count) as persisted.
        max_delivery_count: deliveries after which a record is archived instead of becoming available again.
        max_inflight: the most offsets from start to end in flight; exceeded by at most the rest of a record
            batch.
        lock_ms: how long an acquisition lock lasts.
        renew_enabled: whether members may renew their locks.
        dead_letters: whether rejected and undeliverable records wait for a dead-letter record (KIP-1191)
            before they are archived.

    Raises:
        ValueError: a limit that is not positive.
        KafkaError: INVALID_REQUEST for state batches that overlap, lie below the start offset or have no
            persistent state.
    """

    def __init__(
        self,
        start_offset: int = 0,
        state_batches: Iterable[StateBatch] = (),
        *,
        max_delivery_count: int = 5,
        max_inflight: int = 2000,
        lock_ms: int = 30000,
        renew_enabled: bool = True,
        dead_letters: bool = False,
    ) -> None:
        _check_limits(max_delivery_count, max_inflight, lock_ms)
        loaded = sorted(state_batches)
        _check_loaded(start_offset, loaded)
        self._window = Window(start_offset, loaded)
        self._window.advance_start()
        self._deadlines: list[tuple[int, int]] = []
        self._open_writes: dict[int, _OpenWrite] = {}
        self._last_write_id = 0
        self._max_delivery_count = max_delivery_count
        self._max_inflight = max_inflight
        self._lock_ms = lock_ms
        self._renew_enabled = renew_enabled
        self._dead_letters = dead_letters
        self._due = DeadLetters()
        for first, last, state, count in loaded:
            if state == ARCHIVING:
                for offset in range(first, last + 1):
                    self._due.add(offset, count, REJECTED if count < max_delivery_count else DELIVERY_LIMIT)

    def configure(
        self,
        *,
        max_delivery_count: int | None = None,
        max_inflight: int | None = None,
        lock_ms: int | None = None,
        renew_enabled: bool | None = None,
        dead_letters: bool | None = None,
    ) -> None:
        """Change the limits; running locks keep their deadlines.

        Raises:
            ValueError: a limit that is not positive.
        """
        _check_limits(max_delivery_count, max_inflight, lock_ms)
        if max_delivery_count is not None:
            self._max_delivery_count = max_delivery_count
        if max_inflight is not None:
            self._max_inflight = max_inflight
        if lock_ms is not None:
            self._lock_ms = lock_ms
        if renew_enabled is not None:
            self._renew_enabled = renew_enabled
        if dead_letters is not None:
            self._dead_letters = dead_letters

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
        """Acquire available records among the record batches of a read.

        Args:
            now_ms: locks end at now_ms + lock_ms.
            member: the member.
            batches: (base_offset, last_offset) of the record batches, ascending.
            fetch_offset: the offset of the read.
            max_fetch_records: how many records; strict with `record_limit`, else up to a record batch's end.
            batch_size: longer leases are split at record-batch boundaries.
            record_limit: never acquire more than `max_fetch_records`.

        Returns:
            (first, last, delivery_count) of the newly acquired records, ascending.
        """
        acquisition = Acquisition(
            window=self._window,
            record_batches=list(batches),
            member=member,
            deadline_ms=now_ms + self._lock_ms,
            max_delivery_count=self._max_delivery_count,
            batch_size=batch_size,
            record_limit=record_limit or self._acquires_known_only(),
            known_only=self._acquires_known_only(),
        )
        if max_fetch_records <= 0:
            return []
        wanted, reach = self._limit(fetch_offset, max_fetch_records)
        acquired = acquisition.run(fetch_offset, wanted, reach)
        for first, last, _ in acquired:
            for offset in range(first, last + 1):
                heapq.heappush(self._deadlines, (now_ms + self._lock_ms, offset))
        return acquired

    def _acquires_known_only(self) -> bool:
        return False

    def _limit(self, fetch_offset: int, wanted: int) -> tuple[int, int]:
        """Return how many records may be acquired, and up to which offset: a full window only redelivers."""
        room = min(wanted, self._max_inflight - self._window.in_flight)
        if room > 0:
            return room, sys.maxsize
        return min(wanted, self._window.end_offset - fetch_offset + 1), self._window.end_offset

    def acknowledge(
        self, now_ms: int, member: str, batches: Sequence[tuple[int, int, bytes]]
    ) -> Write | None:
        """Accept, release, reject or renew records that `member` holds: the whole request, or only the
        renewals before the refused batch.

        Args:
            batches: (first, last, types): one acknowledge type for all offsets or one for each. Types: 0 gap,
                1 accept, 2 release, 3 reject, 4 renew. Offsets below the start offset are skipped.

        Raises:
            KafkaError: INVALID_RECORD_STATE if an offset is not acquired by `member`, has a pending write, or
                precedes everything in flight; INVALID_REQUEST for a malformed batch or one that ends after
                the in-flight records.
        """
        begun: list[int] = []
        try:
            for first, last, types in batches:
                for offset, kind in acknowledged(self._window, first, last, types):
                    record = self._window.records[offset]
                    check_owned(offset, record, member)
                    if kind == RENEW:
                        self._renew(now_ms, offset, record)
                    else:
                        record.begin(self._state_after(record, kind))
                        record.rejected = kind == REJECT and record.state == ARCHIVING
                        begun.append(offset)
        except KafkaError:
            for offset in begun:
                self._window.records[offset].rollback()
            raise
        return self._begin_write(begun)

    def release(self, now_ms: int, member: str) -> Write | None:
        """Release all records of a member whose session ended; archive those at the delivery limit."""
        held = [o for o, r in self._window.all() if r.state == ACQUIRED and r.member == member]
        for offset in held:
            record = self._window.records[offset]
            record.begin(self._state_when_given_back(offset, record))
        return self._begin_write(held)

    def advance(self, now_ms: int) -> Write | None:
        """Expire the locks whose deadline is now or earlier.

        The records change at once and for good, whatever the outcome of the write: the lock has expired.
        """
        return self._begin_write(self._expire_locks(now_ms), expiry=True)

    def running_out(self, now_ms: int) -> list[str]:
        """Return the members whose locks have expired."""
        return sorted({record.member for _, record in self._running_out(now_ms)})

    def keep_locks(self, now_ms: int, members: Collection[str], max_ms: int) -> None:
        """Restart the expired locks of members, until `max_ms` after they began."""
        for offset, record in self._running_out(now_ms):
            if record.member not in members or record.deadline_ms is None:
                continue
            if record.kept_since_ms is None:
                record.kept_since_ms = record.deadline_ms - self._lock_ms
            until_ms = record.kept_since_ms + max_ms
            if now_ms < until_ms:
                record.deadline_ms = min(until_ms, now_ms + self._lock_ms)
                heapq.heappush(self._deadlines, (record.deadline_ms, offset))

    def _running_out(self, now_ms: int) -> list[tuple[int, Record]]:
        return [
            (offset, record)
            for offset, record in self._window.all()
            if record.deadline_ms is not None and record.deadline_ms <= now_ms
        ]

    def _expire_locks(self, now_ms: int) -> list[int]:
        """Free the records whose locks have expired, and return their offsets."""
        expired: list[int] = []
        while self._deadlines and self._deadlines[0][0] <= now_ms:
            deadline_ms, offset = heapq.heappop(self._deadlines)
            record = self._window.records.get(offset)
            if record is None or record.deadline_ms != deadline_ms:
                continue
            if record.before is not None:
                record.deadline_ms = None
                record.lock_ran_out = True
            elif record.state == ACQUIRED:
                record.end_lock(self._state_when_given_back(offset, record))
                expired.append(offset)
        return expired

    def move_log_start(self, now_ms: int, offset: int) -> None:
        """Move the log start: available records below `offset` are archived, acquired ones stay acquired.

        Nothing is persisted: the next write carries the new start offset.
        """
        if offset > self._window.start_offset:
            self._window.move_start(offset)

    def archive(self, now_ms: int, first: int, last: int) -> None:
        """Archive offsets without a record for this group, such as those of aborted transactions."""
        for _, record in self._window.items(first, last):
            if record.before is None and record.state in (AVAILABLE, ACQUIRED):
                record.end_lock(ARCHIVED)
        self._window.advance_start()

    def pass_hole(self, now_ms: int, first: int, last: int) -> None:
        """Skip first to last, where the log has no records, as a fetch from `first` has shown."""
        if first <= last:
            self._window.pass_hole(first, last)

    def take_dead_letters(self) -> list[tuple[int, int, int, int]]:
        """Take the dead letters that became due since the last call, oldest first, as (first, last,
        delivery_count, cause); in loaded state, the cause is guessed from the count.
        """
        return self._due.take()

    def finish_archiving(self, now_ms: int, first: int, last: int) -> Write | None:
        """Archive records whose dead letters, first to last, are written or never will be.

        The records change at once and for good, whatever the outcome of the write.
        """
        finished = [
            o for o, r in self._window.items(first, last) if r.state == ARCHIVING and r.before is None
        ]
        for offset in finished:
            self._window.records[offset].end_lock(ARCHIVED)
        return self._begin_write(finished, expiry=True)

    def commit(self, write_id: int, now_ms: int) -> None:
        """Commit a durable write.

        Raises:
            KafkaError: INVALID_REQUEST if no such write is open.
        """
        write = self._close_write(write_id)
        for offset, record in self._being_written(write):
            if record.state == ARCHIVING:
                self._due.add(offset, record.delivery_count, REJECTED if record.rejected else DELIVERY_LIMIT)
            record.commit()
        self._window.advance_start()

    def rollback(self, write_id: int, now_ms: int) -> None:
        """Roll back a failed write: its records are as before, except that their locks may have expired.

        Raises:
            KafkaError: INVALID_REQUEST if no such write is open.
        """
        write = self._close_write(write_id)
        for offset, record in self._being_written(write):
            record.rollback()
            if record.lock_ran_out or (record.deadline_ms is not None and record.deadline_ms <= now_ms):
                record.end_lock(self._state_when_given_back(offset, record))
                if record.state == ARCHIVING:
                    self._due.add(offset, record.delivery_count, DELIVERY_LIMIT)
        if write.expiry:
            self._window.advance_start()

    def batch_end(self, offset: int) -> int:
        """Return the last offset acquired together with `offset`; `offset` itself if it is not in flight."""
        return next((batch.last for batch in self._window.between(offset, offset)), offset)

    def is_slow(self, offset: int) -> bool:
        """Return whether an available record in the batch of `offset`, from there, is near its delivery
        limit.
        """
        slow_from = max(2, (self._max_delivery_count + 1) // 2)
        return any(
            record.acquirable and record.delivery_count >= slow_from
            for batch in self._window.between(offset, offset)
            for _, record in self._window.items(offset, batch.last)
        )

    @property
    def start_offset(self) -> int:
        """SPSO: everything below is finished."""
        return self._window.start_offset

    @property
    def end_offset(self) -> int:
        """SPEO: the last offset in flight, or the start offset if nothing is in flight."""
        return self._window.end_offset

    @property
    def next_fetch_offset(self) -> int:
        """Where to read the log for the next acquire."""
        return self._window.next_fetch_offset

    @property
    def can_acquire(self) -> bool:
        """Whether a fetch could acquire anything: room in the window, or a record to redeliver within it."""
        return (
            self._window.next_fetch_offset != self._window.end_offset + 1
            or self._window.in_flight < self._max_inflight
        )

    @property
    def delivery_complete_count(self) -> int:
        """Acknowledged and archived records from the start offset (KIP-1226)."""
        return self._window.delivery_complete_count

    @property
    def next_deadline_ms(self) -> int | None:
        """When the next acquisition lock expires, including locks of records with pending writes."""
        return min((r.deadline_ms for _, r in self._window.all() if r.deadline_ms is not None), default=None)

    @property
    def runs(self) -> int:
        """The number of runs with equal state in the window."""
        return len(self._window.state())

    @property
    def memory_bytes(self) -> int:
        """An estimate of the records' memory."""
        return len(self._window.records) * (sys.getsizeof(Record(AVAILABLE, 0)) + sys.getsizeof(0))

    def inflight(self) -> list[StateBatch]:
        """(first, last, state, delivery_count) from the start offset, pending writes included."""
        return self._window.state()

    def leases(self) -> list[tuple[int, int, str, int | None]]:
        """(first, last, member, deadline) of held records from the start offset."""
        held: list[tuple[int, int, str, int | None]] = []
        for offset, record in self._window.all():
            if offset < self._window.start_offset or not record.member:
                continue
            whose = record.member, record.deadline_ms
            if held and held[-1][1] + 1 == offset and held[-1][2:] == whose:
                held[-1] = (held[-1][0], offset, *whose)
            else:
                held.append((offset, offset, *whose))
        return held

    def records(self) -> Iterator[tuple[int, Record]]:
        """Every record by offset, with owner and deadline, including acquired ones below the start offset."""
        return self._window.all()

    def check(self) -> None:
        """Assert the invariants."""
        self._window.check()
        for offset, record in self._window.all():
            assert (record.state == ACQUIRED) == bool(
                record.member and record.deadline_ms is not None
            ) or record.before
            assert record.delivery_count >= 0
            assert record.state != ACQUIRED or (record.deadline_ms, offset) in self._deadlines
        written = {offset for write in self._open_writes.values() for offset, _ in self._being_written(write)}
        assert written == {offset for offset, record in self._window.all() if record.before is not None}

    def _renew(self, now_ms: int, offset: int, record: Record) -> None:
        if not self._renew_enabled:
            raise KafkaError(
                ErrorCode.INVALID_RECORD_STATE, "the group does not allow renewing acquisition locks"
            )
        record.deadline_ms = now_ms + self._lock_ms
        record.kept_since_ms = None
        heapq.heappush(self._deadlines, (record.deadline_ms, offset))

    def _state_after(self, record: Record, kind: int) -> int:
        at_limit = record.delivery_count >= self._max_delivery_count
        if kind == REJECT or (kind == RELEASE and at_limit):
            return ARCHIVING if self._dead_letters else ARCHIVED
        return STATE_AFTER[kind]

    def _state_when_given_back(self, offset: int, record: Record) -> int:
        return ARCHIVED if offset < self._window.start_offset else self._state_after(record, RELEASE)

    def _begin_write(
        self, offsets: list[int], *, expiry: bool = False, expired: Container[int] = ()
    ) -> Write | None:
        if not offsets:
            return None
        offsets = sorted(offsets)
        records = [(offset, self._window.records[offset]) for offset in offsets]
        given_up = [
            (o, r.delivery_count, EXPIRED if o in expired else DELIVERY_LIMIT)
            for o, r in records
            if expiry and r.state == ARCHIVING
        ]
        self._last_write_id += 1
        batches = self._window.state_of(offsets)
        self._open_writes[self._last_write_id] = _OpenWrite(offsets, expiry, given_up, batches)
        return Write(
            self._last_write_id, self._window.start_offset, self._window.delivery_complete_count, batches
        )

    def _close_write(self, write_id: int) -> _OpenWrite:
        try:
            write = self._open_writes.pop(write_id)
        except KeyError:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"write {write_id} is not open") from None
        for letter in write.given_up:
            self._due.add(*letter)
        return write

    def _being_written(self, write: _OpenWrite) -> list[tuple[int, Record]]:
        if write.expiry:
            return []
        records = ((offset, self._window.records.get(offset)) for offset in write.offsets)
        return [
            (offset, record) for offset, record in records if record is not None and record.before is not None
        ]


def _check_limits(*limits: int | None) -> None:
    if any(limit is not None and limit <= 0 for limit in limits):
        raise ValueError("max_delivery_count, max_inflight and lock_ms must be positive")


def _check_loaded(start_offset: int, batches: list[StateBatch]) -> None:
    follows = start_offset
    for first, last, state, count in batches:
        if (
            first < follows
            or last < first
            or not 0 <= count < 2**15
            or state not in (AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED)
        ):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"state batch {first}-{last} ({state}, {count}) is invalid or overlaps the batch before it",
            )
        follows = last + 1
