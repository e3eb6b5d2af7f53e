"""The persister interface used by share-partition leaders and the group coordinator."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from sharecore._core import Write
from sharecore.errors import KafkaError
from sharecore.sharestate.coordinator import StateSummary
from sharecore.sharestate.keys import SharePartitionKey
from sharecore.sharestate.records import StateBatch
from sharecore.waiting import Done

__all__ = ["Done", "LoadedState", "Persister", "SharePartitionKey", "StateBatch", "StateSummary"]


class LoadedState(NamedTuple):
    """Initial state of a leader; a start offset of -1 is not known yet."""

    state_epoch: int
    start_offset: int
    batches: list[StateBatch]


class Persister(Protocol):
    """Store share-partition state beyond the life of its leader.

    An operation that cannot start raises `KafkaError`. Once started, it completes with `done`, perhaps before
    the method returns. Operations on one share partition take effect in call order. All methods are called on
    the broker's event loop and must not block it.
    """

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int, done: Done) -> None:
        """Create state, or reset it under an equal or higher state epoch; start offset -1: not known yet."""

    def read(
        self, key: SharePartitionKey, leader_epoch: int, done: Callable[[LoadedState | KafkaError], None]
    ) -> None:
        """Load state for a new leader, and fence leaders with a lower epoch."""

    def write(
        self, key: SharePartitionKey, state_epoch: int, leader_epoch: int, write: Write, done: Done
    ) -> None:
        """Persist a change that an engine has started."""

    def write_start(
        self, key: SharePartitionKey, state_epoch: int, leader_epoch: int, start_offset: int, done: Done
    ) -> None:
        """Persist the first start offset of a share partition, before any acknowledgement."""

    def delete(self, key: SharePartitionKey, done: Done) -> None:
        """Delete state; ignore missing state."""

    def summary(self, key: SharePartitionKey, done: Callable[[StateSummary | KafkaError], None]) -> None:
        """Read state without its batches, without fencing: for administration and before creating state."""

    def close(self) -> None:
        """Finish pending operations at shutdown; no further calls follow."""
