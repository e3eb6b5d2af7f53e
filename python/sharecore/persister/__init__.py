"""Storage of share-partition state: the SPI and its implementations (KIP-932, "Persister")."""

from __future__ import annotations

from sharecore._core import Write, combine_state_batches
from sharecore.persister.coordinated import CoordinatorPersister
from sharecore.persister.memory import MemoryPersister
from sharecore.persister.noop import NoOpPersister
from sharecore.persister.plugin import load_plugin
from sharecore.persister.spi import (
    Done,
    LoadedState,
    Persister,
    SharePartitionKey,
    StateBatch,
    StateSummary,
)
from sharecore.sharestate.records import UNINITIALIZED, pack_batches, unpack_batches

__all__ = [
    "UNINITIALIZED",
    "CoordinatorPersister",
    "Done",
    "LoadedState",
    "MemoryPersister",
    "NoOpPersister",
    "Persister",
    "SharePartitionKey",
    "StateBatch",
    "StateSummary",
    "Write",
    "combine_state_batches",
    "load_plugin",
    "pack_batches",
    "unpack_batches",
]
