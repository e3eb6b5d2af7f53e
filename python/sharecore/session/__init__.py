"""Share sessions: what a member fetches from this broker, remembered between its requests (KIP-932)."""

from __future__ import annotations

from sharecore.session.cache import ShareSessionCache
from sharecore.session.session import FINAL_EPOCH, INITIAL_EPOCH, SharePartitionId, ShareSession, next_epoch

__all__ = [
    "FINAL_EPOCH",
    "INITIAL_EPOCH",
    "SharePartitionId",
    "ShareSession",
    "ShareSessionCache",
    "next_epoch",
]
