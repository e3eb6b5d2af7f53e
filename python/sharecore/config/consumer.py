"""Settings of groups that commit offsets and of transactions, with the defaults and limits of Kafka 4.4.0."""

from __future__ import annotations

from dataclasses import dataclass

from sharecore.config.keys import INT_MAX, Kind, setting

ASSIGNORS = ("uniform", "range")
_NO_BOUND = INT_MAX


def _check_assignors(names: tuple[str, ...]) -> None:
    """a list of uniform, range"""
    if not names:
        raise ValueError("an empty list")


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class ConsumerSettings:
    """Classic groups, consumer groups (KIP-848) and their offsets."""

    group_min_session_timeout_ms: int = setting(
        Kind.INT, 6000, "The shortest session that a member of a classic group may have."
    )
    group_max_session_timeout_ms: int = setting(
        Kind.INT, 1800000, "The longest session that a member of a classic group may have."
    )
    group_initial_rebalance_delay_ms: int = setting(
        Kind.INT, 3000, "Time that a new classic group waits for more members."
    )
    group_max_size: int = setting(Kind.INT, _NO_BOUND, "Members of one classic group.", low=1)
    sharecore_group_bytes_max: int = setting(
        Kind.INT,
        8388608,
        "Memory that the subscriptions or protocols of a group's members may take, and the assignments of a "
        "classic group. Beyond, a member is refused with GROUP_MAX_SIZE_REACHED, an assignment with "
        "UNKNOWN_SERVER_ERROR.",
        low=1048576,
    )
    sharecore_groups_bytes_max: int = setting(
        Kind.LONG,
        268435456,
        "Memory that all groups may take with their members, and share groups with the state of their "
        "partitions. Beyond, members and groups that are new are refused with GROUP_MAX_SIZE_REACHED.",
        low=1048576,
    )
    sharecore_group_offsets_bytes_max: int = setting(
        Kind.LONG,
        536870912,
        "Memory that the committed offsets of all groups may take, about 350 bytes each. Beyond, a commit "
        "for more partitions is refused with POLICY_VIOLATION.",
        low=1048576,
    )
    group_consumer_session_timeout_ms: int = setting(
        Kind.INT, 45000, "A member of a consumer group that is silent for so long is removed.", low=1
    )
    group_consumer_min_session_timeout_ms: int = setting(
        Kind.INT, 45000, "The least that a group may choose.", low=1
    )
    group_consumer_max_session_timeout_ms: int = setting(
        Kind.INT, 60000, "The most that a group may choose.", low=1
    )
    group_consumer_heartbeat_interval_ms: int = setting(
        Kind.INT, 5000, "Time between the heartbeats of a member of a consumer group.", low=1
    )
    group_consumer_min_heartbeat_interval_ms: int = setting(
        Kind.INT, 5000, "The least that a group may choose.", low=1
    )
    group_consumer_max_heartbeat_interval_ms: int = setting(
        Kind.INT, 15000, "The most that a group may choose.", low=1
    )
    group_consumer_assignment_interval_ms: int = setting(
        Kind.INT, 1000, "Least time between two assignments of a consumer group.", low=0
    )
    group_consumer_min_assignment_interval_ms: int = setting(
        Kind.INT, 0, "The least that a group may choose.", low=0
    )
    group_consumer_max_assignment_interval_ms: int = setting(
        Kind.INT, 15000, "The most that a group may choose.", low=0
    )
    group_consumer_max_size: int = setting(Kind.INT, _NO_BOUND, "Members of one consumer group.", low=1)
    group_consumer_assignors: tuple[str, ...] = setting(
        Kind.LIST,
        ASSIGNORS,
        "Assignors of consumer groups; the first is for groups that ask for none.",
        choices=ASSIGNORS,
        check=_check_assignors,
    )
    group_consumer_regex_refresh_interval_ms: int = setting(
        Kind.INT,
        600000,
        "Time after which the topics that a regular expression matches are looked up again, as rights may "
        "have changed; new topics are found at once.",
        low=10000,
    )
    offsets_retention_minutes: int = setting(
        Kind.INT, 10080, "Time that offsets are kept which nobody uses.", low=1
    )
    offsets_retention_check_interval_ms: int = setting(
        Kind.LONG, 600000, "Time between two looks for offsets that nobody uses.", low=1
    )
    offset_metadata_max_bytes: int = setting(
        Kind.INT, 4096, "Bytes of text that may go with a committed offset."
    )
    offsets_topic_num_partitions: int = setting(
        Kind.INT, 50, "Partitions of __consumer_offsets when it is made.", low=1
    )


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class TransactionSettings:
    """Transactions of producers."""

    transaction_max_timeout_ms: int = setting(
        Kind.INT, 900000, "The longest that a transaction may stay open.", low=1
    )
    transactional_id_expiration_ms: int = setting(
        Kind.INT, 604800000, "Time after which a transactional id is forgotten that nobody uses.", low=1
    )
    sharecore_transactional_ids_bytes_max: int = setting(
        Kind.LONG,
        67108864,
        "Memory that all transactional ids may take, about 1000 bytes each, with the partitions of their "
        "transactions. Beyond, what is new is refused with POLICY_VIOLATION.",
        low=1048576,
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = setting(
        Kind.INT, 3600000, "Time between two looks for transactional ids that nobody uses.", low=1
    )
    transaction_state_log_num_partitions: int = setting(
        Kind.INT, 50, "Partitions of __transaction_state when it is made.", low=1
    )
