"""Coordinators' views of a slot's partition: share state and groups, each as a separate partition.

Both write to one log. Each determines which records are still needed: share state by its oldest required
snapshot, groups by the last value of each key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from sharecore.coordinator_log.topic_log import Record
from sharecore.errors import ErrorCode, KafkaError
from sharecore.sharestate.records import SNAPSHOT, UPDATE
from sharecore.storage import Appended, ScannedBatch, Ticket
from sharecore.tier.slots.log import SlotLog
from sharecore.tier.upstream.batches import Scanned

STATE_KINDS = frozenset({SNAPSHOT, UPDATE})
_NO_PRODUCER = -1


def is_state(record: Scanned) -> bool:
    """Return whether a record is share state; group records have other types."""
    key = record[2]
    return key is not None and len(key) >= 2 and int.from_bytes(key[:2], "big", signed=True) in STATE_KINDS


class SlotView:
    """A coordinator topic's partition within one slot (`coordinator_log.TopicLog`).

    The records read with the claim are returned once, by `scan` or `scan_batches`, and then dropped.
    """

    def __init__(self, slot: SlotLog) -> None:
        self.slot = slot
        self.topic, self.index = slot.topic, slot.index
        self._read: Sequence[Scanned] = ()

    @property
    def start_offset(self) -> int:
        return self.slot.start_offset

    @property
    def high_watermark(self) -> int:
        return self.slot.high_watermark

    @property
    def last_stable_offset(self) -> int:
        return self.slot.high_watermark

    @property
    def end_offset(self) -> int:
        return self.slot.end_offset

    @property
    def keep_from(self) -> int | None:
        """The oldest required offset; None if no record is required."""
        return None

    def claimed(self, records: Iterable[Scanned]) -> None:
        """Store the records read with the claim."""
        self._read = list(records)

    def append_local(
        self,
        records: Sequence[Record],
        /,
        *,
        now_ms: int,
        producer: tuple[int, int] | None = None,
        lingers: bool = False,
    ) -> Appended:
        if producer is not None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Transactions of group offsets are handled upstream.")
        return self.slot.append(records, now_ms)

    def hurry(self) -> None:
        """Do nothing: upstream batches do not linger."""

    def scan(self, offset: int, /) -> Iterator[Scanned]:
        read, self._read = self._read, ()
        yield from read

    def scan_batches(self, offset: int, /) -> Iterator[ScannedBatch]:
        records = list(self.scan(offset))
        if records:
            yield ScannedBatch(_NO_PRODUCER, is_control=False, records=records)

    def delete_records(self, before_offset: int, /) -> Ticket:
        """Mark records as obsolete; they are deleted by the slot's next maintenance."""
        ticket = Ticket(0)
        ticket.settle()
        return ticket


class StateView(SlotView):
    """Share state in a slot."""

    def __init__(self, slot: SlotLog) -> None:
        super().__init__(slot)
        self._keep_from: int | None = None
        self._was_read = True

    @property
    def keep_from(self) -> int | None:
        return self._keep_from

    def claimed(self, records: Iterable[Scanned]) -> None:
        super().claimed(filter(is_state, records))
        self._was_read = False
        self._keep_from = self._read[0][0] if self._read else None

    def scan(self, offset: int, /) -> Iterator[Scanned]:
        if self._was_read:
            # memory is ahead of the log: only a claim replays it
            self.slot.give_up()
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        self._was_read = True
        yield from super().scan(offset)

    def append_local(
        self,
        records: Sequence[Record],
        /,
        *,
        now_ms: int,
        producer: tuple[int, int] | None = None,
        lingers: bool = False,
    ) -> Appended:
        appended = super().append_local(records, now_ms=now_ms, producer=producer, lingers=lingers)
        if self._keep_from is None:
            self._keep_from = appended.base_offset
        return appended

    def delete_records(self, before_offset: int, /) -> Ticket:
        self._keep_from = before_offset
        return super().delete_records(before_offset)


class GroupView(SlotView):
    """Groups in a slot: the last durable value of each key, with its offset.

    A value replaces the previous one once it is written. Until then, and if the write fails, the previous one
    is needed.
    """

    def __init__(self, slot: SlotLog) -> None:
        super().__init__(slot)
        self._live: dict[bytes, tuple[int, bytes]] = {}
        self._pending: Counter[bytes] = Counter()
        self._claims = 0

    @property
    def keep_from(self) -> int | None:
        return min((offset for offset, _ in self._live.values()), default=None)

    def claimed(self, records: Iterable[Scanned]) -> None:
        self._live, self._pending = {}, Counter()
        self._claims += 1
        times = {}
        for record in records:
            offset, timestamp, key, value = record
            if key is not None and not is_state(record):
                self._put(key, offset, value)
                times[offset] = timestamp
        super().claimed((offset, times[offset], key, value) for key, (offset, value) in self._live.items())

    def append_local(
        self,
        records: Sequence[Record],
        /,
        *,
        now_ms: int,
        producer: tuple[int, int] | None = None,
        lingers: bool = False,
    ) -> Appended:
        appended = super().append_local(records, now_ms=now_ms, producer=producer, lingers=lingers)
        self._pending.update(key for key, _ in records)
        claims = self._claims

        def ended(ticket: Ticket) -> None:
            if claims != self._claims:
                return  # the slot was replayed
            self._pending -= Counter(key for key, _ in records)
            if ticket.error is None:
                for number, (key, value) in enumerate(records):
                    self._put(key, appended.base_offset + number, value)

        appended.ticket.add_done_callback(ended)
        return appended

    def older_than(self, offset: int) -> list[Record]:
        """Return keys whose values are before an offset, except those with pending writes.

        Rewriting such a value would put it after the new one.
        """
        return [
            (key, value)
            for key, (at, value) in self._live.items()
            if at < offset and key not in self._pending
        ]

    def __len__(self) -> int:
        return len(self._live)

    def _put(self, key: bytes, offset: int, value: bytes | None) -> None:
        self._live.pop(key, None)
        if value is not None:
            self._live[key] = offset, value
