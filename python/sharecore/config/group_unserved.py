"""Keys of groups that have no effect here, or are refused, and why."""

from __future__ import annotations

from dataclasses import dataclass

from sharecore.config.keys import Kind, Status, setting


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class UnservedGroupSettings:
    """What Kafka's groups may set besides; a value is checked, kept and shown to who set it."""

    consumer_assignor_offload_enable: bool = setting(
        Kind.BOOLEAN,
        True,
        "Where assignors run; here they are fast enough to run inline.",
        status=Status.IGNORED,
    )
    share_assignor_offload_enable: bool = setting(
        Kind.BOOLEAN,
        True,
        "Where assignors run; here they are fast enough to run inline.",
        status=Status.IGNORED,
    )
    streams_acceptable_recovery_lag: int = setting(
        Kind.LONG, 10000, "Streams groups are not supported.", low=0, status=Status.REFUSED
    )
    streams_assignment_interval_ms: int = setting(
        Kind.INT, 1000, "Streams groups are not supported.", low=0, status=Status.REFUSED
    )
    streams_assignor_name: str | None = setting(
        Kind.STRING, None, "Streams groups are not supported.", status=Status.REFUSED
    )
    streams_assignor_offload_enable: bool = setting(
        Kind.BOOLEAN, True, "Streams groups are not supported.", status=Status.REFUSED
    )
    streams_heartbeat_interval_ms: int = setting(
        Kind.INT, 5000, "Streams groups are not supported.", low=1, status=Status.REFUSED
    )
    streams_initial_rebalance_delay_ms: int = setting(
        Kind.INT, 3000, "Streams groups are not supported.", low=0, status=Status.REFUSED
    )
    streams_num_standby_replicas: int = setting(
        Kind.INT, 0, "Streams groups are not supported.", low=0, status=Status.REFUSED
    )
    streams_num_warmup_replicas: int = setting(
        Kind.INT, 2, "Streams groups are not supported.", low=0, status=Status.REFUSED
    )
    streams_rack_aware_assignment_tags: tuple[str, ...] = setting(
        Kind.LIST, (), "Streams groups are not supported.", status=Status.REFUSED
    )
    streams_session_timeout_ms: int = setting(
        Kind.INT, 45000, "Streams groups are not supported.", low=1, status=Status.REFUSED
    )
    streams_task_offset_interval_ms: int = setting(
        Kind.INT, 60000, "Streams groups are not supported.", low=1, status=Status.REFUSED
    )
