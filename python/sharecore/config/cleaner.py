"""Settings of the log cleaner, and the broker's defaults for settings of compacted topics."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from sharecore.config.keys import LONG_MAX, Dynamic, Kind, setting


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class CleanerSettings:
    """When and how fast logs are compacted, and in how much memory."""

    log_cleaner_enable: bool = setting(Kind.BOOLEAN, True, "Compact topics with cleanup.policy=compact.")
    log_cleaner_threads: int = setting(
        Kind.INT, 1, "Number of logs compacted concurrently.", low=1, dynamic=Dynamic.CLUSTER_WIDE
    )
    log_cleaner_io_max_bytes_per_second: float = setting(
        Kind.DOUBLE,
        sys.float_info.max,
        "Maximum bytes per second that all compactions together read and write.",
        dynamic=Dynamic.CLUSTER_WIDE,
    )
    log_cleaner_dedupe_buffer_size: int = setting(
        Kind.LONG,
        134217728,
        "Memory for the keys of all compactions together, 24 bytes per key; a log with more keys takes "
        "several passes.",
        dynamic=Dynamic.CLUSTER_WIDE,
    )
    log_cleaner_io_buffer_size: int = setting(
        Kind.INT,
        524288,
        "Read buffer of all compactions together.",
        low=0,
        dynamic=Dynamic.CLUSTER_WIDE,
    )
    log_cleaner_io_buffer_load_factor: float = setting(
        Kind.DOUBLE,
        0.9,
        "Maximum fraction of the key memory that is used.",
        dynamic=Dynamic.CLUSTER_WIDE,
    )
    log_cleaner_backoff_ms: int = setting(
        Kind.LONG,
        15000,
        "How often the cleaner looks for logs to compact.",
        low=0,
        dynamic=Dynamic.CLUSTER_WIDE,
    )
    log_cleaner_min_cleanable_ratio: float = setting(
        Kind.DOUBLE,
        0.5,
        "Minimum fraction of a log that is new since its last compaction.",
        low=0,
        high=1,
        dynamic=Dynamic.CLUSTER_WIDE,
    )
    log_cleaner_delete_retention_ms: int = setting(
        Kind.LONG,
        86400000,
        "Retention time of tombstones in compacted topics.",
        low=0,
        dynamic=Dynamic.CLUSTER_WIDE,
    )
    log_cleaner_min_compaction_lag_ms: int = setting(
        Kind.LONG, 0, "Minimum age of a record before it is compacted.", low=0, dynamic=Dynamic.CLUSTER_WIDE
    )
    log_cleaner_max_compaction_lag_ms: int = setting(
        Kind.LONG,
        LONG_MAX,
        "Maximum age of an uncompacted record.",
        low=1,
        dynamic=Dynamic.CLUSTER_WIDE,
    )
