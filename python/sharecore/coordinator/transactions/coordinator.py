"""The transaction coordinator: who may write under a transactional id, and how transactions end (KIP-98,
KIP-890).

A decision, its markers and the note that they are written go to the store in one turn, so that they share a
sync, and
the client is answered behind the last: its next transaction never meets this one half ended. The store keeps
the order,
and what fails takes along what is behind it: after a crash a beginning of that row is there, and the rest is
written when the broker starts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, Protocol

from sharecore.coordinator.memory_room import MemoryRoom
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
"""Time before markers that could not be written are tried again."""


class TransactionLimits(NamedTuple):
    """Settings of the broker for transactions; times in milliseconds."""

    max_timeout_ms: int = 900_000
    expiration_ms: int = 604_800_000
    bytes_max: int = 64 << 20
    """Memory of all transactional ids (`sharecore.transactional.ids.bytes.max`)."""


class AppendedMarker(Protocol):
    """A marker that has been appended."""

    @property
    def ticket(self) -> WriteTicket: ...


class MarkerLog(Protocol):
    """What of `sharecore.storage.Log` markers are written with."""

    def append_marker(
        self, producer_id: int, producer_epoch: int, /, *, coordinator_epoch: int, commit: bool, now_ms: int
    ) -> AppendedMarker: ...


_ID_BYTES = 1000
"""About what a transactional id takes besides its characters."""
_PARTITION_BYTES = 200
"""About what a partition of a transaction takes."""


def _memory_bytes(transaction: Transaction) -> int:
    partitions = _PARTITION_BYTES * len(transaction.partitions)
    return _ID_BYTES + len(transaction.transactional_id) + partitions


ProducerDone = Callable[[ProducerState | KafkaError], None]
"""Called with the producer once the write is durable, or with why it is not."""


class TransactionCoordinator:
    """Transactions by transactional id.

    Args:
        records: `__transaction_state`.
        new_producer_id: a producer id that nobody has had.
        log_of: the log of a partition, or None when it is gone.
        ended: told of each partition whose marker is durable: producer id, partition, whether it was
            committed.
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
        self._room = MemoryRoom(
            "sharecore.transactional.ids.bytes.max",
            limits.bytes_max,
            lambda: sum(map(_memory_bytes, self._transactions.values())),
            ErrorCode.POLICY_VIOLATION,
            self._clock.monotonic_ms,
            grows=True,
        )
        self._adding: dict[str, list[Transaction]] = {}
        """Open transactions whose partitions are being written, the newest state last. Each stands on the one
        before it, and is lost with it.
        """
        self._busy: set[str] = set()
        self._deadlines: dict[str, Deadline] = {}
        records.register(self)

    def start(self) -> None:
        """Resumes after a restart: carries out decisions, counts the time of open
        transactions.
        """
        for transaction in self.all():
            if transaction.is_decided:
                self._carry_out(transaction, _Once(lambda result: None))
            elif transaction.is_open:
                self._count_time(transaction)

    def forget_all(self) -> None:
        """The topic is gone with all that it said."""
        for deadline in self._deadlines.values():
            deadline.cancel()
        for known in (self._transactions, self._adding, self._busy, self._deadlines):
            known.clear()

    def get(self, transactional_id: str) -> Transaction | None:
        """Return the durable state of a transactional id."""
        return self._transactions.get(transactional_id)

    def all(self) -> list[Transaction]:
        """Every transactional id."""
        return list(self._transactions.values())

    def initialize(
        self, transactional_id: str, timeout_ms: int, expected: ProducerState | None, done: ProducerDone
    ) -> None:
        """A producer begins under its transactional id: earlier ones are fenced, their transaction is
        aborted.

        Args:
            expected: the producer that the client has been, when it wants to go on after an error (KIP-360).

        Raises:
            KafkaError: INVALID_REQUEST, INVALID_TRANSACTION_TIMEOUT, PRODUCER_FENCED;
                CONCURRENT_TRANSACTIONS while another transaction is being ended: the client asks again.
        """
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The transactional id cannot be empty.")
        if not 0 < timeout_ms <= self._limits.max_timeout_ms:
            raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        transaction = self._newest(transactional_id)
        if transaction is None:
            self._room.take(_ID_BYTES + len(transactional_id))
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
        """Whether a producer may write to partitions now; the caller appends the records in the same turn.

        Args:
            implicit: writing adds the partitions to the transaction; otherwise they must have been added
                before.

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
        # ahead of the caller's records: where they are durable, so is that they are part of the transaction
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
        """Add partitions to the open transaction, or open one with them; `done` is called when that is
        durable.

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
            version: transaction version of the client; from 2 on it gets a new epoch.

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
            # a client that does not know whether its writes arrived aborts, and gets its next epoch
            if commit or version < RISING_EPOCHS:
                raise KafkaError(ErrorCode.INVALID_TXN_STATE)
        now_ms = self._clock.now_ms()
        decided = transaction.decided(
            commit=commit, version=version, new_producer_id=self._new_producer_id, now_ms=now_ms
        )
        self._decide(decided, done)

    def expire(self) -> None:
        """Forgets transactional ids that were not used for `transactional.id.expiration.ms`."""
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
        """Return the newest state of a transactional id, which may be on its way to the disk."""
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
        self._room.take(_PARTITION_BYTES * len(partitions))
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
            # the producer may never come back, and what cannot be written now may be later
            deadline = self._deadlines.get(name)
            if isinstance(result, KafkaError) and deadline is not None:
                deadline.set(RETRY_MS)

        self._decide(transaction.fenced(self._clock.now_ms()), decided)

    def _timed_out(self, transactional_id: str) -> None:
        transaction = self._newest(transactional_id)
        if transaction is None or not transaction.is_open:
            return
        if transactional_id in self._busy:
            # how it ends is being written, which may fail
            self._deadlines[transactional_id].set(RETRY_MS)
            return
        logger.info("the transaction of %s took too long and is aborted", transactional_id)
        self._abort_fenced(transaction)

    def _decide(self, decided: Transaction, done: ProducerDone) -> None:
        """Write a decision and carries it out; as long as it is not written the transaction stays open."""
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
        """Write the markers of a decision and behind them that they are written; try again until they are.

        Args:
            refused: gets an error when the decision itself could not be written, and with it nothing behind
                it.
        """
        name = decided.transactional_id
        failed: list[KafkaError] = []

        def ended(error: KafkaError | None) -> None:
            if refused:
                return
            if error is not None:
                logger.error("markers of %s were not written: %s", name, error)
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
            # a marker that fails takes the note behind it along
            if ticket.error is None:
                self._ended(decided.producer_id, partition, commit)

        now_ms = self._clock.now_ms()
        try:
            marker = log.append_marker(*decided.producer, commit=commit, coordinator_epoch=0, now_ms=now_ms)
        except KafkaError as error:
            # a later producer has written here: this one has nothing open
            if error.code is not ErrorCode.INVALID_PRODUCER_EPOCH:
                failed.append(error.with_traceback(None))  # it would hold `failed` in a cycle
            return
        marker.ticket.add_done_callback(durable)

    def _begin(self, begun: Transaction, done: ProducerDone) -> None:
        """Write a new producer, which counts once it is durable; until then the transactional id is busy."""
        name = begun.transactional_id

        def ended(error: KafkaError | None) -> None:
            self._busy.discard(name)
            if error is None:
                self._transactions[name] = begun

        self._busy.add(name)
        self._write(begun, ended, lambda error: done(error or begun.producer))

    def _write(self, after: Transaction, ended: Done, done: Done) -> None:
        """Write a state; memory changes in `ended`, which a time-out does not call."""
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
    """An answer that may come early, by a time-out: only the first is given."""

    def __init__(self, done: ProducerDone) -> None:
        self._done: ProducerDone | None = done

    def __call__(self, result: ProducerState | KafkaError) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(result)

    def failed(self, error: KafkaError | None) -> None:
        """Answers with an error, where there is one."""
        if error is not None:
            self(error)


def _ignore(error: KafkaError | None) -> None:
    """Nobody waits: what could not be written is found again the next time."""
