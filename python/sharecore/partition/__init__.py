"""Share-partition leaders: what is fetched, leased and settled on this broker (KIP-932)."""

from __future__ import annotations

from sharecore.partition.fetch import FetchLimits, PartitionFetch, ShareFetch
from sharecore.partition.leader import Engine, SharePartition
from sharecore.partition.leaders import SharePartitions
from sharecore.partition.ready import ReadySet

__all__ = [
    "Engine",
    "FetchLimits",
    "PartitionFetch",
    "ReadySet",
    "ShareFetch",
    "SharePartition",
    "SharePartitions",
]
