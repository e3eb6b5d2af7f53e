"""Share-group metrics, read from leaders and coordinators on request."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from time import thread_time
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from sharecore.errors import KafkaError
from sharecore.metrics import families as f
from sharecore.metrics import queue_families as q
from sharecore.metrics.exposition import Exposition, Lines, labels_of
from sharecore.partition.tally import Tally, observe_together
from sharecore.storage import ResourceType

if TYPE_CHECKING:
    from sharecore.broker.requests.services import Services
    from sharecore.partition.leader import Engine, SharePartition
    from sharecore.sharestate.state import ShareState
    from sharecore.storage import Topic

_TURN_PARTITIONS = 250
"""Share partitions read per turn: about a millisecond."""
_TYPES = ("gap", "accept", "release", "reject", "renew")
_LOOKED_AT = (q.GROUP_EXPIRED, q.GROUP_UNREADABLE_HEADERS, q.GROUP_UNREADABLE_BATCHES, q.GROUP_THINNED)
_REASONS = ("backoff", "delivery", "unread", "takeover", "idle")
_HELD_BACK = ("rate", "member", "breaker")
_UNKNOWN = -1

GroupTopic = tuple[str, UUID]


class _Entry(NamedTuple):
    """One share partition; without labels it has no series."""

    partition: int
    state: ShareState | None
    label: str


class _Total:
    """Totals of a topic's share partitions in one group."""

    __slots__ = (
        "behind",
        "full",
        "has_keys",
        "has_rules",
        "hottest",
        "in_flight",
        "is_known",
        "is_ordered",
        "kept",
        "keys",
        "lag",
        "oldest_ms",
        "tally",
        "units",
        "waiting",
    )  # fmt: skip

    def __init__(self) -> None:
        self.lag = self.in_flight = self.oldest_ms = self.full = self.units = 0
        self.behind = self.keys = self.hottest = 0
        self.kept: int | None = None
        self.waiting = [0] * len(_REASONS)
        self.is_known = self.has_rules = self.has_keys = self.is_ordered = False
        self.tally = Tally()

    def add_keys(self, keys: tuple[int, int, list[tuple[int, int, int]]] | None) -> None:
        """Count records that wait behind others of their key."""
        if keys is None:
            return
        behind, count, largest = keys
        self.has_keys = True
        self.behind += behind
        self.keys += count
        self.hottest = max([self.hottest, *(records for _, records, _ in largest)])


