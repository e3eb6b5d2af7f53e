"""What the logs hold, as far as it was answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from tests.simulation.story import Story

from sharecore import _core


@dataclass
class Log:
    """One partition of one topic.

    Args:
        values: what was answered to be at an offset, or was seen there.
        answered: offsets of records that a producer was told of.
        gone_below: records below may be gone: somebody asked for that.
    """

    values: dict[int, bytes] = field(default_factory=dict)
    answered: dict[int, float] = field(default_factory=dict)
    gone_below: int = 0


def transaction_of(value: bytes) -> bytes | None:
    """The transaction that a record says it belongs to."""
    return value.split(b"|")[1] if b"|" in value else None


class Ledger:
    """Every log that was written to.

    Attributes:
        names: of topics.
        fates: of transactions: what was asked for them last.
        sure: transactions whose commit was answered.
        contents: values by offset as they were read at the end; `ends` has the offset behind the last.
        compacted: topics whose records may vanish.
    """

    def __init__(self, story: Story) -> None:
        self.logs: dict[tuple[UUID, int], Log] = {}
        self.names: dict[UUID, str] = {}
        self.ids: dict[str, UUID] = {}
        self.fates: dict[bytes, str] = {}
        self.sure: set[bytes] = set()
        self.compacted: set[str] = set()
        self.contents: dict[tuple[UUID, int], dict[int, bytes]] = {}
        self.ends: dict[tuple[UUID, int], int] = {}
        self._story = story
        self._deliveries: dict[tuple[UUID, int, int], bytes] = {}

    def log(self, topic_id: UUID, partition: int) -> Log:
        """What is known of a log."""
        return self.logs.setdefault((topic_id, partition), Log())

    def created(self, name: str, topic_id: UUID) -> None:
        """A topic was made."""
        self.names[topic_id] = name
        self.ids[name] = topic_id

    def asked(self, request: Any) -> None:
        """Somebody produces; nothing is known before the answer."""

    def produced(self, request: Any, name: str, index: int, code: int, base_offset: int, now: float) -> None:
        """Produce was answered."""
        topic_id = self.ids.get(name)
        if code or topic_id is None:
            return
        log = self.log(topic_id, index)
        for topic in request.topic_data:
            for part in topic.partition_data:
                if topic.name != name or part.index != index:
                    continue
                records = bytes(part.records)
                last = int.from_bytes(records[23:27], "big")
                for row in _core.decode_records(records, [(0, last, 1)], name, index, None)[0]:
                    offset = base_offset + row.offset
                    self._is_at(log, f"{name}-{index}", offset, row.value or b"")
                    log.answered.setdefault(offset, now)

    def _is_at(self, log: Log, where: str, offset: int, value: bytes) -> None:
        known = log.values.setdefault(offset, value)
        if known != value:
            self._story.broken(
                "another record", f"{where} offset {offset} holds {value!r}, not {known!r} as before"
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
        found, _, missing, damaged = _core.decode_records(records, list(ranges), name, index, None)
        if damaged:
            self._story.broken("damaged batch", f"{name}-{index}: {damaged}")
        if missing and name not in self.compacted:
            known = self.log(topic_id, index).answered
            lost = [offset for first, last in missing for offset in range(first, last + 1) if offset in known]
            if lost:
                self._story.broken("records are not there", f"{name}-{index}: {lost[:10]}")
        log = self.log(topic_id, index)
        for record in found:
            value = record.value or b""
            self._is_at(log, f"{name}-{index}", record.offset, value)
            transaction = transaction_of(value)
            if committed and transaction is not None and self.fates.get(transaction) != "commit":
                fate = self.fates.get(transaction)
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

    def check_log(self, topic_id: UUID, index: int, start: int, found: dict[int, bytes]) -> None:
        """A whole log was read: nothing answered is missing.

        Args:
            start: where it begins.
            found: values by offset.
        """
        name = self.names.get(topic_id, "?")
        log = self.log(topic_id, index)
        begins_late = start > log.gone_below
        if begins_late and name not in self.compacted and not self.retained(name):
            self._story.broken(
                "records are lost", f"{name}-{index} begins at {start}, not at {log.gone_below}"
            )
        for offset, value in log.values.items():
            if offset < start or offset < log.gone_below:
                continue
            there = found.get(offset)
            if there is None and offset in log.answered and name not in self.compacted:
                self._story.broken("records are lost", f"{name}-{index} offset {offset}, {value!r}")
                return
            if there is not None and there != value:
                self._story.broken(
                    "another record", f"{name}-{index} offset {offset} holds {there!r}, not {value!r}"
                )
        values = [value for value in found.values() if value.startswith(b"once")]
        twice = (
            {value for value in values if values.count(value) > 1} if len(values) != len(set(values)) else ()
        )
        for value in sorted(twice)[:3]:
            self._story.broken("record twice", f"{name}-{index}: {value!r} of an idempotent producer")

    def retained(self, name: str) -> bool:
        """Whether a topic's records may have grown too old."""
        return name.startswith("short")
