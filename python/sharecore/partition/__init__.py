"""Share-partition leaders: what is fetched, leased and settled on this broker (KIP-932)."""

from __future__ import annotations

from sharecore.partition.leader import Engine, SharePartition
from sharecore.partition.leaders import SharePartitions

__all__ = ["Engine", "SharePartition", "SharePartitions"]
