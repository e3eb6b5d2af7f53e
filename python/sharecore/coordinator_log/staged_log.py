"""A partition of a coordinator's topic, as the coordinator writes it."""

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
"""What may be over at the next attempt: a disk that was full."""


BATCH_BYTES = 512 * 1024
"""About how large a batch becomes."""


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


class StagedLog(Staging):
    """Joins the records of one turn of the event loop into one batch; `_core.Staging` does, and sends it.

    So writes of many groups and share partitions share an append, and nobody waits for a clock.

    A write that fails is tried again, `attempts_max` times in all with a back-off that doubles; what is
    staged meanwhile waits behind it, so that the order stays. A coordinator changes its memory as it stages:
    when a write is given up, memory is ahead of the log. `stale` is then set, and `gave_up` is called so that
    the coordinator reads the log again before anybody learns of the failure.

    Records of a transaction are never tried again: its marker does not wait for them, and behind the marker
    they would open a transaction that nobody ends.

    Args:
        log: the partition.
        timers: ends the turn, and waits before another attempt.
        write_timeout_ms: after this long a write is answered with REQUEST_TIMED_OUT; whether it still
            becomes durable is then open, as with any time-out.
        attempts_max: how often a write is tried in all.
        monotonic_ms: the clock of time-outs, and of `writes`.
        sent: called when what was staged has been handed to the log.
        gave_up: called when writes are given up, before those who wait for them are told.
        writes: each batch is added there, with how many waited for it, once it has ended.
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
        """Writes whose end is open."""
        return len(self._sent)

    @property
    def failing(self) -> bool:
        """Whether a write has failed and is to be tried again."""
        return bool(self._lost)

    @property
    def has_staged(self) -> bool:
        """Whether something was not handed to the log: it has just come, or waits behind what failed."""
        return bool(self._staged or self._lost)

    @property
    def is_settled(self) -> bool:
        """Whether nothing is staged or under way."""
        return not (self._staged or self._sent or self._lost)

    @property
    def ahead(self) -> bool:
        """Whether memory holds what may never be in the log: a write has failed, and is not made good."""
        return self.stale or self.failing

    def keys_under_way(self, *, in_transactions: bool) -> set[bytes]:
        """Keys of the records whose write has not ended, those of transactions or the others."""
        return {
            key
            for batch in self._sent
            if (batch.producer is not None) is in_transactions
            for key, _ in batch.records
        }

    def when_ended(self, done: Done) -> None:
        """Call back when what is staged and under way now has ended, at once where there is nothing.

        Args:
            done: called with None when all of it is durable, else with why something is not.
        """
        waited: Gather[int] = Gather()
        for number, batch in enumerate([*self._lost, *self._sent, *self._staged]):
            batch.wait(waited.part(number))
        waited.when_ended(lambda: done(next(iter(waited.failed.values()), None)))

    def expire(self) -> None:
        """Answers every write that is under way as if its time were over."""
        while (batch := self._oldest) is not None:
            self._settle(batch, KafkaError(ErrorCode.REQUEST_TIMED_OUT))

    def _mend(self, error: KafkaError, attempts: int, overtaken: bool) -> None:
        """Nothing is under way, and something is lost, at its last attempt or not: tries again, or gives up.

        Args:
            overtaken: another write has become durable before it.
        """
        for batch in self._abandon_transactions():
            self._end(batch, error)
        if not self._lost:
            self.flush()
        elif not overtaken and attempts < self._attempts_max and error.code in _PASSING:
            delay = min(_BACKOFF_S * 2 ** (attempts - 1), _BACKOFF_MAX_S)
            logger.warning("%s was not written: %s; trying again in %.1f s", self.name, error, delay)
            self._timers.call_later(delay, self._try_again)
        else:
            logger.error("%s was not written: %s", self.name, error)
            if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                # the coordinator's topic is being made again, which is not about the topics of the request
                error = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message)
            given_up = self._abandon()
            self._gave_up()
            for batch in given_up:
                self._end(batch, error)

    def _time_is_over(self) -> None:
        now_ms = self._monotonic_ms()
        while (batch := self._overdue(now_ms)) is not None:
            logger.error("%s: a write has taken longer than %.1f s", self.name, self._timeout_ms / 1000)
            self._settle(batch, KafkaError(ErrorCode.REQUEST_TIMED_OUT))
        self._arm(now_ms)
