"""A transactional id: its producer, and its open or last transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from sharecore.coordinator.offset_records import TopicPartition
from sharecore.errors import ErrorCode, KafkaError

EPOCH_MAX = 2**15 - 1
NO_PRODUCER = -1
NO_EPOCH = -1

RISING_EPOCHS = 2
"""Transaction version from which each transaction ends with a new epoch, and writes add partitions (KIP-890,
"transactions V2").
"""


class TransactionState(Enum):
    """State of a transactional id; the values are the numbers in Kafka's records."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def kafka_name(self) -> str:
        """The state as printed by Kafka's tools, such as PrepareCommit."""
        return self.name.title().replace("_", "")


COMPLETE = (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
DECIDED = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)


class ProducerState(NamedTuple):
    """Producer id and epoch of a client's writes."""

    id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Transaction:
    """State of one transactional id.

    Args:
        epoch: producer epoch; higher ones fence lower ones.
        last_epoch: the previous epoch, with which a client may retry; -1 for none.
        previous_producer_id: the previous producer id, with which a client may retry; -1 for none.
        next_producer_id, next_epoch: the producer after the decision is executed, if its epochs are used up;
            else -1.
        start_ms: start time of the open transaction; -1 without one.
        client_version: the client's last transaction version.
    """

    transactional_id: str
    producer_id: int
    timeout_ms: int
    epoch: int = NO_EPOCH
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    update_ms: int = -1
    start_ms: int = -1
    last_epoch: int = NO_EPOCH
    previous_producer_id: int = NO_PRODUCER
    next_producer_id: int = NO_PRODUCER
    next_epoch: int = NO_EPOCH
    client_version: int = 0

    @property
    def producer(self) -> ProducerState:
        """The current producer."""
        return ProducerState(self.producer_id, self.epoch)

    @property
    def is_open(self) -> bool:
        """Whether a transaction is open and undecided."""
        return self.state is TransactionState.ONGOING

    @property
    def is_decided(self) -> bool:
        """Whether a decision has not been executed yet."""
        return self.state in DECIDED

    def has(self, partitions: Collection[TopicPartition]) -> bool:
        """Return whether all partitions are part of the open transaction."""
        return self.is_open and self.partitions.issuperset(partitions)

    def check(self, producer: ProducerState) -> None:
        """Raise KafkaError (INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED) unless this is the current
        producer.
        """
        if producer.id != self.producer_id:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        # the highest epoch is reserved for fencing
        if producer.epoch != self.epoch or self.epoch == EPOCH_MAX:
            raise KafkaError(ErrorCode.PRODUCER_FENCED)

    def check_expected(self, expected: ProducerState | None) -> None:
        """Raise KafkaError (PRODUCER_FENCED) if the client is not the current producer (KIP-360).

        While a transaction is open only the id counts: it is aborted first, and the client retries.
        """
        if expected is None or self.epoch == NO_EPOCH or (self.is_open and expected.id == self.producer_id):
            return
        current = expected.id == self.producer_id and expected.epoch in (self.epoch, self.last_epoch)
        # the answer with its new id was lost, and no other producer has started since
        before = self.epoch == 0 and expected == ProducerState(self.previous_producer_id, EPOCH_MAX - 1)
        if expected.epoch < 0 or not (current or before):
            raise KafkaError(ErrorCode.PRODUCER_FENCED)

    def ended_as(self, producer: ProducerState) -> TransactionState | None:
        """Return how the last transaction ended, for a retry with the previous epoch and any version."""
        if self.state not in COMPLETE:
            return None
        if producer.id == self.producer_id:
            again = producer.epoch == self.epoch - 1
        else:
            again = self.epoch == 0 and producer == ProducerState(self.previous_producer_id, EPOCH_MAX - 1)
        return self.state if again else None

    def initialized(
        self, timeout_ms: int, expected: ProducerState | None, new_producer_id: Callable[[], int], now_ms: int
    ) -> Transaction:
        """Return the state with a newly registered producer, whose epoch fences earlier ones."""
        fresh = replace(
            self,
            timeout_ms=timeout_ms,
            state=TransactionState.EMPTY,
            partitions=frozenset(),
            start_ms=-1,
            update_ms=now_ms,
        )
        if expected is not None and self.epoch != NO_EPOCH and expected.epoch != self.epoch:
            # it already has the next epoch, but the answer was lost
            return fresh
        if self._epochs_used_up:
            previous = self.producer_id if expected is not None else NO_PRODUCER
            return replace(
                fresh,
                previous_producer_id=previous,
                producer_id=new_producer_id(),
                epoch=0,
                last_epoch=NO_EPOCH,
            )
        last = self.epoch if expected is not None else NO_EPOCH
        return replace(fresh, epoch=self.epoch + 1, last_epoch=last)

    def with_partitions(self, partitions: Collection[TopicPartition], now_ms: int) -> Transaction:
        """Return the state with more partitions in the open transaction, or in a new one."""
        if self.is_open:
            return replace(self, partitions=self.partitions.union(partitions), update_ms=now_ms)
        return replace(
            self,
            state=TransactionState.ONGOING,
            partitions=frozenset(partitions),
            start_ms=now_ms,
            update_ms=now_ms,
        )

    def decided(
        self, *, commit: bool, version: int, new_producer_id: Callable[[], int], now_ms: int
    ) -> Transaction:
        """Return the state with a decision to commit or abort."""
        after = replace(
            self,
            state=TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT,
            partitions=self.partitions if self.is_open else frozenset(),
            start_ms=self.start_ms if self.is_open else now_ms,
            update_ms=now_ms,
            client_version=version,
        )
        if version < RISING_EPOCHS:
            return after
        after = replace(after, epoch=self.epoch + 1, last_epoch=self.epoch)
        if self._epochs_used_up:
            after = replace(after, next_producer_id=new_producer_id(), next_epoch=0)
        return after

    def fenced(self, now_ms: int) -> Transaction:
        """Return the state with a decision to abort that fences the producer until it registers again."""
        return replace(
            self,
            state=TransactionState.PREPARE_ABORT,
            # a log written by another broker may have an open transaction under the highest epoch
            epoch=min(self.epoch + 1, EPOCH_MAX),
            last_epoch=self.epoch,
            update_ms=now_ms,
            client_version=RISING_EPOCHS,
        )

    def completed(self, now_ms: int) -> Transaction:
        """Return the state after the decision was executed."""
        commit = self.state is TransactionState.PREPARE_COMMIT
        after = replace(
            self,
            state=TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT,
            partitions=frozenset(),
            update_ms=now_ms,
        )
        if self.next_producer_id == NO_PRODUCER:
            return after
        return replace(
            after,
            previous_producer_id=self.producer_id,
            producer_id=self.next_producer_id,
            epoch=self.next_epoch,
            last_epoch=NO_EPOCH,
            next_producer_id=NO_PRODUCER,
            next_epoch=NO_EPOCH,
        )

    @property
    def _epochs_used_up(self) -> bool:
        # the highest epoch is reserved for fencing
        return self.epoch >= EPOCH_MAX - 1
