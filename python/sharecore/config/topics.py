"""Settings of topics and their logs: the broker's defaults for settings of topics."""

from __future__ import annotations

from dataclasses import dataclass

from sharecore.config.keys import LONG_MAX, Dynamic, Kind, Status, setting

GZIP_LEVEL = "Compression level for batches that the broker compresses with gzip; -1: gzip's default."
ZSTD_LEVEL = "Compression level for batches that the broker compresses with zstd."
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
        Kind.BOOLEAN, True, "Create a topic when a client first asks for it."
    )
    num_partitions: int = setting(Kind.INT, 1, "Partitions of topics created without a number.", low=1)
    default_replication_factor: int = setting(
        Kind.INT, 1, "Replication factor of topics created without one; above 1, creating such topics fails."
    )
    delete_topic_enable: bool = setting(Kind.BOOLEAN, True, "Whether topics may be deleted.")
    min_insync_replicas: int = setting(
        Kind.INT,
        1,
        "Replicas that acks=all waits for; a topic here has one.",
        low=1,
        dynamic=Dynamic.CLUSTER_WIDE,
        status=Status.IGNORED,
    )
    compression_type: str = setting(
        Kind.STRING,
        "producer",
        "Compression of stored batches; producer: keep the producer's.",
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
        Kind.INT, 1048588, "Maximum size of a record batch.", low=0, dynamic=Dynamic.CLUSTER_WIDE
    )
    log_cleanup_policy: tuple[str, ...] = setting(
        Kind.LIST,
        ("delete",),
        "Cleanup of old records: delete, compact, or both.",
        choices=CLEANUP_POLICIES,
        dynamic=Dynamic.CLUSTER_WIDE,
    )
    log_retention_ms: int | None = setting(
        Kind.LONG,
        None,
        "Retention time of records; negative: forever; if not set, log.retention.minutes applies.",
        dynamic=Dynamic.CLUSTER_WIDE,
    )
    log_retention_minutes: int | None = setting(
        Kind.INT,
        None,
        "Retention time of records; negative: forever; if not set, log.retention.hours applies.",
    )
    log_retention_hours: int = setting(Kind.INT, 168, "Retention time of records; negative: forever.")
    log_retention_bytes: int = setting(
        Kind.LONG, -1, "Maximum size of a partition; negative: unlimited.", dynamic=Dynamic.CLUSTER_WIDE
    )
    log_retention_check_interval_ms: int = setting(
        Kind.LONG, 300000, "How often expired records are looked for.", low=1
    )
    log_segment_bytes: int = setting(
        Kind.INT,
        1073741824,
        "Size of the tail of a compacted topic that is exempt from compaction.",
        low=1048576,
        dynamic=Dynamic.CLUSTER_WIDE,
    )
    log_message_timestamp_type: str = setting(
        Kind.STRING,
        "CreateTime",
        "Whether a record keeps its producer's timestamp or gets the broker's.",
        choices=TIMESTAMP_TYPES,
        dynamic=Dynamic.CLUSTER_WIDE,
    )
    log_message_timestamp_before_max_ms: int = setting(
        Kind.LONG,
        LONG_MAX,
        "How far a record's timestamp may be in the past.",
        low=0,
        dynamic=Dynamic.CLUSTER_WIDE,
    )
    log_message_timestamp_after_max_ms: int = setting(
        Kind.LONG,
        3600000,
        "How far a record's timestamp may be in the future.",
        low=0,
        dynamic=Dynamic.CLUSTER_WIDE,
    )
    fetch_max_bytes: int = setting(
        Kind.INT, 57671680, "Maximum bytes of records in one fetch response.", low=1024
    )
    max_incremental_fetch_session_cache_slots: int = setting(
        Kind.INT, 1000, "Maximum number of cached fetch sessions.", low=0
    )
    max_request_partition_size_limit: int = setting(
        Kind.INT, 2000, "Maximum number of partitions in one DescribeTopicPartitions response.", low=1
    )
    sharecore_producer_ids_bytes_max: int = setting(
        Kind.LONG,
        536870912,
        "Memory for the idempotent producers of all partitions, about 350 bytes per producer and "
        "partition. Beyond it, the longest idle producers of the partition with the most are forgotten, "
        "except those with an open transaction.",
        low=1048576,
    )
    producer_id_expiration_ms: int = setting(
        Kind.INT, 86400000, "Retention time of an idle producer's sequence numbers.", low=1
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
