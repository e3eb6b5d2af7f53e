"""The transaction coordinator: owners of transactional ids, ends of transactions (KIP-98, KIP-890).

A decision, its markers and its completion record go to the store in one event-loop turn, so that they share a
sync. The client is answered after the last one, so that its next transaction never meets a half-ended one.
The store keeps the order, and a failed write fails all later ones: after a crash a prefix of the sequence
exists, and the broker writes the rest at startup.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, Protocol

from sharecore.coordinator.memory_limit import MemoryLimit
from sharecore.coordinator.offset_records import TopicPartition
from sharecore.coordinator.transactions.records import (
    TRANSACTION_LOG,
    decode_transaction,
    decode_transaction_key,
    encode_transaction,
    encode_transaction_key,
)
from sharecore.coordinator.transactions.transaction import (
    RISING_EPOCHS,
    ProducerState,
    Transaction,
    TransactionState,
)
from sharecore.coordinator_log.runtime import CoordinatorRuntime
from sharecore.coordinator_log.topic_log import WriteTicket
from sharecore.errors import ErrorCode, KafkaError
from sharecore.waiting import Deadline, Done

logger = logging.getLogger(__name__)

RETRY_MS = 1000
"""Delay before failed markers are retried."""


class TransactionLimits(NamedTuple):
    """Broker settings of transactions; times in milliseconds."""

    max_timeout_ms: int = 900_000
    expiration_ms: int = 604_800_000
    bytes_max: int = 64 << 20
    """Memory limit of all transactional ids (`sharecore.transactional.ids.bytes.max`)."""


class AppendedMarker(Protocol):
    """Result of appending a marker."""

    @property
    def ticket(self) -> WriteTicket: ...


class MarkerLog(Protocol):
    """The part of `sharecore.storage.Log` that markers need."""

    def append_marker(
        self, producer_id: int, producer_epoch: int, /, *, coordinator_epoch: int, commit: bool, now_ms: int
    ) -> AppendedMarker: ...


_ID_BYTES = 1000
"""Approximate memory size of a transactional id, without its characters."""
_PARTITION_BYTES = 200
"""Approximate memory size of a partition of a transaction."""


def _memory_bytes(transaction: Transaction) -> int:
    partitions = _PARTITION_BYTES * len(transaction.partitions)
    return _ID_BYTES + len(transaction.transactional_id) + partitions


ProducerDone = Callable[[ProducerState | KafkaError], None]
"""Called with the producer once the write is durable, or with an error."""


class TransactionCoordinator:
    """Coordinator of transactions.

    Args:
        records: `__transaction_state`.
        new_producer_id: returns an unused producer id.
        log_of: returns the log of a partition; None if it was deleted.
        ended: called for each durable marker with producer id, partition, and whether it is a commit.
    """

    kinds: Collection[int] = (TRANSACTION_LOG,)

    def __init__(
        self,
        records: CoordinatorRuntime,
        limits: TransactionLimits,
        *,
        new_producer_id: Callable[[], int],
        log_of: Callable[[TopicPartition], MarkerLog | None],
        ended: Callable[[int, TopicPartition, bool], None],
    ) -> None:
        self._records = records
        self._clock = records.clock
        self._timers = records.timers
        self._limits = limits
        self._new_producer_id = new_producer_id
        self._log_of = log_of
        self._ended = ended
        self._transactions: dict[str, Transaction] = {}
        self._memory = MemoryLimit(
            "sharecore.transactional.ids.bytes.max",
            limits.bytes_max,
            lambda: sum(map(_memory_bytes, self._transactions.values())),
            ErrorCode.POLICY_VIOLATION,
            self._clock.monotonic_ms,
            grows=True,
        )
        self._adding: dict[str, list[Transaction]] = {}
        """Open transactions with pending partition writes, newest state last. Each builds on the previous
        one, and fails with it.
        """
        self._busy: set[str] = set()
        self._deadlines: dict[str, Deadline] = {}
        records.register(self)

    def start(self) -> None:
        """Resume after a restart: execute decisions, and restart the timeouts of open transactions."""
        for transaction in self.all():
            if transaction.is_decided:
                self._carry_out(transaction, _Once(lambda result: None))
            elif transaction.is_open:
                self._count_time(transaction)

    def forget_all(self) -> None:
        """Discard all state: the topic was deleted."""
        for deadline in self._deadlines.values():
            deadline.cancel()
        for known in (self._transactions, self._adding, self._busy, self._deadlines):
            known.clear()

    def get(self, transactional_id: str) -> Transaction | None:
        """Return the durable state of a transactional id."""
        return self._transactions.get(transactional_id)

    def all(self) -> list[Transaction]:
        """Return all transactional ids."""
        return list(self._transactions.values())

    def initialize(
        self, transactional_id: str, timeout_ms: int, expected: ProducerState | None, done: ProducerDone
    ) -> None:
        """Register a producer under its transactional id: fence earlier ones and abort their transaction.

        Args:
            expected: the client's previous producer, if it recovers from an error (KIP-360).

        Raises:
            KafkaError: INVALID_REQUEST, INVALID_TRANSACTION_TIMEOUT, PRODUCER_FENCED;
                CONCURRENT_TRANSACTIONS while another transaction is being ended: the client retries.
        """
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The transactional id cannot be empty.")
        if not 0 < timeout_ms <= self._limits.max_timeout_ms:
            raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        transaction = self._newest(transactional_id)
        if transaction is None:
            self._memory.take(_ID_BYTES + len(transactional_id))
            transaction = Transaction(transactional_id, self._new_producer_id(), timeout_ms)
        self._check_idle(transaction)
        transaction.check_expected(expected)
        if transaction.is_open:
            self._abort_fenced(transaction)
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        now_ms = self._clock.now_ms()
        begun = transaction.initialized(timeout_ms, expected, self._new_producer_id, now_ms)
        self._begin(begun, done)

    def admit(
        self,
        transactional_id: str,
        producer: ProducerState,
        partitions: Collection[TopicPartition],
        *,
        implicit: bool,
    ) -> None:
        """Check that a producer may write to partitions; the caller appends the records in the same turn.

        Args:
            implicit: whether writing adds the partitions to the transaction; otherwise they must have been
                added before.

        Raises:
            KafkaError: INVALID_PRODUCER_ID_MAPPING, INVALID_PRODUCER_EPOCH, CONCURRENT_TRANSACTIONS,
                INVALID_TXN_STATE.
        """
        transaction = self._find(transactional_id)
        if producer.id == transaction.producer_id and producer.epoch != transaction.epoch:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH)
        transaction.check(producer)
        self._check_idle(transaction)
        if self._has_durably(transactional_id, partitions):
            return
        refused: list[KafkaError] = []
        if not transaction.has(partitions):
            if not implicit:
                raise KafkaError(ErrorCode.INVALID_TXN_STATE, "Partition was not added to the transaction")
            self._add(transaction, partitions, lambda error: refused.append(error) if error else None)
        # written before the caller's records: once those are durable, so is their transaction's partition
        self._records.hand_over(transactional_id)
        if refused:
            raise refused[0]

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerState,
        partitions: Collection[TopicPartition],
        done: Done,
    ) -> None:
        """Add partitions to the open transaction, or open one; `done` is called once that is durable.

        Raises:
            KafkaError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS.
        """
        transaction = self._find(transactional_id)
        transaction.check(producer)
        self._check_idle(transaction)
        if self._has_durably(transactional_id, partitions):
            done(None)
        else:
            self._add(transaction, partitions, done)

    def end(
        self,
        transactional_id: str,
        producer: ProducerState,
        *,
        commit: bool,
        version: int,
        done: ProducerDone,
    ) -> None:
        """End the open transaction; `done` is called when all of its markers are durable.

        Args:
            version: transaction version of the client; from version 2 it gets a new epoch.

        Raises:
            KafkaError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS,
                INVALID_TXN_STATE.
        """
        transaction = self._find(transactional_id)
        self._check_idle(transaction)
        wanted = TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT
        if version >= RISING_EPOCHS:
            ended = transaction.ended_as(producer)
            if ended is wanted:
                done(transaction.producer)
                return
            if ended is not None:
                raise KafkaError(ErrorCode.INVALID_TXN_STATE)
        transaction.check(producer)
        if not transaction.is_open:
            if version < RISING_EPOCHS and transaction.state is wanted:
                done(transaction.producer)
                return
            # a client that is unsure whether its writes arrived aborts, and gets its next epoch
            if commit or version < RISING_EPOCHS:
                raise KafkaError(ErrorCode.INVALID_TXN_STATE)
        now_ms = self._clock.now_ms()
        decided = transaction.decided(
            commit=commit, version=version, new_producer_id=self._new_producer_id, now_ms=now_ms
        )
        self._decide(decided, done)

    def expire(self) -> None:
        """Delete transactional ids that were unused for `transactional.id.expiration.ms`."""
        before_ms = self._clock.now_ms() - self._limits.expiration_ms
        for transaction in self.all():
            name = transaction.transactional_id
            idle = not (
                transaction.is_open or transaction.is_decided or name in self._busy | self._adding.keys()
            )
            if idle and transaction.update_ms < before_ms:
                self._forget(name)

    def replay(self, partition: int, kind: int, key: bytes, value: bytes | None) -> None:
        transactional_id = decode_transaction_key(key)
        if value is None:
            self._transactions.pop(transactional_id, None)
        else:
            self._transactions[transactional_id] = decode_transaction(transactional_id, value)

    def _find(self, transactional_id: str) -> Transaction:
        """Return the newest state of a transactional id, which may not be durable yet."""
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The transactional id cannot be empty.")
        transaction = self._newest(transactional_id)
        if transaction is None:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return transaction

    def _newest(self, transactional_id: str) -> Transaction | None:
        adding = self._adding.get(transactional_id)
        return adding[-1] if adding else self._transactions.get(transactional_id)

    def _has_durably(self, transactional_id: str, partitions: Collection[TopicPartition]) -> bool:
        transaction = self._transactions.get(transactional_id)
        return transaction is not None and transaction.has(partitions)

    def _check_idle(self, transaction: Transaction) -> None:
        if transaction.is_decided or transaction.transactional_id in self._busy:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)

    def _add(self, transaction: Transaction, partitions: Collection[TopicPartition], done: Done) -> None:
        name = transaction.transactional_id
        self._memory.take(_PARTITION_BYTES * len(partitions))
        added = transaction.with_partitions(partitions, self._clock.now_ms())
        chain = self._adding.setdefault(name, [])
        chain.append(added)

        def ended(error: KafkaError | None) -> None:
            chain.remove(added)
            if error is None:
                self._transactions[name] = added
                if not transaction.is_open:
                    self._count_time(added)
            if (error is not None or not chain) and self._adding.get(name) is chain:
                del self._adding[name]

        self._write(added, ended, done)

    def _forget(self, name: str) -> None:
        def ended(error: KafkaError | None) -> None:
            self._busy.discard(name)
            if error is None:
                self._transactions.pop(name, None)
                deadline = self._deadlines.pop(name, None)
                if deadline is not None:
                    deadline.cancel()

        self._busy.add(name)
        self._records.append(name, [(encode_transaction_key(name), None)], _ignore, ended=ended)

    def _abort_fenced(self, transaction: Transaction) -> None:
        name = transaction.transactional_id

        def decided(result: ProducerState | KafkaError) -> None:
            # the producer may never return, and a write that fails now may succeed later
            deadline = self._deadlines.get(name)
            if isinstance(result, KafkaError) and deadline is not None:
                deadline.set(RETRY_MS)

        self._decide(transaction.fenced(self._clock.now_ms()), decided)

    def _timed_out(self, transactional_id: str) -> None:
        transaction = self._newest(transactional_id)
        if transaction is None or not transaction.is_open:
            return
        if transactional_id in self._busy:
            # the end is being written, which may fail
            self._deadlines[transactional_id].set(RETRY_MS)
            return
        logger.info("transaction of %s timed out; aborting it", transactional_id)
        self._abort_fenced(transaction)

    def _decide(self, decided: Transaction, done: ProducerDone) -> None:
        """Write and execute a decision; until it is written the transaction stays open."""
        name = decided.transactional_id
        refused: list[KafkaError] = []
        answer = _Once(done)

        def ended(error: KafkaError | None) -> None:
            if error is not None:
                refused.append(error)
                self._busy.discard(name)
                return
            self._transactions[name] = decided
            if name in self._deadlines:
                self._deadlines[name].cancel()

        self._busy.add(name)
        self._write(decided, ended, answer.failed)
        self._records.flush()
        if not refused:
            self._carry_out(decided, answer, refused)

    def _carry_out(self, decided: Transaction, answer: _Once, refused: Sequence[KafkaError] = ()) -> None:
        """Write the markers of a decision, then its completion; retry until they are durable.

        Args:
            refused: gets an error if the decision itself, and thus everything after it, failed.
        """
        name = decided.transactional_id
        failed: list[KafkaError] = []

        def ended(error: KafkaError | None) -> None:
            if refused:
                return
            if error is not None:
                logger.error("cannot write markers of %s, retrying: %s", name, error)
                self._timers.call_later(RETRY_MS / 1000, lambda: self._carry_out(decided, answer))
                return
            self._busy.discard(name)
            self._transactions[name] = completed
            answer(completed.producer)

        def late(error: KafkaError | None) -> None:
            if error is not None and error.code is ErrorCode.REQUEST_TIMED_OUT:
                answer(error)

        self._busy.add(name)
        completed = decided.completed(self._clock.now_ms())
        for partition in sorted(decided.partitions):
            self._mark(decided, partition, failed)
        if failed:
            ended(failed[0])
            return
        self._write(completed, ended, late)
        self._records.flush()

    def _mark(self, decided: Transaction, partition: TopicPartition, failed: list[KafkaError]) -> None:
        log = self._log_of(partition)
        if log is None:
            return
        commit = decided.state is TransactionState.PREPARE_COMMIT

        def durable(ticket: WriteTicket) -> None:
            # a failed marker also fails the completion record after it
            if ticket.error is None:
                self._ended(decided.producer_id, partition, commit)

        now_ms = self._clock.now_ms()
        try:
            marker = log.append_marker(*decided.producer, commit=commit, coordinator_epoch=0, now_ms=now_ms)
        except KafkaError as error:
            # a later producer has written here: this one has no open transaction
            if error.code is not ErrorCode.INVALID_PRODUCER_EPOCH:
                failed.append(error.with_traceback(None))  # it would hold `failed` in a cycle
            return
        marker.ticket.add_done_callback(durable)

    def _begin(self, begun: Transaction, done: ProducerDone) -> None:
        """Write a new producer; the transactional id is busy until it is durable."""
        name = begun.transactional_id

        def ended(error: KafkaError | None) -> None:
            self._busy.discard(name)
            if error is None:
                self._transactions[name] = begun

        self._busy.add(name)
        self._write(begun, ended, lambda error: done(error or begun.producer))

    def _write(self, after: Transaction, ended: Done, done: Done) -> None:
        """Write a state; `ended`, which a timeout does not call, changes memory."""
        record = encode_transaction_key(after.transactional_id), encode_transaction(after)
        self._records.append(after.transactional_id, [record], done, ended=ended)

    def _count_time(self, transaction: Transaction) -> None:
        name = transaction.transactional_id
        deadline = self._deadlines.get(name)
        if deadline is None:
            deadline = Deadline(self._clock, self._timers, lambda: self._timed_out(name))
            self._deadlines[name] = deadline
        elapsed_ms = max(0, self._clock.now_ms() - transaction.start_ms)
        deadline.set(max(0, transaction.timeout_ms - elapsed_ms))


class _Once:
    """An answer that a timeout may give early: only the first one is sent."""

    def __init__(self, done: ProducerDone) -> None:
        self._done: ProducerDone | None = done

    def __call__(self, result: ProducerState | KafkaError) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(result)

    def failed(self, error: KafkaError | None) -> None:
        """Answer with an error, if any."""
        if error is not None:
            self(error)


def _ignore(error: KafkaError | None) -> None:
    """Ignore the result: a failed write is retried the next time."""
