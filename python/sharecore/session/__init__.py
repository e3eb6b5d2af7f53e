"""Fetch and share sessions, remembered between requests."""

from __future__ import annotations

from sharecore._core import ShareSession, next_epoch
from sharecore.session.cache import SharePartitionId, ShareSessionCache
from sharecore.session.fetch import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    FetchPartition,
    FetchSession,
    FetchSessionCache,
    PartitionId,
    Place,
)

__all__ = [
    "FINAL_EPOCH",
    "INITIAL_EPOCH",
    "NO_SESSION",
    "FetchPartition",
    "FetchSession",
    "FetchSessionCache",
    "PartitionId",
    "Place",
    "SharePartitionId",
    "ShareSession",
    "ShareSessionCache",
    "next_epoch",
]
