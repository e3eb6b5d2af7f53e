"""No persister: share groups for tests, or for work that may be repeated or lost."""

from __future__ import annotations

from collections.abc import Callable

from sharecore._core import Write
from sharecore.errors import KafkaError
from sharecore.persister.spi import Done, LoadedState
from sharecore.sharestate.coordinator import StateSummary
from sharecore.sharestate.keys import SharePartitionKey
from sharecore.sharestate.records import UNINITIALIZED


class NoOpPersister:
    """Store nothing: every write succeeds, and every read returns uninitialized state.

    Each new leader starts a share partition by the group's reset policy.
    """

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int, done: Done) -> None:
        done(None)

    def read(
        self, key: SharePartitionKey, leader_epoch: int, done: Callable[[LoadedState | KafkaError], None]
    ) -> None:
        done(LoadedState(0, UNINITIALIZED, []))

    def write(
        self, key: SharePartitionKey, state_epoch: int, leader_epoch: int, write: Write, done: Done
    ) -> None:
        done(None)

    def write_start(
        self, key: SharePartitionKey, state_epoch: int, leader_epoch: int, start_offset: int, done: Done
    ) -> None:
        done(None)

    def delete(self, key: SharePartitionKey, done: Done) -> None:
        done(None)

    def summary(self, key: SharePartitionKey, done: Callable[[StateSummary | KafkaError], None]) -> None:
        done(StateSummary(0, 0, UNINITIALIZED, UNINITIALIZED))

    def close(self) -> None:
        """Do nothing."""
