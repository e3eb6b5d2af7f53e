"""Settings of the log cleaner, and the broker's defaults for what a compacted topic may set itself."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from sharecore.config.keys import LONG_MAX, Dynamic, Kind, setting


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class CleanerSettings:
    """When and how fast logs are compacted, and in how much memory."""

    log_cleaner_enable: bool = setting(
        Kind.BOOLEAN, True, "Compact the topics whose cleanup.policy has compact."
    )
    log_cleaner_threads: int = setting(
        Kind.INT, 1, "Logs that are compacted at a time.", low=1, dynamic=Dynamic.CLUSTER_WIDE
    )
    log_cleaner_io_max_bytes_per_second: float = setting(
        Kind.DOUBLE,
        sys.float_info.max,
        "Bytes a second that all passes together read and write.",
        dynamic=Dynamic.CLUSTER_WIDE,
    )
    log_cleaner_dedupe_buffer_size: int = setting(
        Kind.LONG,
        134217728,
        "Memory for the keys of all passes together, 24 bytes a key; more keys take several passes.",
        dynamic=Dynamic.CLUSTER_WIDE,
    )
    log_cleaner_io_buffer_size: int = setting(
        Kind.INT,
        524288,
        "Bytes that all passes together read at a time.",
        low=0,
        dynamic=Dynamic.CLUSTER_WIDE,
    )
    log_cleaner_io_buffer_load_factor: float = setting(
        Kind.DOUBLE,
        0.9,
        "Share of the memory for keys that is filled.",
        dynamic=Dynamic.CLUSTER_WIDE,
    )
    log_cleaner_backoff_ms: int = setting(
        Kind.LONG,
        15000,
        "Time between two looks for something to compact.",
        low=0,
        dynamic=Dynamic.CLUSTER_WIDE,
    )
    log_cleaner_min_cleanable_ratio: float = setting(
        Kind.DOUBLE,
        0.5,
        "Share of a log that must be new since its last pass before the next.",
        low=0,
        high=1,
        dynamic=Dynamic.CLUSTER_WIDE,
    )
    log_cleaner_delete_retention_ms: int = setting(
        Kind.LONG,
        86400000,
        "Time that tombstones of a compacted topic are kept.",
        low=0,
        dynamic=Dynamic.CLUSTER_WIDE,
    )
    log_cleaner_min_compaction_lag_ms: int = setting(
        Kind.LONG, 0, "Age below which records are not compacted.", low=0, dynamic=Dynamic.CLUSTER_WIDE
    )
    log_cleaner_max_compaction_lag_ms: int = setting(
        Kind.LONG,
        LONG_MAX,
        "Age above which records are compacted however few they are.",
        low=1,
        dynamic=Dynamic.CLUSTER_WIDE,
    )
