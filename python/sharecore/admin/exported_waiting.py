"""Why records of share groups wait, as metrics of `sharecore export-metrics`."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from sharecore.admin.overview import GroupOverview
from sharecore.admin.waiting import NOT_REPORTED, Reason, Waiting, waiting_of_groups
from sharecore.client.wire.cluster import TopicPartition
from sharecore.client.wire.transport import Transport
from sharecore.metrics import queue_families as q
from sharecore.metrics.exposition import Lines, labels_of
from sharecore.metrics.families import GROUP_PAUSED

PARTITIONS_MAX = 10_000
"""Share partitions asked for reasons in a round; topics beyond it have no sums of waiting records."""
ROUNDS_UNASKED = 9
"""Rounds without a question after one in which no broker reported anything, as on Apache Kafka."""

_COUNTED = frozenset({"backoff", "delivery", "unread", "order", "idle"})
"""Reasons that say how many records wait."""
_NUMBER_MAX = (1 << 63) - 1
_REASONS_NAMED = 3
"""Reasons for gaps that one log line quotes."""

_Topic = tuple[str, str]
"""A group and a topic."""


class WaitingRounds:
    """Asks a cluster in rounds why records of its share groups wait.

    Args:
        transport: an administrator's connections.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._unasked = 0
        self._waiting: dict[str, Waiting] = {}
        self._partial: dict[str, set[str]] = {}
        self._known_gaps: frozenset[str] = frozenset()

    async def look(self, groups: Iterable[GroupOverview]) -> str:
        """Ask the brokers; return a log line for each new gap in their answers."""
        if self._unasked:
            self._unasked -= 1
            return ""
        behind = {each.group_id: _unsettled(each) for each in groups if each.error is None}
        found = await waiting_of_groups(self._transport, dict.fromkeys(behind, ()))
        if found and not any(each.is_answered for each in found.values()):
            self._unasked = ROUNDS_UNASKED
        wanted, self._partial = _whole_topics(
            {
                group_id: behind[group_id]
                for group_id, each in found.items()
                if each.has_rules or each.keeps_locks
            }
        )
        for group_id, waiting in (await waiting_of_groups(self._transport, wanted)).items():
            if waiting.is_answered:
                found[group_id] = waiting
            else:
                found[group_id].missing = waiting.missing
            if waiting.missing:
                unknown = {each.topic for each in wanted[group_id] if each not in waiting.partitions}
                self._partial.setdefault(group_id, set()).update(unknown)
        self._waiting = {group_id: each for group_id, each in found.items() if each.is_answered}
        return self._new_gaps(found.values())

    def show(self, lags: Mapping[str, Mapping[TopicPartition, int]], lines: Lines) -> None:
        """Add the samples, with the names and meanings that a broker's own have.

        Args:
            lags: by group and share partition.
        """
        now_ms = round(time.time() * 1000)
        for group_id, waiting in sorted(self._waiting.items()):
            _show_group(group_id, waiting, now_ms, lines)
            partial = self._partial.get(group_id, set())
            _show_topics(group_id, waiting, partial, lags.get(group_id, {}), lines)

    def _new_gaps(self, found: Iterable[Waiting]) -> str:
        gaps = frozenset(each.missing for each in found) - {"", NOT_REPORTED}
        new = sorted(gaps - self._known_gaps)
        self._known_gaps = gaps
        if not new:
            return ""
        more = f"; and {len(new) - _REASONS_NAMED} more" if len(new) > _REASONS_NAMED else ""
        return f"metrics of why records wait are incomplete: {'; '.join(new[:_REASONS_NAMED])}{more}"


def _unsettled(group: GroupOverview) -> dict[TopicPartition, int]:
    """Return the lag of share partitions with pending records; -1 if it is unknown."""
    return {
        TopicPartition(topic, partition): position.lag
        for topic, positions in group.positions.items()
        for partition, position in positions.items()
        if position.lag
    }


