"""Metrics of share groups with settings that Kafka does not have (docs/queues.md)."""

from __future__ import annotations

from sharecore.metrics.family import Family, counter, gauge, summary

_TOPIC = ("group", "topic")

GROUP_WAITING = gauge(
    "sharecore_share_group_records_waiting",
    "Records that wait: backoff, before they are delivered again (share.retry.backoff.ms); delivery, for "
    "their delivery time; unread, until their headers or keys have been read; order, for others of their "
    "key or partition (share.ordering); takeover, for share.ordering.takeover.wait; idle, for a member that "
    "fetches, in share partitions that are not loaded. Only of groups with an order, a back-off, delivery "
    "times or a time to live.",
    "group",
    "topic",
    "reason",
)
GROUP_HELD_BACK = gauge(
    "sharecore_share_group_fetches_held_back",
    "Fetches that wait for share.records.per.second (rate), or as their member holds "
    "share.member.max.record.locks (member), or for the breaker, share.breaker.percent (breaker).",
    "group",
    "reason",
)
GROUP_BREAKER = gauge(
    "sharecore_share_group_breaker_state",
    "Whether too much of what ended was given up (share.breaker.percent): 0, the group gets records; 1, 10 "
    "at a time; 2, none.",
    "group",
)
GROUP_BREAKER_OPENED = counter(
    "sharecore_share_group_breaker_opened", "How often that has stopped a group's records.", "group"
)
GROUP_KEPT = gauge(
    "sharecore_share_group_records_kept",
    "Records that members hold longer than a lock lasts, as they are connected (share.record.lock.keep).",
    *_TOPIC,
)
GROUP_KEYS = gauge(
    "sharecore_share_group_keys",
    "Keys with records that were read and are not settled, over a topic's partitions (share.ordering=key).",
    *_TOPIC,
)
GROUP_HOTTEST_KEY = gauge(
    "sharecore_share_group_hottest_key_records",
    "Records of the key that has the most that are read and not settled in a partition (share.ordering=key).",
    *_TOPIC,
)
GROUP_WINDOW_FULL = gauge(
    "sharecore_share_group_window_full",
    "Share partitions that take no new records because of those that wait (share.partition.max.waiting).",
    *_TOPIC,
)
GROUP_UNITS = gauge(
    "sharecore_share_group_waiting_units",
    "Records that are neither acquired nor finished, or with share.ordering=key runs of neighbors with one "
    "key, in the topic's partition with the most (share.partition.max.waiting).",
    *_TOPIC,
)
GROUP_EXPIRED = counter(
    "sharecore_share_group_expired", "Records given up because their time to live was over.", *_TOPIC
)
GROUP_UNREADABLE_HEADERS = counter(
    "sharecore_share_group_unreadable_headers",
    "Headers with a delivery time or a time to live that are no number and count as none.",
    *_TOPIC,
)
GROUP_UNREADABLE_BATCHES = counter(
    "sharecore_share_group_unreadable_batches",
    "Record batches that cannot be expanded to read headers and keys; their records are delivered without "
    "times and without an order.",
    *_TOPIC,
)
GROUP_LATE = summary(
    "sharecore_share_group_seconds_late",
    "Time from the end of a record's back-off or delivery time to its delivery; it includes waiting for a "
    "member, but not for earlier records of its key.",
    *_TOPIC,
)
GROUP_THINNED = counter(
    "sharecore_share_group_thinned_bytes",
    "Bytes of record batches that answers left out, as their member acquired less than half of the batch.",
    *_TOPIC,
)
IDLE_PARTITIONS = gauge(
    "sharecore_share_idle_partitions",
    "Share partitions that no member uses and that stay in memory, as they know since when records wait.",
)
IDLE_BYTES = gauge("sharecore_share_idle_bytes", "Memory of those; at most 128 MiB.")
IDLE_DROPPED = counter(
    "sharecore_share_idle_partitions_dropped",
    "Share partitions unloaded because such partitions took more memory; their back-offs begin anew.",
)
QUEUES: tuple[Family, ...] = tuple(each for each in list(globals().values()) if isinstance(each, Family))
"""All of them, in the order of the page."""
