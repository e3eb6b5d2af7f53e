"""Settings of topics and their logs: the broker's defaults for what a topic may set itself."""

from __future__ import annotations

from dataclasses import dataclass

from sharecore.config.keys import LONG_MAX, Dynamic, Kind, Status, setting

GZIP_LEVEL = "Level of batches that the broker compresses with gzip; -1: the usual one."
ZSTD_LEVEL = "Level of batches that the broker compresses with zstd."
COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
CLEANUP_POLICIES = ("compact", "delete")
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")


def check_gzip_level(level: int) -> None:
    """Raise ValueError for a level that gzip does not have."""
    if level == 0:
        raise ValueError("1 to 9, or -1 for the usual level")


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class TopicSettings:
    """How topics are made, how long they keep their records, and how much a client may fetch of them."""

    auto_create_topics_enable: bool = setting(
        Kind.BOOLEAN, True, "Make a topic when a client first asks for it."
    )
    num_partitions: int = setting(Kind.INT, 1, "Partitions of a topic made without a number.", low=1)
    default_replication_factor: int = setting(
        Kind.INT, 1, "Replicas of a topic that is made without a number; above one, none is made without."
    )
    delete_topic_enable: bool = setting(Kind.BOOLEAN, True, "Whether topics may be deleted.")
    min_insync_replicas: int = setting(
        Kind.INT,
        1,
        "Replicas that acks=all waits for, of those that a topic has: here it has one.",
        low=1,
        dynamic=Dynamic.CLUSTER_WIDE,
        status=Status.IGNORED,
    )
    compression_type: str = setting(
        Kind.STRING,
        "producer",
        "How batches are kept: producer leaves them as they come, others are compressed anew.",
        choices=COMPRESSION_TYPES,
        dynamic=Dynamic.CLUSTER_WIDE,
    )
    compression_gzip_level: int = setting(
        Kind.INT, -1, GZIP_LEVEL, low=-1, high=9, check=check_gzip_level, dynamic=Dynamic.CLUSTER_WIDE
    )
    compression_zstd_level: int = setting(
        Kind.INT, 3, ZSTD_LEVEL, low=-131072, high=22, dynamic=Dynamic.CLUSTER_WIDE
    )
    message_max_bytes: int = setting(
        Kind.INT, 1048588, "Largest record batch that is taken.", low=0, dynamic=Dynamic.CLUSTER_WIDE
    )
    log_cleanup_policy: tuple[str, ...] = setting(
        Kind.LIST,
        ("delete",),
        "What happens to old records: delete, compact, or both.",
        choices=CLEANUP_POLICIES,
        dynamic=Dynamic.CLUSTER_WIDE,
    )
    log_retention_ms: int | None = setting(
        Kind.LONG,
        None,
        "Time that records are kept; negative: for ever; not set: log.retention.minutes decides.",
        dynamic=Dynamic.CLUSTER_WIDE,
    )
    log_retention_minutes: int | None = setting(
        Kind.INT,
        None,
        "Time that records are kept; negative: for ever; not set: log.retention.hours decides.",
    )
    log_retention_hours: int = setting(Kind.INT, 168, "Time that records are kept; negative: for ever.")
    log_retention_bytes: int = setting(
        Kind.LONG, -1, "Bytes that a partition keeps; negative: no bound.", dynamic=Dynamic.CLUSTER_WIDE
    )
    log_retention_check_interval_ms: int = setting(
        Kind.LONG, 300000, "Time between two looks for records that are too old.", low=1
    )
    log_segment_bytes: int = setting(
        Kind.INT,
        1073741824,
        "Bytes after which records of a compacted topic no longer count as being written.",
        low=1048576,
        dynamic=Dynamic.CLUSTER_WIDE,
    )
    log_message_timestamp_type: str = setting(
        Kind.STRING,
        "CreateTime",
        "Whether a record keeps its producer's time or gets the broker's.",
        choices=TIMESTAMP_TYPES,
        dynamic=Dynamic.CLUSTER_WIDE,
    )
    log_message_timestamp_before_max_ms: int = setting(
        Kind.LONG,
        LONG_MAX,
        "How far a record's time may lie in the past.",
        low=0,
        dynamic=Dynamic.CLUSTER_WIDE,
    )
    log_message_timestamp_after_max_ms: int = setting(
        Kind.LONG,
        3600000,
        "How far a record's time may lie in the future.",
        low=0,
        dynamic=Dynamic.CLUSTER_WIDE,
    )
    fetch_max_bytes: int = setting(Kind.INT, 57671680, "Bytes of records in one answer to a fetch.", low=1024)
    max_incremental_fetch_session_cache_slots: int = setting(
        Kind.INT, 1000, "Fetch sessions of plain consumers that are kept at a time.", low=0
    )
    max_request_partition_size_limit: int = setting(
        Kind.INT, 2000, "Partitions in one answer to DescribeTopicPartitions.", low=1
    )
    sharecore_producer_ids_bytes_max: int = setting(
        Kind.LONG,
        536870912,
        "Memory that the idempotent producers of all partitions may take, about 350 bytes for each partition "
        "that each has written to. Beyond, the longest idle ones of the partition with the most are "
        "forgotten, but none with an open transaction.",
        low=1048576,
    )
    producer_id_expiration_ms: int = setting(
        Kind.INT, 86400000, "Time after which an idle producer's sequence numbers are forgotten.", low=1
    )

    @property
    def retention_ms(self) -> int:
        """The time that records are kept, of the three keys that can say it; -1 is for ever."""
        kept_ms = self.log_retention_hours * 3_600_000
        if self.log_retention_ms is not None:
            kept_ms = self.log_retention_ms
        elif self.log_retention_minutes is not None:
            kept_ms = self.log_retention_minutes * 60_000
        return max(kept_ms, -1)
