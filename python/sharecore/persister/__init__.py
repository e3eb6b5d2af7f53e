"""Where share-partition state is kept: the SPI, and what implements it (KIP-932, "Persister")."""

from __future__ import annotations

from sharecore.persister.coordinated import CoordinatorPersister
from sharecore.persister.memory import MemoryPersister
from sharecore.persister.spi import (
    Done,
    LoadedState,
    Persister,
    SharePartitionKey,
    StateBatch,
    StateSummary,
)

__all__ = [
    "CoordinatorPersister",
    "Done",
    "LoadedState",
    "MemoryPersister",
    "Persister",
    "SharePartitionKey",
    "StateBatch",
    "StateSummary",
]
