"""Administration of share groups, for Apache Kafka 4.2 and newer as for sharecore."""

from __future__ import annotations

from sharecore.admin.blocking import BlockingAdmin
from sharecore.admin.client import Admin
from sharecore.admin.model import (
    GroupListing,
    Member,
    OffsetChange,
    PartitionOffset,
    ResetPlan,
    ResetResult,
    ShareGroup,
    Target,
)
from sharecore.admin.pausing import Pause
from sharecore.admin.share_state import SharePartitionState, StateChange, StateDump, StateHistory
from sharecore.admin.state_topic import StateProblem
from sharecore.client.configs import ConfigEntry, ConfigSource
from sharecore.client.dead_letters import DeadLetterSetup
from sharecore.client.wire.cluster import TopicPartition

__all__ = [
    "Admin",
    "BlockingAdmin",
    "ConfigEntry",
    "ConfigSource",
    "DeadLetterSetup",
    "GroupListing",
    "Member",
    "OffsetChange",
    "PartitionOffset",
    "Pause",
    "ResetPlan",
    "ResetResult",
    "ShareGroup",
    "SharePartitionState",
    "StateChange",
    "StateDump",
    "StateHistory",
    "StateProblem",
    "Target",
    "TopicPartition",
]
