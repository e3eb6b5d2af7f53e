"""The share coordinator: durable share-partition state in `__share_group_state` (KIP-932)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

from sharecore._core import StateContent, States, combine_state_batches
from sharecore.coordinator_log.routing import java_string_hash, partition_of_hash
from sharecore.coordinator_log.runtime import CoordinatorRuntime
from sharecore.coordinator_log.topic_log import Record
from sharecore.errors import ErrorCode, KafkaError
from sharecore.sharestate.keys import SharePartitionKey, before_partition
from sharecore.sharestate.records import UNINITIALIZED
from sharecore.sharestate.shard import StateShard
from sharecore.sharestate.state import ShareState
from sharecore.waiting import Done, Spans


class ReadState(NamedTuple):
    """State of a share partition for its leader; `batches` are packed."""

    state_epoch: int
    start_offset: int
    batches: bytes


class StateSummary(NamedTuple):
    """State of a share partition without its batches; -1 if unknown."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int


def kafkas_partition(key: SharePartitionKey, partitions: int) -> int:
    """Return the state-topic partition of a share partition, as Kafka computes it."""
    # long group ids are not cached, so that a client cannot fill the cache with them
    find = _hash_before if len(key.group_id) <= _CACHED_LENGTH_MAX else _hash_before.__wrapped__
    before = find(key.group_id, key.topic_id)
    return partition_of_hash(java_string_hash(str(key.partition), before), partitions)


_CACHED_LENGTH_MAX = 1000


@lru_cache(maxsize=4096)
def _hash_before(group_id: str, topic_id: UUID) -> int:
    return java_string_hash(before_partition(group_id, topic_id))


def check_epochs(leader_epoch: int = 0, state_epoch: int = 0) -> None:
    """Raise KafkaError(INVALID_REQUEST) for a negative epoch."""
    if leader_epoch < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The leader epoch cannot be a negative number.")
    if state_epoch < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The state epoch cannot be a negative number.")


_UNKNOWN = StateSummary(0, 0, UNINITIALIZED, UNINITIALIZED)


