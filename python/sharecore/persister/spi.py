"""What a share-partition leader and the group coordinator ask of a persister."""

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
    """What a leader starts from; a start offset of -1 means that it is not known yet."""

    state_epoch: int
    start_offset: int
    batches: list[StateBatch]


class Persister(Protocol):
    """Keeps share-partition state beyond the life of its leader.

    An operation that cannot even begin raises `KafkaError`; one that begins ends with its `done`, which may
    be called before the method returns. Operations on one share partition take effect in the order of the
    calls. All of them are called on the broker's event loop and must not keep it waiting.
    """

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int, done: Done) -> None:
        """Make state, or begin it anew under a state epoch that is not lower; start offset -1: not known
        yet.
        """

    def read(
        self, key: SharePartitionKey, leader_epoch: int, done: Callable[[LoadedState | KafkaError], None]
    ) -> None:
        """Load state for a new leader; leaders with a lower epoch are fenced from then on."""

    def write(
        self, key: SharePartitionKey, state_epoch: int, leader_epoch: int, write: Write, done: Done
    ) -> None:
        """Write a change that an engine has begun."""

    def write_start(
        self, key: SharePartitionKey, state_epoch: int, leader_epoch: int, start_offset: int, done: Done
    ) -> None:
        """Write a start offset of a share partition that had none; nothing has been settled yet."""

    def delete(self, key: SharePartitionKey, done: Done) -> None:
        """Delete state; there need not be any."""

    def summary(self, key: SharePartitionKey, done: Callable[[StateSummary | KafkaError], None]) -> None:
        """Read state without its batches, for administration and for a group that is about to make some;
        fences nobody.
        """

    def close(self) -> None:
        """End what is under way, since the broker stops; nothing is asked for afterwards."""