def _whole_topics(
    lags: Mapping[str, Mapping[TopicPartition, int]],
) -> tuple[dict[str, list[TopicPartition]], dict[str, set[str]]]:
    """Choose share partitions to ask for, of the most lagging topics first; return omitted topics, too."""
    partitions = defaultdict[_Topic, list[TopicPartition]](list)
    lag_of = Counter[_Topic]()
    for group_id, of_group in lags.items():
        for each, lag in of_group.items():
            partitions[group_id, each.topic].append(each)
            lag_of[group_id, each.topic] += max(lag, 0)
    wanted = defaultdict[str, list[TopicPartition]](list)
    omitted = defaultdict[str, set[str]](set)
    left = PARTITIONS_MAX
    for place in sorted(partitions, key=lambda place: (-lag_of[place], place)):
        if len(partitions[place]) > left:
            omitted[place[0]].add(place[1])
            continue
        left -= len(partitions[place])
        wanted[place[0]] += partitions[place]
    return wanted, omitted


def _show_group(group_id: str, waiting: Waiting, now_ms: int, lines: Lines) -> None:
    label = labels_of(("group",), (group_id,))
    lines.of(GROUP_PAUSED).append(f"{label}}} {int(waiting.pause.describe(now_ms) != '')}")
    held_back = Counter[str]()
    breaker = 0
    for reason in waiting.fetches:
        if "fetches" in reason:
            held_back[reason["reason"]] += _number(reason, "fetches")
        if reason["reason"] == "breaker":
            breaker = max(breaker, 1 if reason.get("dueMs") is None else 2)
    if waiting.has_breaker or breaker:
        lines.of(q.GROUP_BREAKER).append(f"{label}}} {breaker}")
    for name, fetches in held_back.items():
        of_reason = labels_of(("group", "reason"), (group_id, name))
        lines.of(q.GROUP_HELD_BACK).append(f"{of_reason}}} {fetches}")


def _show_topics(
    group_id: str,
    waiting: Waiting,
    partial: Iterable[str],
    lags: Mapping[TopicPartition, int],
    lines: Lines,
) -> None:
    records = Counter[tuple[str, str]]()
    full, kept, hottest = Counter[str](), Counter[str](), Counter[str]()
    for (topic, partition), reason in _reasons(waiting, partial):
        name = reason["reason"]
        if name in _COUNTED and "records" in reason:
            records[topic, name] += _number(reason, "records")
        elif name in ("takeover", "idle"):
            records[topic, name] += lags.get(TopicPartition(topic, partition), 0)
        full[topic] += name == "window"
        kept[topic] += _number(reason, "records") if name == "kept" else 0
        hottest[topic] = max(hottest[topic], _number(reason, "most"))
    for (topic, name), count in sorted(records.items()):
        of_reason = labels_of(("group", "topic", "reason"), (group_id, topic, name))
        lines.of(q.GROUP_WAITING).append(f"{of_reason}}} {count}")
    for family, counts in ((q.GROUP_WINDOW_FULL, full), (q.GROUP_KEPT, kept), (q.GROUP_HOTTEST_KEY, hottest)):
        for topic, count in sorted((+counts).items()):
            lines.of(family).append(f"{labels_of(('group', 'topic'), (group_id, topic))}}} {count}")


def _reasons(waiting: Waiting, partial: Iterable[str]) -> Iterator[tuple[TopicPartition, Reason]]:
    for partition, reasons in waiting.partitions.items():
        if partition.topic not in partial:
            for reason in reasons:
                # brokers have the other metrics only of groups with rules
                if waiting.has_rules or reason["reason"] == "kept":
                    yield partition, reason


def _number(reason: Reason, name: str) -> int:
    """Return a number of a reason; 0 if a broker of another version does not report it as one."""
    found = reason.get(name)
    return found if isinstance(found, int) and 0 <= found <= _NUMBER_MAX else 0
