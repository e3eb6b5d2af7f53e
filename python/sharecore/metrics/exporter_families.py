"""Metrics of `sharecore export-metrics`: what any cluster reports about its share groups."""

from __future__ import annotations

from sharecore.metrics.families import GROUP_LAG, GROUP_PAUSED, PART_LAG, PART_START
from sharecore.metrics.families import GROUP_MEMBERS as MEMBERS
from sharecore.metrics.family import Family, gauge
from sharecore.metrics.queue_families import (
    GROUP_BREAKER,
    GROUP_HELD_BACK,
    GROUP_HOTTEST_KEY,
    GROUP_KEPT,
    GROUP_WAITING,
    GROUP_WINDOW_FULL,
)

__all__ = [
    "GROUP_BREAKER",
    "GROUP_HELD_BACK",
    "GROUP_HOTTEST_KEY",
    "GROUP_KEPT",
    "GROUP_LAG",
    "GROUP_PAUSED",
    "GROUP_WAITING",
    "GROUP_WINDOW_FULL",
    "MEMBERS",
    "PART_LAG",
    "PART_START",
]

UP = gauge(
    "sharecore_exporter_up", "1: the last round has found the cluster; with 0 there are no other figures."
)
ROUND_TIME = gauge("sharecore_exporter_round_seconds", "How long the newest round took.")
STATE_READABLE = gauge(
    "sharecore_exporter_share_state_readable", "1: __share_group_state is read, for poison candidates."
)
STATE = gauge("sharecore_share_group_state", "1, under the group's state.", "group", "state")
REFUSED = gauge(
    "sharecore_share_group_refused", "1, under why the cluster does not describe the group.", "group", "error"
)
OLDEST = gauge(
    "sharecore_share_group_oldest_unsettled_seconds",
    "Age of the oldest record that waits or is in flight, by its timestamp.",
    "group",
    "topic",
)
POISON = gauge(
    "sharecore_share_group_poison_candidates",
    "Records that came back --poison-deliveries times or more and wait to be delivered again.",
    "group",
    "topic",
)

EXPORTED: tuple[Family, ...] = tuple(each for each in list(globals().values()) if isinstance(each, Family))
"""All of them, in the order of the page."""
