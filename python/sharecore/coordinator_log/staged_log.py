"""A partition of a coordinator's topic, as the coordinator writes it."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sharecore.coordinator_log.topic_log import Producer, Record, TopicLog
from sharecore.errors import ErrorCode, KafkaError
from sharecore.waiting import Done, Gather, Spans, Timer, Timers, lingers, settle

logger = logging.getLogger(__name__)

WRITE_TIMEOUT_MS = 5_000
ATTEMPTS_MAX = 5
_BACKOFF_S, _BACKOFF_MAX_S = 0.1, 1.0
_PASSING = {ErrorCode.KAFKA_STORAGE_ERROR}
"""What may be over at the next attempt: a disk that was full."""


BATCH_BYTES = 512 * 1024
"""About how large a batch becomes."""


@dataclass(slots=True, eq=False)
class _Batch:
    """Records that go out together, and who waits for them."""

    producer: Producer | None = None
    records: list[Record] = field(default_factory=list)
    waiting: list[Done] = field(default_factory=list)
    placed: list[tuple[int, Callable[[int], None]]] = field(default_factory=list)
    now_ms: int = 0
    began_ms: int = 0
    attempts: int = 0
    due_ms: int = 0
    """When whoever waits is answered at the latest."""
    answered: bool = False
    open: int = 0
    """Appends of it whose end is not known."""
    error: KafkaError | None = None


class StagedLog:
    """Joins the records of one turn of the event loop into one batch.

    So writes of many groups and share partitions share an append, and nobody waits for a clock.

    A write that fails is tried again, `attempts_max` times in all with a back-off that doubles; what is
    staged meanwhile waits behind it, so that the order stays. A coordinator changes its memory as it stages:
    when a write is given up, what is in memory is ahead of the log, and `stale` says so until the coordinator
    has read the log again.

    Args:
        log: the partition.
        timers: ends the turn, and waits before another attempt.
        write_timeout_ms: after this long a write is answered with REQUEST_TIMED_OUT; whether it still
            becomes durable is then open, as with any time-out.
        attempts_max: how often a write is tried in all.
        monotonic_ms: the clock of time-outs, and of `writes`.
        sent: called when what was staged has been handed to the log.
        writes: each batch is added there, with how many waited for it, once it has ended.
    """

    def __init__(
        self,
        log: TopicLog,
        timers: Timers,
        write_timeout_ms: int = WRITE_TIMEOUT_MS,
        *,
        attempts_max: int = ATTEMPTS_MAX,
        monotonic_ms: Callable[[], int],
        sent: Callable[[], None] = lambda: None,
        writes: Spans | None = None,
    ) -> None:
        self.log = log
        self.stale = True
        self._timers = timers
        self._timeout_ms = write_timeout_ms
        self._unanswered: deque[_Batch] = deque()
        self._deadline: Timer | None = None
        self._attempts_max = attempts_max
        self._tell_sent = sent
        self._monotonic_ms = monotonic_ms
        self._writes = writes or Spans()
        self._staged: list[_Batch] = []
        self._sent: set[_Batch] = set()
        self._lost: list[_Batch] = []
        self._resending = False
        self._overtaken = False
        self._error: KafkaError | None = None

    @property
    def name(self) -> str:
        """Topic and partition."""
        return f"{self.log.topic}-{self.log.index}"

    @property
    def under_way(self) -> int:
        """Writes whose end is open."""
        return len(self._sent)

    @property
    def failing(self) -> bool:
        """Whether a write has failed and is to be tried again."""
        return bool(self._lost)

    @property
    def is_settled(self) -> bool:
        """Whether nothing is staged or under way."""
        return not (self._staged or self._sent or self._lost)

    @property
    def ahead(self) -> bool:
        """Whether memory holds what may never be in the log: a write has failed, and is not made good."""
        return self.stale or self.failing

    @property
    def in_transaction(self) -> bool:
        """Whether records of a transaction are under way."""
        return any(batch.producer is not None for batch in self._sent)

    def keys_under_way(self) -> set[bytes]:
        """Keys of the records whose write has not ended."""
        return {key for batch in self._sent for key, _ in batch.records}

    def append(
        self,
        records: Sequence[Record],
        now_ms: int,
        done: Done | None = None,
        *,
        placed: Callable[[int], None] | None = None,
        producer: Producer | None = None,
    ) -> None:
        """Stages records.

        Args:
            now_ms: timestamp of the batch.
            done: called when all of them are durable, or when they are lost.
            placed: called with the offset of the first of them, once it is known; again when a second
                attempt gave them another.
            producer: of the transaction that they are part of.
        """
        staged = self._staged
        if not staged:
            self._timers.call_soon(self.flush)
        if staged and staged[-1].producer == producer:
            batch = staged[-1]
        else:
            batch = _Batch(producer, began_ms=self._monotonic_ms())
            staged.append(batch)
        if placed is not None:
            batch.placed.append((len(batch.records), placed))
        if done is not None:
            batch.waiting.append(done)
        batch.records += records
        batch.now_ms = now_ms

    def when_ended(self, done: Done) -> None:
        """Calls back when what is staged and under way now has ended, at once where there is nothing.

        Args:
            done: called with None when all of it is durable, else with why something is not.
        """
        waited: Gather[int] = Gather()
        for number, batch in enumerate([*self._lost, *self._sent, *self._staged]):
            batch.waiting.append(waited.part(number))
        waited.when_ended(lambda: done(next(iter(waited.failed.values()), None)))

    def flush(self) -> None:
        """Appends what is staged, unless a write before it has failed and is to be tried again."""
        if not self._staged or self._lost:
            return
        for _ in range(len(self._staged)):
            if self._lost or not self._staged:
                break
            batch = self._staged.pop(0)
            if batch.records:
                self._limit(batch)
                self._send(batch)
            else:
                self._settle(batch, None)
        self._tell_sent()

    def _send(self, batch: _Batch) -> None:
        batch.attempts += 1
        self._sent.add(batch)
        pieces = cut(batch.records)
        unhurried = lingers(batch.waiting, self.log)
        batch.open, batch.error = len(pieces), None
        first = 0
        for number, records in enumerate(pieces):
            try:
                appended = self.log.append_local(
                    records, now_ms=batch.now_ms, producer=batch.producer, lingers=unhurried
                )
            except KafkaError as error:
                self._piece_ended(batch, error, len(pieces) - number)
                return
            for index, call in batch.placed:
                if first <= index < first + len(records):
                    call(appended.base_offset + index - first)
            first += len(records)
            appended.ticket.add_done_callback(lambda ticket: self._piece_ended(batch, ticket.error))

    def _piece_ended(self, batch: _Batch, error: KafkaError | None, pieces: int = 1) -> None:
        batch.open -= pieces
        batch.error = batch.error or error
        if not batch.open:
            self._ended(batch, batch.error)

    def _ended(self, batch: _Batch, error: KafkaError | None) -> None:
        self._sent.discard(batch)
        if error is None:
            # one before it was lost: written now, that one would come behind what followed it
            self._overtaken = bool(self._lost)
            self._settle(batch, None)
        else:
            self._lost.append(batch)
            self._error = error
        self._mend()

    def _mend(self) -> None:
        """Once nothing is under way, tries again what was lost, or gives it up."""
        error = self._error
        if error is None or self._sent or self._resending:
            return
        self._error = None
        attempts = self._lost[0].attempts
        if not self._overtaken and attempts < self._attempts_max and error.code in _PASSING:
            delay = min(_BACKOFF_S * 2 ** (attempts - 1), _BACKOFF_MAX_S)
            logger.warning("%s was not written: %s; trying again in %.1f s", self.name, error, delay)
            self._timers.call_later(delay, self._try_again)
            return
        logger.error("%s was not written: %s", self.name, error)
        # what is staged was made on top of what is lost
        lost, self._lost, self._staged = [*self._lost, *self._staged], [], []
        self._overtaken = False
        self.stale = True
        for batch in lost:
            self._settle(batch, error)

    def _try_again(self) -> None:
        lost, self._lost = self._lost, []
        self._resending = True  # until all are sent: none is mended before
        for batch in lost:
            if self._lost:
                self._lost.append(batch)
            else:
                self._send(batch)
        self._resending = False
        self._mend()
        self.flush()

    def _limit(self, batch: _Batch) -> None:
        """Has a batch answered in time. One timer serves all of them: most are answered long before."""
        batch.due_ms = self._monotonic_ms() + self._timeout_ms
        self._unanswered.append(batch)
        if self._deadline is None:
            self._deadline = self._timers.call_later(self._timeout_ms / 1000, self._time_is_over)

    def _time_is_over(self) -> None:
        self._deadline = None
        now_ms = self._monotonic_ms()
        while self._unanswered and self._unanswered[0].due_ms <= now_ms:
            logger.error("%s: a write has taken longer than %.1f s", self.name, self._timeout_ms / 1000)
            self._settle(self._unanswered[0], KafkaError(ErrorCode.REQUEST_TIMED_OUT))
        if self._unanswered:
            delay_ms = self._unanswered[0].due_ms - now_ms
            self._deadline = self._timers.call_later(delay_ms / 1000, self._time_is_over)

    def expire(self) -> None:
        """Answers every write that is under way as if its time were over."""
        while self._unanswered:
            self._settle(self._unanswered[0], KafkaError(ErrorCode.REQUEST_TIMED_OUT))

    def _settle(self, batch: _Batch, error: KafkaError | None) -> None:
        batch.answered = True
        while self._unanswered and self._unanswered[0].answered:
            self._unanswered.popleft()
        waiting, batch.waiting = batch.waiting, []
        if waiting:
            took_ms = self._monotonic_ms() - batch.began_ms
            self._writes.add(took_ms, len(waiting), failed=error is not None)
        settle(waiting, error)


def cut(records: Sequence[Record]) -> list[Sequence[Record]]:
    """Cuts records into batches that a log takes."""
    if len(records) == 1 or sum(map(_size, records)) <= BATCH_BYTES:
        return [records]
    batches = []
    first = size = 0
    for index, record in enumerate(records):
        length = _size(record)
        if size and size + length > BATCH_BYTES:
            batches.append(records[first:index])
            first, size = index, 0
        size += length
    batches.append(records[first:])
    return batches


def _size(record: Record) -> int:
    key, value = record
    return len(key) + len(value or b"")
