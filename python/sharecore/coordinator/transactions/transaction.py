"""A transactional id: its producer, and the transaction that is open or was the last one."""

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
"""Clients of this transaction version get a new epoch at the end of each transaction, and add partitions by
writing to them (KIP-890, "transactions V2").
"""


class TransactionState(Enum):
    """Where a transactional id stands; the values are the numbers in Kafka's records."""

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
        """As Kafka's tools print it, such as PrepareCommit."""
        return self.name.title().replace("_", "")


COMPLETE = (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
DECIDED = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)


class ProducerState(NamedTuple):
    """Producer id and epoch that a client writes with."""

    id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Transaction:
    """State of one transactional id.

    Args:
        epoch: of the producer; higher ones fence lower ones.
        last_epoch: the epoch before the last rise, from which a client may ask again; -1 for none.
        previous_producer_id: the id before the last change, from which a client may ask again; -1 for none.
        next_producer_id, next_epoch: what the producer becomes when the decision has been carried out, its
        epochs
            being used up; -1 otherwise.
        start_ms: when the open transaction began; -1 when none is open.
        client_version: transaction version that the client spoke last.
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
        """What the client writes with."""
        return ProducerState(self.producer_id, self.epoch)

    @property
    def is_open(self) -> bool:
        """Whether there is a transaction without a decision."""
        return self.state is TransactionState.ONGOING

    @property
    def is_decided(self) -> bool:
        """Whether there is a decision that has not been carried out."""
        return self.state in DECIDED

    def has(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether all of the partitions are part of the open transaction."""
        return self.is_open and self.partitions.issuperset(partitions)

    def check(self, producer: ProducerState) -> None:
        """Raise KafkaError (INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED) unless this is the current
        producer.
        """
        if producer.id != self.producer_id:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        # nobody is given the highest epoch: it is there to fence with
        if producer.epoch != self.epoch or self.epoch == EPOCH_MAX:
            raise KafkaError(ErrorCode.PRODUCER_FENCED)

    def check_expected(self, expected: ProducerState | None) -> None:
        """Raise KafkaError (PRODUCER_FENCED) when the client is no longer the current producer (KIP-360).

        While a transaction is open the id is all that counts: it is aborted first, and the client asks again.
        """
        if expected is None or self.epoch == NO_EPOCH or (self.is_open and expected.id == self.producer_id):
            return
        current = expected.id == self.producer_id and expected.epoch in (self.epoch, self.last_epoch)
        # the answer that gave it the new id was lost, and nobody has begun since
        before = self.epoch == 0 and expected == ProducerState(self.previous_producer_id, EPOCH_MAX - 1)
        if expected.epoch < 0 or not (current or before):
            raise KafkaError(ErrorCode.PRODUCER_FENCED)

    def ended_as(self, producer: ProducerState) -> TransactionState | None:
        """How the last transaction ended, when a client asks with the epoch before: whatever version of
        transactions it was ended by.
        """
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
        """A producer has begun; its epoch fences earlier ones."""
        fresh = replace(
            self,
            timeout_ms=timeout_ms,
            state=TransactionState.EMPTY,
            partitions=frozenset(),
            start_ms=-1,
            update_ms=now_ms,
        )
        if expected is not None and self.epoch != NO_EPOCH and expected.epoch != self.epoch:
            # it has the next epoch already, and did not hear of it
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
        """Partitions are added to the open transaction; without one it opens with them."""
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
        """The transaction is to be committed or aborted."""
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
        """The transaction is to be aborted; whoever wrote it is fenced until it asks for its next
        epoch.
        """
        return replace(
            self,
            state=TransactionState.PREPARE_ABORT,
            # a log that another broker wrote may have an open transaction under the highest epoch
            epoch=min(self.epoch + 1, EPOCH_MAX),
            last_epoch=self.epoch,
            update_ms=now_ms,
            client_version=RISING_EPOCHS,
        )

    def completed(self, now_ms: int) -> Transaction:
        """The decision has been carried out."""
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
        # the highest one is kept for fencing
        return self.epoch >= EPOCH_MAX - 1
