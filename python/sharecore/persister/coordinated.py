"""The default persister: the share coordinator in the same process."""

from __future__ import annotations

from collections.abc import Callable

from sharecore._core import Write
from sharecore.errors import KafkaError
from sharecore.persister.spi import Done, LoadedState
from sharecore.sharestate.coordinator import ReadState, ShareCoordinator, StateSummary
from sharecore.sharestate.keys import SharePartitionKey
from sharecore.sharestate.records import unpack_batches


class CoordinatorPersister:
    """Store state in `__share_group_state` through the share coordinator, with the checks of its API."""

    def __init__(self, coordinator: ShareCoordinator) -> None:
        self._coordinator = coordinator

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int, done: Done) -> None:
        self._coordinator.initialize(key, state_epoch, start_offset, done)

    def read(
        self, key: SharePartitionKey, leader_epoch: int, done: Callable[[LoadedState | KafkaError], None]
    ) -> None:
        def loaded(state: ReadState | KafkaError) -> None:
            if isinstance(state, KafkaError):
                done(state)
            else:
                done(LoadedState(state.state_epoch, state.start_offset, list(unpack_batches(state.batches))))

        self._coordinator.read(key, leader_epoch, loaded)

    def write(
        self, key: SharePartitionKey, state_epoch: int, leader_epoch: int, write: Write, done: Done
    ) -> None:
        self._coordinator.write_begun(key, state_epoch, leader_epoch, write, done)

    def write_start(
        self, key: SharePartitionKey, state_epoch: int, leader_epoch: int, start_offset: int, done: Done
    ) -> None:
        self._coordinator.write(key, state_epoch, leader_epoch, start_offset, 0, b"", done)

    def delete(self, key: SharePartitionKey, done: Done) -> None:
        self._coordinator.delete(key, done)

    def summary(self, key: SharePartitionKey, done: Callable[[StateSummary | KafkaError], None]) -> None:
        self._coordinator.summary(key, done)

    def close(self) -> None:
        """Do nothing: the coordinator is closed separately."""
