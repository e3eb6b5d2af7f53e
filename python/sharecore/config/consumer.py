"""Settings of transactions and of groups that commit offsets, with Kafka 4.4.0's defaults and limits."""

from __future__ import annotations

from dataclasses import dataclass

from sharecore.config.keys import INT_MAX, Kind, setting

ASSIGNORS = ("uniform", "range")
_NO_BOUND = INT_MAX


def _check_assignors(names: tuple[str, ...]) -> None:
    """Allow a list of uniform, range"""
    if not names:
        raise ValueError("an empty list")


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class ConsumerSettings:
    """Classic groups, consumer groups (KIP-848) and their offsets."""

    group_min_session_timeout_ms: int = setting(
        Kind.INT, 6000, "Minimum session timeout for members of classic groups."
    )
    group_max_session_timeout_ms: int = setting(
        Kind.INT, 1800000, "Maximum session timeout for members of classic groups."
    )
    group_initial_rebalance_delay_ms: int = setting(
        Kind.INT, 3000, "How long a new classic group waits for more members."
    )
    group_max_size: int = setting(Kind.INT, _NO_BOUND, "Maximum number of members of a classic group.", low=1)
    sharecore_group_bytes_max: int = setting(
        Kind.INT,
        8388608,
        "Memory for the subscriptions or protocols of a group's members, and for the assignments of a "
        "classic group. Beyond it, new members get GROUP_MAX_SIZE_REACHED, assignments "
        "UNKNOWN_SERVER_ERROR.",
        low=1048576,
    )
    sharecore_groups_bytes_max: int = setting(
        Kind.LONG,
        268435456,
        "Memory for all groups, their members and the state of share partitions. Beyond it, new groups and "
        "members get GROUP_MAX_SIZE_REACHED.",
        low=1048576,
    )
    sharecore_group_offsets_bytes_max: int = setting(
        Kind.LONG,
        536870912,
        "Memory for the committed offsets of all groups, about 350 bytes each. Beyond it, commits for new "
        "partitions get POLICY_VIOLATION.",
        low=1048576,
    )
    group_consumer_session_timeout_ms: int = setting(
        Kind.INT, 45000, "Members of consumer groups without a heartbeat for this long are removed.", low=1
    )
    group_consumer_min_session_timeout_ms: int = setting(Kind.INT, 45000, "Minimum value for groups.", low=1)
    group_consumer_max_session_timeout_ms: int = setting(Kind.INT, 60000, "Maximum value for groups.", low=1)
    group_consumer_heartbeat_interval_ms: int = setting(
        Kind.INT, 5000, "Heartbeat interval of members of consumer groups.", low=1
    )
    group_consumer_min_heartbeat_interval_ms: int = setting(
        Kind.INT, 5000, "Minimum value for groups.", low=1
    )
    group_consumer_max_heartbeat_interval_ms: int = setting(
        Kind.INT, 15000, "Maximum value for groups.", low=1
    )
    group_consumer_assignment_interval_ms: int = setting(
        Kind.INT, 1000, "Minimum time between two assignments of a consumer group.", low=0
    )
    group_consumer_min_assignment_interval_ms: int = setting(Kind.INT, 0, "Minimum value for groups.", low=0)
    group_consumer_max_assignment_interval_ms: int = setting(
        Kind.INT, 15000, "Maximum value for groups.", low=0
    )
    group_consumer_max_size: int = setting(
        Kind.INT, _NO_BOUND, "Maximum number of members of a consumer group.", low=1
    )
    group_consumer_assignors: tuple[str, ...] = setting(
        Kind.LIST,
        ASSIGNORS,
        "Assignors of consumer groups; the first is the default.",
        choices=ASSIGNORS,
        check=_check_assignors,
    )
    group_consumer_regex_refresh_interval_ms: int = setting(
        Kind.INT,
        600000,
        "How often the topics that match a regular expression are re-evaluated, because rights may have "
        "changed; new topics are found at once.",
        low=10000,
    )
    offsets_retention_minutes: int = setting(Kind.INT, 10080, "Retention time of unused offsets.", low=1)
    offsets_retention_check_interval_ms: int = setting(
        Kind.LONG, 600000, "How often unused offsets are looked for.", low=1
    )
    offset_metadata_max_bytes: int = setting(
        Kind.INT, 4096, "Maximum size of the metadata of a committed offset."
    )
    offsets_topic_num_partitions: int = setting(
        Kind.INT, 50, "Partitions of __consumer_offsets when it is created.", low=1
    )


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class TransactionSettings:
    """Transactions of producers."""

    transaction_max_timeout_ms: int = setting(Kind.INT, 900000, "Maximum transaction timeout.", low=1)
    transactional_id_expiration_ms: int = setting(
        Kind.INT, 604800000, "Retention time of unused transactional ids.", low=1
    )
    sharecore_transactional_ids_bytes_max: int = setting(
        Kind.LONG,
        67108864,
        "Memory for all transactional ids, about 1000 bytes each, and the partitions of their "
        "transactions. Beyond it, new ones get POLICY_VIOLATION.",
        low=1048576,
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = setting(
        Kind.INT, 3600000, "How often unused transactional ids are looked for.", low=1
    )
    transaction_state_log_num_partitions: int = setting(
        Kind.INT, 50, "Partitions of __transaction_state when it is created.", low=1
    )
