"""Keys of topics that have no effect here, or are refused, and why."""

from __future__ import annotations

from dataclasses import dataclass

from sharecore.config.keys import LONG_MAX, Kind, Status, setting


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class UnservedTopicSettings:
    """What else Kafka's topics may set; a value is checked, kept and shown."""

    compression_lz4_level: int = setting(
        Kind.INT,
        9,
        "Compression level for batches that the broker compresses with lz4; it has one level.",
        low=1,
        high=17,
        status=Status.IGNORED,
    )
    file_delete_delay_ms: int = setting(
        Kind.LONG,
        60000,
        "Files of a log; all logs share one journal, and records are deleted batch by batch.",
        low=0,
        status=Status.IGNORED,
    )
    flush_messages: int = setting(
        Kind.LONG,
        LONG_MAX,
        "Syncing of a log's files; every answer waits for the disk (see sharecore.durability).",
        low=1,
        status=Status.IGNORED,
    )
    flush_ms: int = setting(
        Kind.LONG,
        LONG_MAX,
        "Syncing of a log's files; every answer waits for the disk (see sharecore.durability).",
        low=0,
        status=Status.IGNORED,
    )
    follower_replication_throttled_replicas: tuple[str, ...] = setting(
        Kind.LIST, (), "Replication; this broker stands alone and keeps one copy.", status=Status.IGNORED
    )
    index_interval_bytes: int = setting(
        Kind.INT,
        4096,
        "Files of a log; all logs share one journal, and records are deleted batch by batch.",
        low=0,
        status=Status.IGNORED,
    )
    internal_segment_bytes: int | None = setting(
        Kind.INT,
        None,
        "Files of a log; all logs share one journal, and records are deleted batch by batch.",
        status=Status.IGNORED,
    )
    leader_replication_throttled_replicas: tuple[str, ...] = setting(
        Kind.LIST, (), "Replication; this broker stands alone and keeps one copy.", status=Status.IGNORED
    )
    local_retention_bytes: int = setting(
        Kind.LONG,
        -2,
        "Tiered storage, which is off (see remote.storage.enable).",
        low=-2,
        status=Status.IGNORED,
    )
    local_retention_ms: int = setting(
        Kind.LONG,
        -2,
        "Tiered storage, which is off (see remote.storage.enable).",
        low=-2,
        status=Status.IGNORED,
    )
    max_decompressed_message_bytes: int = setting(
        Kind.INT,
        2147483639,
        "The decompressed size of a batch is limited to 256 MiB.",
        low=1,
        high=2147483639,
        status=Status.REFUSED,
    )
    preallocate: bool = setting(
        Kind.BOOLEAN,
        False,
        "Files of a log; all logs share one journal, and records are deleted batch by batch.",
        status=Status.IGNORED,
    )
    remote_copy_lag_bytes: int = setting(
        Kind.LONG,
        -1,
        "Tiered storage, which is off (see remote.storage.enable).",
        low=-1,
        status=Status.IGNORED,
    )
    remote_copy_lag_ms: int = setting(
        Kind.LONG,
        0,
        "Tiered storage, which is off (see remote.storage.enable).",
        low=-1,
        status=Status.IGNORED,
    )
    remote_log_copy_disable: bool = setting(
        Kind.BOOLEAN,
        False,
        "Tiered storage, which is off (see remote.storage.enable).",
        status=Status.IGNORED,
    )
    remote_log_delete_on_disable: bool = setting(
        Kind.BOOLEAN,
        False,
        "Tiered storage, which is off (see remote.storage.enable).",
        status=Status.IGNORED,
    )
    remote_storage_enable: bool = setting(
        Kind.BOOLEAN,
        False,
        "Tiered storage is not supported; everything stays in log.dirs.",
        status=Status.REFUSED,
    )
    segment_index_bytes: int = setting(
        Kind.INT,
        10485760,
        "Files of a log; all logs share one journal, and records are deleted batch by batch.",
        low=4,
        status=Status.IGNORED,
    )
    segment_jitter_ms: int = setting(
        Kind.LONG,
        0,
        "Files of a log; all logs share one journal, and records are deleted batch by batch.",
        low=0,
        status=Status.IGNORED,
    )
    unclean_leader_election_enable: bool = setting(
        Kind.BOOLEAN,
        False,
        "Replication; this broker stands alone and keeps one copy.",
        status=Status.IGNORED,
    )
