"""What the logs hold, as far as it was answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from tests.simulation.queues.notes import Note, Notes
from tests.simulation.story import Story

from sharecore import _core


@dataclass
class Log:
    """One partition of one topic.

    Args:
        values: what was answered to be at an offset, or was seen there.
        answered: offsets of records that a producer was told of, and when the broker was asked for them.
        gone_below: records below may be gone: somebody asked for that.
        trimmed: what retention has deleted was looked at up to here.
        keys: of records that were answered and have one.
        notes: what records say about order and times.
    """

    values: dict[int, bytes] = field(default_factory=dict)
    keys: dict[int, bytes] = field(default_factory=dict)
    answered: dict[int, float] = field(default_factory=dict)
    notes: Notes = field(default_factory=Notes)
    gone_below: int = 0
    trimmed: int = 0

    @property
    def end(self) -> int:
        """Behind the last offset that is known."""
        return max(self.values, default=-1) + 1


class Row(NamedTuple):
    """A record as it is sent, or was found."""

    offset: int
    key: bytes | None
    value: bytes
    note: Note


Rows = Sequence[Row]


def _row(record: Any, since: float) -> Row:
    note = Note(record.key, dict(record.headers), record.timestamp, since)
    return Row(record.offset, record.key, record.value or b"", note)


def transaction_of(value: bytes) -> bytes | None:
    """The transaction that a record says it belongs to."""
    return value.split(b"|")[1] if b"|" in value else None


class Ledger:
    """Every log that was written to.

    Attributes:
        sent: values that somebody wanted to have in a topic's partition.
        names: of topics.
        fates: of transactions: what was asked for them last, nothing while they are open.
        endless: transactions that may have lost their end.
        sure: transactions whose commit was answered.
        contents: values by offset as they were read at the end; `ends` has the offset behind the last.
        compacted: topics whose records may vanish.
        harmed: the disk may give damaged batches.
    """

    def __init__(self, story: Story) -> None:
        self.logs: dict[tuple[UUID, int], Log] = {}
        self.sent: dict[tuple[str, int], set[bytes]] = {}
        self.names: dict[UUID, str] = {}
        self.ids: dict[str, UUID] = {}
        self.fates: dict[bytes, str] = {}
        self.sure: set[bytes] = set()
        self.endless: set[bytes] = set()
        self.compacted: set[str] = set()
        self.harmed = False
        self.contents: dict[tuple[UUID, int], dict[int, bytes]] = {}
        self.ends: dict[tuple[UUID, int], int] = {}
        self._story = story

    def log(self, topic_id: UUID, partition: int) -> Log:
        """What is known of a log."""
        return self.logs.setdefault((topic_id, partition), Log())

    def created(self, name: str, topic_id: UUID) -> None:
        """A topic was made."""
        self.names[topic_id] = name
        self.ids[name] = topic_id

    def forgive(self) -> None:
        """The disk has lost something: answered records may be gone, their offsets given to others."""
        for log in self.logs.values():
            log.values.clear()
            log.answered.clear()
            log.keys.clear()
            log.notes = Notes()
        self.sure.clear()

    def lose_ends(self) -> None:
        """Whatever transaction there was may have kept its records and lost its end."""
        found = (transaction_of(value) for values in self.sent.values() for value in values)
        self.endless.update(tag for tag in found if tag is not None)

    def asked(self, request: Any, now: float = 0.0) -> dict[tuple[str, int], Rows]:
        """Somebody produces; gives offset, key and value of what is to be where."""
        found: dict[tuple[str, int], Rows] = {}
        for topic in request.topic_data:
            for part in topic.partition_data:
                records = bytes(part.records)
                last = int.from_bytes(records[23:27], "big")
                rows = _core.decode_records(records, [(0, last, 1)], topic.name, part.index, None)[0]
                place = topic.name, part.index
                found[place] = [_row(row, now) for row in rows]
                sent = self.sent.setdefault(place, set())
                sent.update([row.value for row in found[place]])
        return found

    def produced(self, name: str, index: int, rows: Rows, base_offset: int, asked: float) -> None:
        """Produce was answered."""
        topic_id = self.ids.get(name)
        if topic_id is None:
            return
        log = self.log(topic_id, index)
        for delta, key, value, note in rows:
            offset = base_offset + delta
            log.notes.add(offset, note)
            self._is_at(log, name, index, offset, value)
            log.answered.setdefault(offset, asked)
            if key is not None:
                log.keys[offset] = key

    def _is_at(self, log: Log, name: str, index: int, offset: int, value: bytes) -> None:
        known = log.values.setdefault(offset, value)
        if value not in self.sent.get((name, index), ()):
            self._story.broken("invented record", f"{name}-{index} offset {offset}: nobody sent {value!r}")
        elif known != value:
            self._story.broken(
                "another record", f"{name}-{index} offset {offset} holds {value!r}, not {known!r} as before"
            )

    def delivered(
        self,
        topic_id: UUID,
        index: int,
        records: bytes,
        ranges: Sequence[Any],
        *,
        committed: bool,
    ) -> None:
        """A share fetch brought records."""
        name = self.names.get(topic_id, "?")
        try:
            found, gaps, missing, damaged = _core.decode_records(records, list(ranges), name, index, None)
        except ValueError as error:
            self._story.broken("acquired ranges", f"{name}-{index}: {ranges}: {error}")
            return
        if damaged and not self.harmed:
            self._story.broken("damaged batch", f"{name}-{index}: {damaged}")
        if (gaps or missing) and name not in self.compacted and not self.harmed:
            known = self.log(topic_id, index).answered
            absent = (offset for first, last in [*gaps, *missing] for offset in range(first, last + 1))
            lost = [offset for offset in absent if offset in known]
            if lost:
                self._story.broken("records are not there", f"{name}-{index}: {lost[:10]}")
        log = self.log(topic_id, index)
        for record in found:
            value = record.value or b""
            self._is_at(log, name, index, record.offset, value)
            log.notes.add(record.offset, _row(record, 0.0).note)
            transaction = transaction_of(value)
            fate = "" if transaction is None else self.fates.get(transaction, "open")
            unknown = self.harmed or transaction in self.endless
            if committed and fate in ("open", "abort") and not unknown:
                text = f"{name}-{index} offset {record.offset} of {transaction!r}: {fate}"
                self._story.broken("uncommitted record", text)

    def deletes(self, request: Any) -> None:
        """Somebody asks for records to be deleted."""
        for topic in request.topics:
            topic_id = self.ids.get(topic.name)
            for part in topic.partitions:
                if topic_id is not None:
                    log = self.log(topic_id, part.partition_index)
                    below = part.offset if part.offset >= 0 else 1 << 62
                    log.gone_below = max(log.gone_below, below)

    def deleted(self, name: str, index: int, low_watermark: int) -> None:
        """Records below an offset are gone."""
        topic_id = self.ids.get(name)
        if topic_id is not None:
            log = self.log(topic_id, index)
            log.gone_below = (
                min(log.gone_below, low_watermark) if log.gone_below >= 1 << 62 else log.gone_below
            )

    def check_log(
        self, topic_id: UUID, index: int, start: int, found: dict[int, bytes], keys: dict[int, bytes]
    ) -> None:
        """A whole log was read: nothing answered is missing.

        Args:
            start: where it begins.
            found: values by offset.
            keys: keys by offset.
        """
        name = self.names.get(topic_id, "?")
        log = self.log(topic_id, index)
        begins_late = start > log.gone_below
        if begins_late and name not in self.compacted and not self.retained(name):
            self._story.broken(
                "records are lost", f"{name}-{index} begins at {start}, not at {log.gone_below}"
            )
        for offset, value in found.items():
            self._is_at(log, name, index, offset, value)
        newest = {key: offset for offset, key in sorted(log.keys.items()) if name in self.compacted}
        there = {key: offset for offset, key in sorted(keys.items())}
        for key, offset in newest.items():
            if there.get(key, -1) < offset:
                self._story.broken(
                    "records are lost", f"{name}-{index} offset {offset}, the newest of key {key!r}"
                )
        for offset, value in log.values.items():
            if offset < start or offset < log.gone_below:
                continue
            if offset not in found and offset in log.answered and name not in self.compacted:
                self._story.broken("records are lost", f"{name}-{index} offset {offset}, {value!r}")
                return
        values = [value for value in found.values() if value.startswith(b"once")]
        twice = (
            {value for value in values if values.count(value) > 1} if len(values) != len(set(values)) else ()
        )
        for value in sorted(twice)[:3]:
            self._story.broken("record twice", f"{name}-{index}: {value!r} of an idempotent producer")

    def retained(self, name: str) -> bool:
        """Whether a topic's records may have grown too old."""
        return name.startswith("short")