class ShareCoordinator(States):
    """Initialize, read, write and delete share-partition state.

    Every operation answers through a callback once it is durable. A read returns the current state after
    waiting for earlier writes: as in Kafka, no answer contains state that a failure could revoke.

    Args:
        runtime: the state topic.
        updates_per_snapshot: `share.coordinator.snapshot.update.records.per.snapshot`.
        cold_ms: `share.coordinator.cold.partition.snapshot.interval.ms`.
        route: returns the state-topic partition of a share partition; Kafka's hash by default.
    """

    _check_epochs = staticmethod(check_epochs)

    def __init__(
        self,
        runtime: CoordinatorRuntime,
        *,
        updates_per_snapshot: int = 500,
        cold_ms: int = 300_000,
        route: Callable[[SharePartitionKey, int], int] = kafkas_partition,
    ) -> None:
        self._runtime = runtime
        self._clock = runtime.clock
        self._updates_per_snapshot = updates_per_snapshot
        self._cold_ms = cold_ms
        self._route = route
        self._shards: list[StateShard] = []
        self.loads = Spans()
        """Loads of state-topic partitions."""
        self._changes = 0

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int, done: Done) -> None:
        """Create state for a share partition, or reset it under a higher state epoch.

        Raises:
            KafkaError: INVALID_REQUEST, FENCED_STATE_EPOCH, or a load error.
        """
        shard = self._shard(key)
        check_epochs(state_epoch=state_epoch)
        state = shard.states.get(key)
        now_ms = self._clock.now_ms()
        if state is None:
            state = shard.states[key] = ShareState(key)
            self._changes += 1
        record = state.initialize(
            state_epoch, start_offset, now_ms=now_ms, updates_per_snapshot=self._updates_per_snapshot
        )
        shard.append(record, now_ms, done, snapshot_of=state)

    def write(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: bytes,
        done: Done,
    ) -> None:
        """Write a change of a share partition's state.

        Args:
            start_offset: ignored unless it is after the current one; -1 for no change.
            batches: packed, in any order.

        Raises:
            KafkaError: INVALID_REQUEST if the state does not exist or a batch is invalid; FENCED_STATE_EPOCH;
                FENCED_LEADER_EPOCH; or a load error.
        """
        shard = self._shard(key)
        state = self._writable(shard, key, state_epoch, leader_epoch)
        if batches:
            try:
                batches = combine_state_batches([batches], max(start_offset, state.content.start_offset))
            except ValueError as error:
                raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error
        now_ms = self._clock.now_ms()
        record = state.write(
            start_offset,
            delivery_complete_count,
            batches,
            now_ms=now_ms,
            updates_per_snapshot=self._updates_per_snapshot,
        )
        _append(shard, state, record, now_ms, done)

    def read(
        self, key: SharePartitionKey, leader_epoch: int, done: Callable[[ReadState | KafkaError], None]
    ) -> None:
        """Read the durable state for the leader of this epoch, and fence leaders with a lower one. If an
        earlier write is lost, `done` gets its error.

        Raises:
            KafkaError: INVALID_REQUEST if the state does not exist; FENCED_LEADER_EPOCH; or a load error.
        """
        shard = self._shard(key)
        check_epochs(leader_epoch)
        state = shard.states.get(key)
        if state is None:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "Read operation on uninitialized share partition not allowed."
            )
        now_ms, content = self._clock.now_ms(), state.content
        record = state.raise_leader_epoch(
            leader_epoch, now_ms=now_ms, updates_per_snapshot=self._updates_per_snapshot
        )
        if record is not None:
            _append(shard, state, record, now_ms, None)
        found = ReadState(content.state_epoch, content.start_offset, content.batches())
        shard.when_durable(lambda error: done(found if error is None else error))

    def summary(self, key: SharePartitionKey, done: Callable[[StateSummary | KafkaError], None]) -> None:
        """Read the durable state without its batches; a missing state gives an empty summary.

        Raises:
            KafkaError: a load error.
        """
        shard = self._shard(key)
        state = shard.states.get(key)
        found = _UNKNOWN
        if state is not None:
            content = state.content
            found = StateSummary(
                content.state_epoch,
                content.leader_epoch,
                content.start_offset,
                content.delivery_complete_count,
            )
        if shard.is_durable:
            done(found)
        else:
            shard.when_durable(lambda error: done(found if error is None else error))

    def look(self, key: SharePartitionKey) -> StateContent | None:
        """Return a state that this broker owns and has loaded; its newest changes may not be durable yet."""
        shard = self._all_shards()[self.partition_of(key)]
        try:
            self._runtime.check_owner(shard.index)
        except KafkaError:
            return None
        state = shard.states.get(key)
        return None if state is None else state.content

    def at_hand(
        self, group_id: str, topic_id: UUID, partitions: Iterable[int]
    ) -> Iterator[tuple[int, StateContent]]:
        """Return a topic's partitions whose summary is available without waiting, with their state."""
        settled: dict[StateShard, bool] = {}
        for partition in partitions:
            # equal to a SharePartitionKey, but five times as fast to create
            key: Any = group_id, topic_id, partition
            shard = self._routes.get(key)
            if shard is None:
                continue
            if shard not in settled:
                settled[shard] = self._is_settled(shard)
            if settled[shard] and (state := shard.states.get(key)) is not None:
                yield partition, state.content

    def delete(self, key: SharePartitionKey, done: Done) -> None:
        """Delete the state of a share partition; ignore missing state.

        Raises:
            KafkaError: a load error.
        """
        shard = self._shard(key)
        self._routes.pop(key, None)
        state = shard.states.pop(key, None)
        if state is None:
            shard.when_durable(done)  # a pending deletion may precede this one
            return
        self._changes += 1
        shard.note_move()
        shard.append((state.snapshot_key, None), self._clock.now_ms(), done)

    def partition_of(self, key: SharePartitionKey) -> int:
        """Return the partition of the state topic that holds the state of a share partition."""
        return self._route(key, len(self._all_shards()))

    @property
    def version(self) -> tuple[int, int]:
        """A number that changes when states are created or deleted."""
        return self._changes, self.loads.count

    @property
    def shards(self) -> Sequence[StateShard]:
        """The partitions of the topic, once one of them was used."""
        return self._shards

    @property
    def partition_count(self) -> int:
        """Number of partitions of the topic; 0 if it does not exist."""
        try:
            return len(self._all_shards())
        except KafkaError:
            return 0

    @property
    def repaired(self) -> int:
        """Number of state batches that were repaired on load."""
        return sum(shard.repaired for shard in self._shards)

    @property
    def writes(self) -> Spans:
        """Written record batches, with the number of writes in each."""
        return self._runtime.writes

    def flush(self) -> None:
        """Append the staged records, without waiting for the end of the turn."""
        for shard in self._shards:
            shard.flush()

    def expire(self) -> None:
        """Answer every pending write with REQUEST_TIMED_OUT; it may still become durable."""
        self._runtime.expire()

    def prune(self) -> None:
        """Renew snapshots that pin old records, and delete redundant ones; cheap enough to run often."""
        now_ms = self._clock.now_ms()
        for shard in self._shards:
            if shard.states:
                shard.snapshot_cold(now_ms, self._cold_ms)
                shard.prune()

    def topic_deleted(self) -> None:
        """Discard all state: the topic was deleted."""
        for shard in self._shards:
            shard.forget()
        self._shards, self._routes = [], {}
        self._changes += 1
        self._runtime.topic_deleted()

    def load(self, partition: int) -> None:
        """Load a partition of the topic that this broker now owns, ahead of its first use.

        Raises:
            KafkaError: the partition cannot be read.
        """
        self._all_shards()[partition].ensure_loaded()

    def resign(self, partition: int) -> None:
        """Discard a partition of the topic that another broker owns from now on."""
        shard = self._all_shards()[partition]
        shard.forget()
        self._routes = {key: route for key, route in self._routes.items() if route is not shard}
        self._changes += 1

    def _all_shards(self) -> list[StateShard]:
        if not self._shards:
            self._shards = [StateShard(staged, self.loads) for staged in self._runtime.partitions]
        return self._shards

    def _is_settled(self, shard: StateShard) -> bool:
        """Return whether a shard's state in memory is owned by this broker, and durable."""
        try:
            self._runtime.check_owner(shard.index)
        except KafkaError:
            return False
        return shard.is_loaded and shard.is_durable

    def _find_shard(self, key: SharePartitionKey) -> StateShard:
        if not key.group_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The group id cannot be empty.")
        if key.partition < 0:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The partition id cannot be a negative number.")
        shards = self._all_shards()
        return shards[self._route(key, len(shards))]


def _append(shard: StateShard, state: ShareState, record: Record, now_ms: int, done: Done | None) -> None:
    """Append a record of a state, and track the offset of its last snapshot."""
    is_update = record[0] is state.update_key
    shard.append(record, now_ms, done, snapshot_of=None if is_update else state)
