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
        "Topic upstream in which share state and groups are kept; its settings lie in the topic of that name "
        "with .settings behind it. Nodes with the same topic are one tier.",
    )
    sharecore_tier_slots: int = setting(
        Kind.INT,
        64,
        "Partitions of that topic when it is made: into so many parts the nodes can share the work.",
        low=1,
        high=10_000,
    )
    sharecore_tier_replication_factor: int = setting(
        Kind.SHORT, 3, "Replicas of the topics that a node makes upstream; -1: as upstream has it.", low=-1
    )
    sharecore_tier_min_insync_replicas: int = setting(
        Kind.INT, 2, "min.insync.replicas of the topics that a node makes upstream.", low=1
    )
    sharecore_tier_pass_through: bool = setting(
        Kind.BOOLEAN,
        True,
        "Whether requests that are not about share groups go on to the cluster: producing, fetching, other "
        "groups, transactions, topics.",
    )
    sharecore_tier_cache_bytes: int = setting(
        Kind.LONG,
        268435456,
        "Bytes of records that are kept in memory, those of all partitions together.",
        low=1048576,
    )
    sharecore_tier_inter_node_listener_name: str | None = setting(
        Kind.STRING, None, "Listener at which nodes ask each other for share state; the first unless set."
    )
    sharecore_tier_drain_timeout_ms: int = setting(
        Kind.INT,
        10000,
        "How long a node that gives a slot up, or stops, waits for members to settle what they hold of it; "
        "what is not settled by then comes again.",
        low=0,
    )
    sharecore_tier_ahead_bytes: int = setting(
        Kind.INT, 4194304, "Bytes that are read ahead of a partition.", low=65536
    )
