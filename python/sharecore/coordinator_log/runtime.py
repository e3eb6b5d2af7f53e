"""Runtime of a coordinator: its topic to write and replay, the time, and its partitions.

Several coordinators keep their records in one topic (`__consumer_offsets`); each registers the record types
that it reads. Records of one turn of the event loop form one batch per partition, so that they share an
append.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from typing import Protocol, runtime_checkable

from sharecore.clock import Clock, stopwatch
from sharecore.coordinator_log.compactor import Compactor
from sharecore.coordinator_log.record_schema import UnknownRecord, number_of
from sharecore.coordinator_log.routing import partition_for
from sharecore.coordinator_log.staged_log import ATTEMPTS_MAX, WRITE_TIMEOUT_MS, StagedLog
from sharecore.coordinator_log.topic_log import Producer, Record, TopicLog
from sharecore.errors import ErrorCode, KafkaError
from sharecore.waiting import Done, Spans, Timers

logger = logging.getLogger(__name__)

_RETRY_S = 1.0


class Replayer(Protocol):
    """A coordinator whose state is in a topic."""

    kinds: Collection[int]
    """Record types that the coordinator reads."""

    def replay(self, partition: int, kind: int, key: bytes, value: bytes | None) -> None:
        """Apply one record in log order; raise ValueError for a damaged one."""


@runtime_checkable
class TransactionalReplayer(Replayer, Protocol):
    """A coordinator whose records may be part of transactions."""

    def replay_in_transaction(self, producer_id: int, key: bytes, value: bytes | None) -> None:
        """Stage a record that takes effect when its transaction commits."""

    def complete(self, producer_id: int, partition: int, *, commit: bool) -> None:
        """Commit or abort a transaction in a partition of the topic."""


@runtime_checkable
class RestorableReplayer(Replayer, Protocol):
    """A coordinator that changes memory before the log; after an abandoned write it replays the partition."""

    def resign(self, partition: int) -> None:
        """Discard the state of a partition of the topic."""

    def start(self) -> None:
        """Resume with the replayed state."""


class CoordinatorRuntime:
    """One topic of one or several coordinators.

    This is a coordinator's only access to the world: the same code runs on the broker's store, on a simulated
    disk and on partitions of another cluster.

    Args:
        logs: the partitions of the topic.
        clock: time for sessions and for records.
        timers: ends the turn and schedules later work.
        attempts_max: total attempts for a failing write.
        write_timeout_ms: after this time a write is answered with REQUEST_TIMED_OUT.
        compacted: whether to rewrite partitions that are mostly obsolete.
        owner_check: raises KafkaError (NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS) unless this broker
            currently owns a partition; None if it owns all of them.
    """

    def __init__(
        self,
        logs: Callable[[], Sequence[TopicLog]],
        clock: Clock,
        timers: Timers,
        *,
        attempts_max: int = ATTEMPTS_MAX,
        write_timeout_ms: int = WRITE_TIMEOUT_MS,
        compacted: bool = True,
        owner_check: Callable[[int], None] | None = None,
    ) -> None:
        self.clock = clock
        self.timers = timers
        self._open = logs
        self._attempts_max = attempts_max
        self._write_timeout_ms = write_timeout_ms
        self._compacted = compacted
        self.owner_check = owner_check
        self._opened: list[StagedLog] = []
        self._compactors: list[Compactor] = []
        self._replayers: defaultdict[int, list[Replayer]] = defaultdict(list)
        self._transactional: TransactionalReplayer | None = None
        self._passed_over: Counter[tuple[int, str]] = Counter()
        self._staged: set[StagedLog] = set()
        self._unread: set[int] = set()
        """Partitions that could not be replayed after a write was abandoned."""
        self._restoring: set[int] = set()
        """Partitions being replayed: writes that fail meanwhile need no rollback."""
        self.loads = Spans()
        """Partition loads, with the number of records."""
        self.writes = Spans()

    def check_owner(self, partition: int) -> None:
        """Raise KafkaError unless this broker currently owns a partition."""
        if self.owner_check is not None:
            self.owner_check(partition)

    def register(self, replayer: Replayer | TransactionalReplayer) -> None:
        """Register a coordinator for its record types, in addition to those already registered."""
        if isinstance(replayer, TransactionalReplayer):
            self._transactional = replayer
        for kind in replayer.kinds:
            self._replayers[kind].append(replayer)

    @property
    def partitions(self) -> Sequence[StagedLog]:
        """Partitions of the topic, with their staged writes.

        Raises:
            KafkaError: COORDINATOR_NOT_AVAILABLE while the topic does not exist.
        """
        if not self._opened:
            self._opened = [self._open_partition(log) for log in self._open()]
        return self._opened

    def _open_partition(self, log: TopicLog) -> StagedLog:
        def sent() -> None:
            self._staged.discard(staged)
            if self._compacted:
                compactor.look()

        staged = StagedLog(
            log,
            self.timers,
            self._write_timeout_ms,
            attempts_max=self._attempts_max,
            sent=sent,
            monotonic_ms=self.clock.monotonic_ms,
            writes=self.writes,
            gave_up=lambda: self._restore(staged),
        )
        compactor = Compactor(staged, self.clock, self.timers)
        self._compactors.append(compactor)
        return staged

    def topic_deleted(self) -> None:
        """Discard the state of a deleted topic; a new topic of that name is opened on demand."""
        for compactor in self._compactors:
            compactor.stop()
        for each in self._restorable():
            for staged in self._opened:
                each.resign(staged.log.index)
        self._compactors, self._opened = [], []
        self._staged.clear()
        self._unread.clear()

    def partition_of(self, key: str) -> int:
        """Return the partition for the records of a group or a transactional id."""
        return partition_for(key, len(self.partitions))

    def load(self) -> int:
        """Replay the topic; return the number of records. Unknown types and versions are skipped and kept.

        Raises:
            KafkaError: UNKNOWN_SERVER_ERROR for a damaged record: skipping it would silently lose state.
        """
        return sum(self.load_partition(index) for index in range(len(self.partitions)))

    def load_partition(self, index: int) -> int:
        """Replay a partition that this broker now owns; see `load`."""
        log = self.partitions[index].log
        took_ms = stopwatch()
        loaded = self._load(log)
        self.loads.add(took_ms(), loaded)
        for (_, reason), records in self._passed_over.items():
            logger.warning("%s-%d: skipped %d records: %s", log.topic, index, records, reason)
        self._passed_over.clear()
        return loaded

    def append(self, key: str, records: Sequence[Record], done: Done, *, ended: Done | None = None) -> None:
        """Append records of a group or a transactional id.

        Args:
            records: empty for a read, which waits for the pending writes that it may have seen.
            done: called when all records are durable, lost, or timed out.
            ended: called before `done` when the records are durable or lost; memory changes there.
        """
        partition = self._owned(key, done, ended)
        if partition is None:
            return
        if records:
            self._stage(partition, records, done, ended, None)
        elif partition.is_settled:
            done(None)
        else:
            partition.when_ended(done)

    def append_in_transaction(
        self,
        key: str,
        records: Sequence[Record],
        producer: Producer,
        done: Done,
        *,
        ended: Done | None = None,
    ) -> None:
        """Append records that take effect when the producer's transaction commits; see `append`."""
        partition = self._owned(key, done, ended)
        if partition is None:
            return
        if partition.failing:
            # a retried record could land behind the marker of its transaction
            text = f"{partition.name} cannot be written now; retry"
            _refuse(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, text), done, ended)
            return
        self._stage(partition, records, done, ended, producer)
        partition.flush()

    def hand_over(self, key: str) -> None:
        """Flush the staged records of a transactional id, so that a later append elsewhere is never durable
        without them.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR while earlier writes have failed.
        """
        partition = self.partitions[self.partition_of(key)]
        partition.flush()
        if partition.has_staged:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{partition.name} cannot be written now")

    def check(self, key: str) -> None:
        """Raise KafkaError(COORDINATOR_LOAD_IN_PROGRESS) while the records of a group cannot be read."""
        if self._unread and self.partition_of(key) in self._unread:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    def _owned(self, key: str, done: Done, ended: Done | None) -> StagedLog | None:
        """Return the partition of a key; None after `done` received the error."""
        index = self.partition_of(key)
        partition = self.partitions[index]
        try:
            self.check(key)
            self.check_owner(index)
        except KafkaError as error:
            _refuse(error, done, ended)
            return None
        return partition

    def _stage(
        self,
        partition: StagedLog,
        records: Sequence[Record],
        done: Done,
        ended: Done | None,
        producer: Producer | None,
    ) -> None:
        partition.append(records, self.clock.now_ms(), done, ended=ended, producer=producer)
        self._staged.add(partition)

    def _restore(self, staged: StagedLog) -> None:
        """Replay a partition after an abandoned write left memory ahead of the log."""
        index = staged.log.index
        if staged not in self._opened or index in self._restoring:
            return
        self._restoring.add(index)
        try:
            self._read_again(staged, self._restorable())
        finally:
            self._restoring.discard(index)

    def _read_again(self, staged: StagedLog, replayers: Sequence[RestorableReplayer]) -> None:
        index = staged.log.index
        for each in replayers:
            each.resign(index)
        self._unread.add(index)
        try:
            if replayers:
                self.load_partition(index)
        except KafkaError as error:
            logger.error("cannot read %s; retrying in %.0f s: %s", staged.name, _RETRY_S, error)
            self.timers.call_later(_RETRY_S, lambda: self._restore(staged))
            return
        self._unread.discard(index)
        for each in replayers:
            each.start()

    def _restorable(self) -> list[RestorableReplayer]:
        registered = dict.fromkeys(each for some in self._replayers.values() for each in some)
        return [each for each in registered if isinstance(each, RestorableReplayer)]

    def flush(self) -> None:
        """Append the staged records."""
        for partition in list(self._staged):
            partition.flush()

    def expire(self) -> None:
        """Answer every pending write with REQUEST_TIMED_OUT; it may still become durable."""
        for partition in self._opened:
            partition.expire()

    def _load(self, log: TopicLog) -> int:
        count = 0
        for batch in log.scan_batches(log.start_offset):
            if batch.is_control:
                if self._transactional is not None:
                    self._transactional.complete(batch.producer_id, log.index, commit=batch.is_commit)
                continue
            for offset, _timestamp, key, value in batch.records:
                self._replay(log, offset, key or b"", value, batch.producer_id)
            count += len(batch.records)
        return count

    def _replay(self, log: TopicLog, offset: int, key: bytes, value: bytes | None, producer_id: int) -> None:
        try:
            kind = number_of(key)
            replayers = self._replayers.get(kind, ())
            if not replayers:
                raise UnknownRecord(f"record type {kind} is not known")
            if producer_id < 0:
                for replayer in replayers:
                    replayer.replay(log.index, kind, key, value)
            elif self._transactional in replayers:
                self._transactional.replay_in_transaction(producer_id, key, value)
            else:
                raise ValueError(f"record type {kind} is part of a transaction")
        except UnknownRecord as error:
            self._passed_over[log.index, str(error)] += 1
        except ValueError as error:
            text = f"{log.topic}-{log.index} at offset {offset}: {error}"
            logger.error("a coordinator's state cannot be read: %s", text)
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, text) from error


def _refuse(error: KafkaError, done: Done, ended: Done | None) -> None:
    if ended is not None:
        ended(error)
    done(error)
