"""Why records of share groups wait, as metrics of `sharecore export-metrics`."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from sharecore.admin.overview import GroupOverview
from sharecore.admin.waiting import Reason, Waiting, waiting_of_groups
from sharecore.client.wire.cluster import TopicPartition
from sharecore.client.wire.transport import Transport
from sharecore.metrics import queue_families as q
from sharecore.metrics.exposition import Lines, labels_of
from sharecore.metrics.families import GROUP_PAUSED

_COUNTED = frozenset({"backoff", "delivery", "unread", "order", "idle"})
"""Reasons that say how many records wait."""


async def waiting_now(
    transport: Transport, groups: Iterable[GroupOverview], partitions_max: int
) -> dict[str, Waiting]:
    """Return why records of the groups wait, of those whose brokers report it.

    Args:
        partitions_max: share partitions whose own reasons are asked for, the most lagging first.
    """
    behind = {each.group_id: each.lags() for each in groups if each.error is None}
    found = await waiting_of_groups(transport, dict.fromkeys(behind, ()))
    # only of groups with rules do share partitions have reasons of their own that are metrics
    places = [
        (lag, group_id, each)
        for group_id, waiting in found.items()
        if waiting.has_rules
        for each, lag in behind[group_id].items()
    ]
    wanted = defaultdict[str, list[TopicPartition]](list)
    for _, group_id, each in sorted(places, reverse=True)[:partitions_max]:
        wanted[group_id].append(each)
    found |= await waiting_of_groups(transport, wanted)
    return {group_id: waiting for group_id, waiting in found.items() if not waiting.missing}


def show_waiting(
    waiting: Mapping[str, Waiting], lags: Mapping[str, Mapping[TopicPartition, int]], lines: Lines
) -> None:
    """Add the samples, with the names and meanings that a broker's own have.

    Args:
        lags: by group and share partition.
    """
    now_ms = round(time.time() * 1000)
    for group_id, of_group in sorted(waiting.items()):
        label = labels_of(("group",), (group_id,))
        lines.of(GROUP_PAUSED).append(f"{label}}} {int(of_group.pause.describe(now_ms) != '')}")
        held_back = Counter[str]()
        breaker = 0
        for reason in of_group.fetches:
            if "fetches" in reason:
                held_back[reason["reason"]] += reason["fetches"]
            if reason["reason"] == "breaker":
                breaker = max(breaker, 1 if reason.get("dueMs") is None else 2)
                lines.of(q.GROUP_BREAKER).append(f"{label}}} {breaker}")
        for name, fetches in held_back.items():
            lines.of(q.GROUP_HELD_BACK).append(f'{label},reason="{name}"}} {fetches}')
        _show_partitions(group_id, of_group, lags.get(group_id, {}), lines)


def _show_partitions(
    group_id: str, waiting: Waiting, lags: Mapping[TopicPartition, int], lines: Lines
) -> None:
    records = Counter[tuple[str, str]]()
    full, kept, hottest = Counter[str](), Counter[str](), Counter[str]()
    for (topic, partition), reasons in waiting.partitions.items():
        for reason in reasons:
            name = reason["reason"]
            if name in _COUNTED and "records" in reason:
                records[topic, name] += _number(reason, "records")
            elif name in ("takeover", "idle"):
                records[topic, name] += lags.get(TopicPartition(topic, partition), 0)
            full[topic] += name == "window"
            kept[topic] += _number(reason, "records") if name == "kept" else 0
            hottest[topic] = max(hottest[topic], _number(reason, "most"))
    for (topic, name), count in sorted(records.items()):
        of_topic = labels_of(("group", "topic"), (group_id, topic))
        lines.of(q.GROUP_WAITING).append(f'{of_topic},reason="{name}"}} {count}')
    for family, counts in ((q.GROUP_WINDOW_FULL, full), (q.GROUP_KEPT, kept), (q.GROUP_HOTTEST_KEY, hottest)):
        for topic, count in sorted((+counts).items()):
            lines.of(family).append(f"{labels_of(('group', 'topic'), (group_id, topic))}}} {count}")


def _number(reason: Reason, name: str) -> int:
    """Return a number of a reason; 0 if a broker of another version does not report it."""
    found = reason.get(name)
    return found if isinstance(found, int) else 0