class ShareMetrics:
    """Share groups of a broker, by partition and by topic.

    The number of series is limited: the oldest share partitions keep theirs until they are gone.

    Args:
        broker: the broker.
        series_max: maximum number of share partitions, and of group topics, with series.
    """

    def __init__(self, broker: Services, series_max: int) -> None:
        self._broker = broker
        self._series_max = series_max
        self._shape: dict[GroupTopic, list[_Entry]] = {}
        self._without_label: dict[GroupTopic, int] = {}
        self._version: object = None
        self.cpu_s = 0.0
        """CPU time of the last collection."""

    async def collect(self, sheet: Exposition, lines: Lines) -> None:
        """Add the samples."""
        began = thread_time()
        self.cpu_s = 0.0
        self._look()
        totals: dict[GroupTopic, tuple[Topic, _Total]] = {}
        count = without = unyielded = 0
        for key, entries in list(self._shape.items()):
            topic = self._broker.topics.by_id(key[1])
            if topic is None:
                continue
            total = _Total()
            totals[key] = topic, total
            for first in range(0, len(entries), _TURN_PARTITIONS):
                some = entries[first : first + _TURN_PARTITIONS]
                self._read(lines, total, topic, key, some)
                unyielded += len(some)
                if unyielded >= _TURN_PARTITIONS:
                    unyielded = 0
                    self.cpu_s += thread_time() - began
                    await asyncio.sleep(0)
                    began = thread_time()
            count += len(entries)
            without += self._without_label[key]
        self._totals(sheet, lines, totals)
        sheet.add(f.SHARE_PARTITIONS, count)
        sheet.add(f.SHARE_PARTITIONS_UNSEEN, without)
        self.cpu_s += thread_time() - began

    def _look(self) -> None:
        """Refresh the list of share partitions, which rarely changes."""
        coordinator, partitions = self._broker.share.coordinator, self._broker.share.partitions
        version = (coordinator.version, len(partitions))
        if version == self._version:
            return
        self._version = version
        found: dict[GroupTopic, dict[int, ShareState | None]] = {}
        for shard in coordinator.shards:
            for (group_id, topic_id, partition), state in shard.states.items():
                found.setdefault((group_id, topic_id), {})[partition] = state
        for key, leaders in partitions.by_topic().items():
            # a custom persister does not expose its state
            known = found.setdefault(key, {})
            for index in leaders:
                known.setdefault(index, None)
        before = {
            key: {entry.partition: entry.label for entry in entries if entry.label}
            for key, entries in self._shape.items()
        }
        left = self._series_max - sum(
            len(before.get(key, {}).keys() & some.keys()) for key, some in found.items()
        )
        self._shape, self._without_label = {}, {}
        for key, states in found.items():
            topic = self._broker.topics.by_id(key[1])
            labels = before.get(key, {})
            entries = self._shape[key] = []
            for index, shared in states.items():
                label = labels.get(index, "")
                if not label and left > 0 and topic is not None:
                    left -= 1
                    label = labels_of(f.PART_LAG.labels, (key[0], topic.name, str(index)))
                entries.append(_Entry(index, shared, label))
            self._without_label[key] = sum(not entry.label for entry in entries)

    def _read(
        self, lines: Lines, total: _Total, topic: Topic, key: GroupTopic, entries: Sequence[_Entry]
    ) -> None:
        leaders: Mapping[int, SharePartition] = self._broker.share.partitions.by_topic().get(key, {})
        logs, now_ms = topic.partitions, self._broker.clock.monotonic_ms()
        starts, ends, lags = lines.of(f.PART_START), lines.of(f.PART_END), lines.of(f.PART_LAG)
        flights, ages = lines.of(f.PART_IN_FLIGHT), lines.of(f.PART_OLDEST)
        timeouts, deliveries = lines.of(f.PART_TIMEOUTS), lines.of(f.PART_DELIVERIES)
        engines: list[Engine] = []
        log_ends: list[int] = []
        marks = [log.high_watermark for log in logs]
        # only a group with settings of its own has rules
        configured = self._broker.configs.get(ResourceType.GROUP, key[0])
        has_idle_rules = bool(configured) and self._broker.share.partitions.config(key[0]).has_rules
        for index, state, label in entries:
            if index >= len(marks):
                continue
            end_of_log = marks[index]
            leader = leaders.get(index)
            engine = None if leader is None else leader.engine
            if leader is None or engine is None:
                if state is None or state.content.start_offset == _UNKNOWN:
                    continue
                start, complete = state.content.start_offset, state.content.delivery_complete_count
                lag = max(0, end_of_log - start - max(0, complete))
                total.lag += lag
                if has_idle_rules:
                    total.has_rules = True
                    total.waiting[_REASONS.index("idle")] += lag
                total.is_known = True
                if label:
                    starts.append(f"{label}}} {start}")
                    lags.append(f"{label}}} {lag}")
                continue
            engines.append(engine)
            log_ends.append(end_of_log)
            keeps, has_rules = leader.config.share_record_lock_keep != "none", engine.has_rules
            total.has_rules |= has_rules
            # the engine has failed, and is reloaded by the next use
            with suppress(KafkaError):
                if keeps or has_rules:
                    reasons = engine.waiting_reasons(1)
                if keeps:
                    total.kept = (total.kept or 0) + reasons.kept
                if has_rules:
                    total.full += reasons.is_full
                    total.units = max(total.units, reasons.units)
                    for at, records in enumerate((reasons.backoff, reasons.delivery, reasons.unread)):
                        total.waiting[at] += records
                    total.tally.add((), (), 0, engine.looked_at(), engine.lateness())
                    total.add_keys(reasons.keys)
                    if leader.takeover_left_ms:
                        complete = engine.start_offset + engine.delivery_complete_count
                        total.waiting[_REASONS.index("takeover")] += max(0, end_of_log - complete)
                    if reasons.is_in_line:
                        total.behind += max(0, end_of_log - engine.next_fetch_offset)
                    total.is_ordered |= leader.config.share_ordering == "partition"
            if not label:
                continue
            try:
                (start, end, in_flight, complete, deadline_ms, timed_out), _, delivered = engine.observe()
            except KafkaError:
                continue  # the engine has failed, and is reloaded by the next use
            age_ms = 0
            if deadline_ms is not None:
                age_ms = max(0, now_ms + leader.config.share_record_lock_duration_ms - deadline_ms)
            starts.append(f"{label}}} {start}")
            ends.append(f"{label}}} {end}")
            lags.append(f"{label}}} {max(0, end_of_log - start - complete)}")
            flights.append(f"{label}}} {in_flight}")
            ages.append(f"{label}}} {age_ms / 1000}")
            timeouts.append(f"{label}}} {timed_out}")
            for delivery, records in enumerate(delivered, 1):
                if records:
                    deliveries.append(f'{label},delivery="{delivery}"}} {records}')
        lag, in_flight, oldest_ms, timed_out, acknowledged, by_count = observe_together(
            engines, log_ends, now_ms
        )
        total.lag += lag
        total.is_known |= bool(engines)
        total.in_flight += in_flight
        total.oldest_ms = max(total.oldest_ms, oldest_ms)
        total.tally.add(acknowledged, by_count, timed_out)

    def _totals(
        self, sheet: Exposition, lines: Lines, totals: Mapping[GroupTopic, tuple[Topic, _Total]]
    ) -> None:
        retired = self._broker.share.partitions.retired
        by_group: dict[str, Tally] = {}
        for number, (key, (topic, total)) in enumerate(totals.items()):
            tally = total.tally
            gone = retired.get(key)
            if gone is not None:
                tally.add(gone.acknowledged, gone.deliveries, gone.timed_out, gone.looked_at, gone.late)
            by_group.setdefault(key[0], Tally()).add(tally.acknowledged, (), 0)
            if number >= self._series_max:
                continue
            label = labels_of(f.GROUP_LAG.labels, (key[0], topic.name))
            # a group that has not started a topic has no lag, which is not a lag of 0
            if total.is_known:
                lines.of(f.GROUP_LAG).append(f"{label}}} {total.lag}")
            lines.of(f.GROUP_IN_FLIGHT).append(f"{label}}} {total.in_flight}")
            lines.of(f.GROUP_OLDEST).append(f"{label}}} {total.oldest_ms / 1000}")
            if total.has_rules:
                for reason, records in zip(_REASONS, total.waiting, strict=True):
                    lines.of(q.GROUP_WAITING).append(f'{label},reason="{reason}"}} {records}')
                lines.of(q.GROUP_WINDOW_FULL).append(f"{label}}} {total.full}")
                lines.of(q.GROUP_UNITS).append(f"{label}}} {total.units}")
            if total.kept is not None:
                lines.of(q.GROUP_KEPT).append(f"{label}}} {total.kept}")
            if total.has_keys or total.is_ordered:
                lines.of(q.GROUP_WAITING).append(f'{label},reason="order"}} {total.behind}')
            if total.has_keys:
                lines.of(q.GROUP_KEYS).append(f"{label}}} {total.keys}")
                lines.of(q.GROUP_HOTTEST_KEY).append(f"{label}}} {total.hottest}")
            if total.has_rules or any(tally.looked_at):
                for family, number in zip(_LOOKED_AT, tally.looked_at, strict=True):
                    lines.of(family).append(f"{label}}} {number}")
            records, late_ms = tally.late
            if records:
                sheet.summary(q.GROUP_LATE, records, late_ms / 1000, key[0], topic.name)
            lines.of(f.GROUP_TIMEOUTS).append(f"{label}}} {tally.timed_out}")
            for delivery, records in enumerate(tally.deliveries, 1):
                if records:
                    lines.of(f.GROUP_DELIVERIES).append(f'{label},delivery="{delivery}"}} {records}')
        for group_id, tally in list(by_group.items())[: self._series_max]:
            label = labels_of(("group",), (group_id,))
            if self._broker.share.partitions.is_bounded(group_id):
                held_back = self._broker.share.partitions.held_back(group_id)
                for reason, fetches in zip(_HELD_BACK, held_back, strict=True):
                    lines.of(q.GROUP_HELD_BACK).append(f'{label},reason="{reason}"}} {fetches}')
                breaker = self._broker.share.partitions.breaker(group_id)
                if breaker is not None:
                    state, _, opened = breaker
                    lines.of(q.GROUP_BREAKER).append(f"{label}}} {state}")
                    lines.of(q.GROUP_BREAKER_OPENED).append(f"{label}}} {opened}")
            for name, records in zip(_TYPES, tally.acknowledged, strict=True):
                lines.of(f.RECORD_ACKNOWLEDGEMENTS).append(f'{label},ack_type="{name}"}} {records}')
