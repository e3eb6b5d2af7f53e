"""Settings of share groups and the share coordinator (KIP-932), as in Kafka 4.4.0."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sharecore.config.keys import Kind, Status, setting

RECORD_LOCKS_MAX = 10_000_000
"""Kafka stops at 10,000 records a share partition; the engine holds runs of records, so that millions cost
little.
"""

_PERSISTERS = "org.apache.kafka.server.share.persister."
DEFAULT_PERSISTER = _PERSISTERS + "DefaultStatePersister"
NO_PERSISTER = _PERSISTERS + "NoOpStatePersister"
PERSISTER_PREFIX = "group.share.persister."
"""Of the settings that are handed to a persister of the user's, without the prefix."""


def check_persister(name: str) -> None:
    """Allow empty, Kafka's DefaultStatePersister or NoOpStatePersister, or package.module:Class"""
    if name and name not in (DEFAULT_PERSISTER, NO_PERSISTER) and not re.fullmatch(r"[\w.]+:\w+", name):
        raise ValueError("no persister")


ASSIGNORS = ("simple", "org.apache.kafka.coordinator.group.assignor.SimpleAssignor")


def _check_assignors(names: tuple[str, ...]) -> None:
    """Allow simple, or org.apache.kafka.coordinator.group.assignor.SimpleAssignor, which is the same"""
    if not names:
        raise ValueError("an empty list")
    if not set(names) <= set(ASSIGNORS):
        raise ValueError("no such assignor here")


def _check_protocols(names: tuple[str, ...]) -> None:
    """Allow a list of classic, consumer, share and streams; classic and consumer are among them"""
    if not {"classic", "consumer"} <= set(names) <= {"classic", "consumer", "share", "streams"}:
        raise ValueError("not served like that")


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class ShareSettings:
    """What share groups get by default, and the bounds within which a group may choose."""

    group_share_assignment_interval_ms: int = setting(
        Kind.INT, 1000, "Minimum time between two assignments of a share group.", low=0
    )
    group_share_min_assignment_interval_ms: int = setting(Kind.INT, 0, "Minimum value for groups.", low=0)
    group_share_max_assignment_interval_ms: int = setting(Kind.INT, 15000, "Maximum value for groups.", low=0)
    group_share_assignors: tuple[str, ...] = setting(
        Kind.LIST,
        ("simple",),
        "Assignor of share groups; there is one.",
        check=_check_assignors,
        status=Status.IGNORED,
    )
    group_share_heartbeat_interval_ms: int = setting(
        Kind.INT, 5000, "Heartbeat interval of members of share groups.", low=1
    )
    group_share_min_heartbeat_interval_ms: int = setting(Kind.INT, 5000, "Minimum value for groups.", low=1)
    group_share_max_heartbeat_interval_ms: int = setting(Kind.INT, 15000, "Maximum value for groups.", low=1)
    group_share_session_timeout_ms: int = setting(
        Kind.INT, 45000, "Members of share groups without a heartbeat for this long are removed.", low=1
    )
    group_share_min_session_timeout_ms: int = setting(Kind.INT, 45000, "Minimum value for groups.", low=1)
    group_share_max_session_timeout_ms: int = setting(Kind.INT, 60000, "Maximum value for groups.", low=1)
    group_coordinator_rebalance_protocols: tuple[str, ...] = setting(
        Kind.LIST,
        ("classic", "consumer", "streams"),
        "Group types. Without `share`, share groups are refused; the other types are always served.",
        check=_check_protocols,
    )
    group_share_max_size: int = setting(
        Kind.INT, 200, "Maximum number of members of a share group.", low=1, high=1000
    )
    group_share_persister_class_name: str = setting(
        Kind.STRING,
        DEFAULT_PERSISTER,
        "The persister of share-partition state; empty: no persistence.",
        check=check_persister,
    )
    group_share_max_share_sessions: int = setting(
        Kind.INT, 2000, "Maximum number of open share sessions.", low=1
    )
    sharecore_share_session_partitions_max: int = setting(
        Kind.INT,
        20000,
        "Maximum number of partitions of a share session, and of a ShareAcknowledge request.",
        low=100,
    )
    sharecore_share_sessions_bytes_max: int = setting(
        Kind.LONG,
        67108864,
        "Memory for the partitions of share sessions. Beyond it, a much larger session is ended in favor "
        "of a smaller one; otherwise the client gets SHARE_SESSION_LIMIT_REACHED.",
        low=0,
    )
    sharecore_expanded_cache_bytes: int = setting(
        Kind.LONG,
        67108864,
        "Memory for record batches that are delivered in parts, decompressed, to groups with order, "
        "back-off, delivery times or a TTL.",
        low=0,
    )
    group_share_delivery_count_limit: int = setting(
        Kind.INT, 5, "Delivery limit: a record is archived after this many failed deliveries.", low=2, high=10
    )
    group_share_min_delivery_count_limit: int = setting(
        Kind.INT, 2, "Minimum value for groups.", low=2, high=5
    )
    group_share_max_delivery_count_limit: int = setting(
        Kind.INT, 10, "Maximum value for groups.", low=5, high=25
    )
    group_share_record_lock_duration_ms: int = setting(
        Kind.INT, 30000, "Duration of an acquisition lock.", low=1000, high=3600000
    )
    group_share_min_record_lock_duration_ms: int = setting(
        Kind.INT, 15000, "Minimum value for groups.", low=1000, high=30000
    )
    group_share_max_record_lock_duration_ms: int = setting(
        Kind.INT, 60000, "Maximum value for groups.", low=30000, high=3600000
    )
    group_share_partition_max_record_locks: int = setting(
        Kind.INT,
        2000,
        "Maximum number of records in flight in a share partition.",
        low=100,
        high=RECORD_LOCKS_MAX,
    )
    group_share_min_partition_max_record_locks: int = setting(
        Kind.INT, 100, "Minimum value for groups.", low=100, high=2000
    )
    group_share_max_partition_max_record_locks: int = setting(
        Kind.INT, 4000, "Maximum value for groups.", low=2000, high=RECORD_LOCKS_MAX
    )


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class ShareCoordinatorSettings:
    """How share state is kept."""

    share_coordinator_cold_partition_snapshot_interval_ms: int = setting(
        Kind.INT, 300000, "A share partition without a snapshot for so long gets one.", low=1
    )
    share_coordinator_snapshot_update_records_per_snapshot: int = setting(
        Kind.INT, 500, "Updates before a new snapshot is written.", low=0, high=500
    )
    share_coordinator_state_topic_num_partitions: int = setting(
        Kind.INT, 50, "Partitions of __share_group_state when it is made.", low=1
    )
    share_coordinator_state_topic_prune_interval_ms: int = setting(
        Kind.INT, 300000, "Time between two looks for state that snapshots made redundant.", low=1
    )
    share_coordinator_write_timeout_ms: int = setting(
        Kind.INT, 5000, "A write of state that takes longer has failed.", low=1
    )
