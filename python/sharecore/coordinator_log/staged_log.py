"""Writes of a coordinator to one partition of its topic."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sharecore._core import Staging
from sharecore.errors import ErrorCode, KafkaError
from sharecore.waiting import Done, Gather, Spans, Timers

if TYPE_CHECKING:
    from sharecore.coordinator_log.topic_log import Record, TopicLog

logger = logging.getLogger(__name__)

WRITE_TIMEOUT_MS = 5_000
ATTEMPTS_MAX = 5
_BACKOFF_S, _BACKOFF_MAX_S = 0.1, 1.0
_PASSING = {ErrorCode.KAFKA_STORAGE_ERROR}
"""Transient errors, such as a full disk: the next attempt may succeed."""


BATCH_BYTES = 512 * 1024
"""Approximate maximum batch size."""


def cut(records: Sequence[Record]) -> list[Sequence[Record]]:
    """Split records into batches that fit into a log."""
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


class StagedLog(Staging):
    """Join the records of one event-loop turn into one batch; `_core.Staging` implements and sends it.

    Writes of many groups and share partitions thus share an append, without waiting for a timer.

    A failed write is retried with exponential back-off, `attempts_max` attempts in all. Later writes wait
    behind it, so that the order is kept. A coordinator changes its memory as it stages. When a write is
    abandoned, memory is ahead of the log: `stale` is set, and `gave_up` makes the coordinator replay the log
    before any caller receives the failure.

    Records of a transaction are never retried: its marker does not wait for them, and behind the marker they
    would open a transaction without an end.

    Args:
        log: the partition.
        timers: ends the turn and schedules retries.
        write_timeout_ms: after this time a write is answered with REQUEST_TIMED_OUT; it may still become
            durable, as with any timeout.
        attempts_max: total attempts for a write.
        monotonic_ms: the clock for timeouts and `writes`.
        sent: called when the staged records are handed to the log.
        gave_up: called when writes are abandoned, before their callers receive the failure.
        writes: collects completed batches, each with its number of waiting callers.
    """

    _cut = staticmethod(cut)

    def __init__(
        self,
        log: TopicLog,
        timers: Timers,
        write_timeout_ms: int,
        *,
        attempts_max: int,
        monotonic_ms: Callable[[], int],
        sent: Callable[[], None],
        writes: Spans,
        gave_up: Callable[[], None] = lambda: None,
    ) -> None:
        self._timers = timers
        self._timeout_ms = write_timeout_ms
        self._attempts_max = attempts_max
        self._monotonic_ms = monotonic_ms
        self._gave_up = gave_up

    @property
    def name(self) -> str:
        """Topic and partition."""
        return f"{self.log.topic}-{self.log.index}"

    @property
    def under_way(self) -> int:
        """Number of pending writes."""
        return len(self._sent)

    @property
    def failing(self) -> bool:
        """Whether a write has failed and will be retried."""
        return bool(self._lost)

    @property
    def has_staged(self) -> bool:
        """Whether records have not been handed to the log: new ones, or those behind a failed write."""
        return bool(self._staged or self._lost)

    @property
    def is_settled(self) -> bool:
        """Whether nothing is staged or pending."""
        return not (self._staged or self._sent or self._lost)

    @property
    def ahead(self) -> bool:
        """Whether memory may be ahead of the log: a write has failed and was not repaired."""
        return self.stale or self.failing

    def keys_under_way(self, *, in_transactions: bool) -> set[bytes]:
        """Return keys of pending records, either of transactions or of all other writes."""
        return {
            key
            for batch in self._sent
            if (batch.producer is not None) is in_transactions
            for key, _ in batch.records
        }

    def when_ended(self, done: Done) -> None:
        """Call back once all writes staged and pending now have ended; immediately if there are none.

        Args:
            done: called with None when all are durable, else with an error.
        """
        waited: Gather[int] = Gather()
        for number, batch in enumerate([*self._lost, *self._sent, *self._staged]):
            batch.wait(waited.part(number))
        waited.when_ended(lambda: done(next(iter(waited.failed.values()), None)))

    def expire(self) -> None:
        """Time out every pending write."""
        while (batch := self._oldest) is not None:
            self._settle(batch, KafkaError(ErrorCode.REQUEST_TIMED_OUT))

    def _mend(self, error: KafkaError, attempts: int, overtaken: bool) -> None:
        """Retry or abandon failed writes once no write is pending.

        Args:
            overtaken: whether a later write became durable first.
        """
        for batch in self._abandon_transactions():
            self._end(batch, error)
        if not self._lost:
            self.flush()
        elif not overtaken and attempts < self._attempts_max and error.code in _PASSING:
            delay = min(_BACKOFF_S * 2 ** (attempts - 1), _BACKOFF_MAX_S)
            logger.warning("cannot write %s: %s; retrying in %.1f s", self.name, error, delay)
            self._timers.call_later(delay, self._try_again)
        else:
            logger.error("abandoned a write to %s: %s", self.name, error)
            if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                # the coordinator topic is being recreated; the error is not about the topics of the request
                error = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message)
            given_up = self._abandon()
            self._gave_up()
            for batch in given_up:
                self._end(batch, error)

    def _time_is_over(self) -> None:
        now_ms = self._monotonic_ms()
        while (batch := self._overdue(now_ms)) is not None:
            logger.error("%s: a write timed out after %.1f s", self.name, self._timeout_ms / 1000)
            self._settle(batch, KafkaError(ErrorCode.REQUEST_TIMED_OUT))
        self._arm(now_ms)
