"""In-memory persister for tests and simulation."""

from __future__ import annotations

from collections.abc import Callable

from sharecore._core import Write, combine_state_batches
from sharecore.errors import ErrorCode, KafkaError
from sharecore.persister.spi import Done, LoadedState
from sharecore.sharestate.coordinator import StateSummary
from sharecore.sharestate.keys import SharePartitionKey
from sharecore.sharestate.records import UNINITIALIZED, pack_batches, unpack_batches


class _State:
    def __init__(self, state_epoch: int, start_offset: int) -> None:
        self.state_epoch = state_epoch
        self.leader_epoch = 0
        self.start_offset = start_offset
        self.delivery_complete_count = UNINITIALIZED if start_offset == UNINITIALIZED else 0
        self.batches = b""


class MemoryPersister:
    """Store state in a dictionary. NOT durable: for tests and simulation only.

    Attributes:
        fail_next: number of upcoming writes that fail with `failure`.
        held: completions of writes, collected while `hold` is set, for the test to call.
        writes: number of requested writes.
    """

    def __init__(self) -> None:
        self.fail_next = 0
        self.failure = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        self.hold = False
        self.held: list[Callable[[], None]] = []
        self.writes = 0
        self._states: dict[SharePartitionKey, _State] = {}

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int, done: Done) -> None:
        before = self._states.get(key)
        if before is not None and 0 <= state_epoch < before.state_epoch:
            raise KafkaError(ErrorCode.FENCED_STATE_EPOCH)
        self._states[key] = _State(state_epoch, start_offset)
        done(None)

    def read(
        self, key: SharePartitionKey, leader_epoch: int, done: Callable[[LoadedState | KafkaError], None]
    ) -> None:
        state = self._states.get(key)
        if state is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the share partition has no state")
        if 0 <= leader_epoch < state.leader_epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        state.leader_epoch = max(state.leader_epoch, leader_epoch)
        done(LoadedState(state.state_epoch, state.start_offset, list(unpack_batches(state.batches))))

    def write(
        self, key: SharePartitionKey, state_epoch: int, leader_epoch: int, write: Write, done: Done
    ) -> None:
        batches = pack_batches(write.batches())
        self._write(
            key, state_epoch, leader_epoch, write.start_offset, write.delivery_complete_count, batches, done
        )

    def write_start(
        self, key: SharePartitionKey, state_epoch: int, leader_epoch: int, start_offset: int, done: Done
    ) -> None:
        self._write(key, state_epoch, leader_epoch, start_offset, 0, b"", done)

    def _write(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: bytes,
        done: Done,
    ) -> None:
        self.writes += 1
        state = self._states.get(key)
        if state is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the share partition has no state")
        if 0 <= leader_epoch < state.leader_epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        if 0 <= state_epoch < state.state_epoch:
            raise KafkaError(ErrorCode.FENCED_STATE_EPOCH)

        def end() -> None:
            if self.fail_next:
                self.fail_next -= 1
                done(self.failure)
                return
            state.start_offset = start_offset
            state.delivery_complete_count = delivery_complete_count
            state.batches = combine_state_batches([state.batches, batches], start_offset)
            done(None)

        if self.hold:
            self.held.append(end)
        else:
            end()

    def delete(self, key: SharePartitionKey, done: Done) -> None:
        self._states.pop(key, None)
        done(None)

    def summary(self, key: SharePartitionKey, done: Callable[[StateSummary | KafkaError], None]) -> None:
        state = self._states.get(key)
        if state is None:
            done(StateSummary(0, 0, UNINITIALIZED, UNINITIALIZED))
        else:
            done(
                StateSummary(
                    state.state_epoch, state.leader_epoch, state.start_offset, state.delivery_complete_count
                )
            )

    def close(self) -> None:
        """Do nothing: no operation is pending."""
