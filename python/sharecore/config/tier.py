"""Settings of a node in front of an existing cluster (`sharecore serve --upstream`)."""

from __future__ import annotations

from dataclasses import dataclass

from sharecore.config.keys import Kind, setting

UPSTREAM_PREFIX = "sharecore.upstream."
"""What begins the names of settings of the connection to the cluster, such as bootstrap.servers."""
INTER_NODE_PREFIX = "sharecore.tier.inter.node."
"""What begins the names of settings of the connections between nodes, such as sasl.username."""


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class TierSettings:
    """What a node keeps on the cluster that it is in front of, and how much of that in memory."""

    sharecore_tier_state_topic: str = setting(
        Kind.STRING,
        "__sharecore_state",
        "Upstream topic for share state and groups; settings are kept in NAME.settings. Nodes with the "
        "same topic form one tier.",
    )
    sharecore_tier_slots: int = setting(
        Kind.INT,
        64,
        "Partitions of the state topic when it is created; slots are the units that nodes divide.",
        low=1,
        high=10_000,
    )
    sharecore_tier_replication_factor: int = setting(
        Kind.SHORT,
        3,
        "Replication factor of the topics that a node creates upstream; -1: upstream's default.",
        low=-1,
    )
    sharecore_tier_min_insync_replicas: int = setting(
        Kind.INT, 2, "min.insync.replicas of the topics that a node creates upstream.", low=1
    )
    sharecore_tier_pass_through: bool = setting(
        Kind.BOOLEAN,
        True,
        "Whether other requests are forwarded to the cluster: produce, fetch, other groups, transactions, "
        "topics.",
    )
    sharecore_tier_cache_bytes: int = setting(
        Kind.LONG,
        268435456,
        "Memory for cached records of all partitions.",
        low=1048576,
    )
    sharecore_tier_inter_node_listener_name: str | None = setting(
        Kind.STRING, None, "Listener on which nodes ask each other for share state; defaults to the first."
    )
    sharecore_tier_drain_timeout_ms: int = setting(
        Kind.INT,
        10000,
        "How long a node that gives up a slot, or stops, waits for members to acknowledge its records. "
        "Records not acknowledged by then are redelivered.",
        low=0,
    )
    sharecore_tier_ahead_bytes: int = setting(Kind.INT, 4194304, "Read-ahead per partition.", low=65536)
