"""Share-partition leaders: records fetched, acquired and acknowledged on this broker (KIP-932)."""

from __future__ import annotations

from sharecore.partition.leader import Engine, SharePartition
from sharecore.partition.leaders import SharePartitions

__all__ = ["Engine", "SharePartition", "SharePartitions"]
