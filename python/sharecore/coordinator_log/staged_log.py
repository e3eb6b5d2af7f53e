"""A partition of an internal topic, as a coordinator writes it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sharecore.coordinator_log.record_log import Done, Record, settle
from sharecore.coordinator_log.timers import TimerHandle, Timers
from sharecore.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from sharecore.storage import Log, Ticket

logger = logging.getLogger(__name__)

WRITE_TIMEOUT_MS = 5_000
_ATTEMPTS_MAX = 5
_BACKOFF_S, _BACKOFF_MAX_S = 0.1, 1.0
_PASSING = {ErrorCode.KAFKA_STORAGE_ERROR}
"""What may be over at the next attempt: a disk that was full."""


@dataclass(slots=True)
class _Batch:
    """Records that go out together, and who waits for them."""

    records: list[Record] = field(default_factory=list)
    waiting: list[Done] = field(default_factory=list)
    placed: list[tuple[int, Callable[[int], None]]] = field(default_factory=list)
    now_ms: int = 0
    attempts: int = 0
    deadline: TimerHandle | None = None


class StagedLog:
    """Joins the records of one turn of the event loop into one batch.

    So writes of many groups and share partitions share an append, and nobody waits for a clock.

    A write that fails is tried again, `_ATTEMPTS_MAX` times in all with a back-off that doubles; what is
    staged meanwhile waits behind it, so that the order stays. A coordinator changes its memory as it stages:
    when a write is given up, what is in memory is ahead of the log, and `stale` says so until the coordinator
    has read the log again.

    Args:
        log: the partition.
        timers: ends the turn, and waits before another attempt.
        write_timeout_ms: after this long a write is answered with REQUEST_TIMED_OUT; whether it still
            becomes durable is then open, as with any time-out.
    """

    def __init__(self, log: Log, timers: Timers, write_timeout_ms: int = WRITE_TIMEOUT_MS) -> None:
        self.log = log
        self.stale = True
        self.under_way = 0
        self._timers = timers
        self._timeout_s = write_timeout_ms / 1000
        self._next = _Batch()
        self._lost: list[_Batch] = []
        self._overtaken = False
        self._error: KafkaError | None = None

    @property
    def name(self) -> str:
        """Topic and partition."""
        return f"{self.log.topic}-{self.log.index}"

    @property
    def ahead(self) -> bool:
        """Whether memory holds what may never be in the log: a write has failed, and is not made good."""
        return self.stale or bool(self._lost)

    def append(
        self,
        records: list[Record],
        now_ms: int,
        done: Done | None = None,
        *,
        placed: Callable[[int], None] | None = None,
    ) -> None:
        """Stages records.

        Args:
            now_ms: timestamp of the batch.
            done: called when all of them are durable, or when they are lost.
            placed: called with the offset of the first of them, once it is known; again when a second
                attempt gave them another.
        """
        staged = self._next
        if not staged.records:
            self._timers.call_soon(self.flush)
        if placed is not None:
            staged.placed.append((len(staged.records), placed))
        if done is not None:
            staged.waiting.append(done)
        staged.records += records
        staged.now_ms = now_ms

    def flush(self) -> None:
        """Appends what is staged, unless a write before it has failed and is to be tried again."""
        if not self._next.records or self._lost:
            return
        batch, self._next = self._next, _Batch()
        batch.deadline = self._timers.call_later(self._timeout_s, lambda: self._timed_out(batch))
        self._send(batch)

    def _send(self, batch: _Batch) -> None:
        batch.attempts += 1
        self.under_way += 1
        try:
            appended = self.log.append_local(batch.records, now_ms=batch.now_ms)
        except KafkaError as error:
            self._ended(batch, error)
            return
        for index, call in batch.placed:
            call(appended.base_offset + index)
        appended.ticket.add_done_callback(lambda ticket: self._durable(ticket, batch))

    def _durable(self, ticket: Ticket, batch: _Batch) -> None:
        self._ended(batch, ticket.error)

    def _ended(self, batch: _Batch, error: KafkaError | None) -> None:
        self.under_way -= 1
        if error is None:
            # one before it was lost: written now, that one would come behind what followed it
            self._overtaken = bool(self._lost)
            self._settle(batch, None)
        else:
            self._lost.append(batch)
            self._error = error
        self._mend()

    def _mend(self) -> None:
        """When nothing is under way any more, has what was lost tried again, or gives it up."""
        error = self._error
        if error is None or self.under_way:
            return
        self._error = None
        attempts = self._lost[0].attempts
        if not self._overtaken and attempts < _ATTEMPTS_MAX and error.code in _PASSING:
            delay = min(_BACKOFF_S * 2 ** (attempts - 1), _BACKOFF_MAX_S)
            logger.warning("%s was not written: %s; trying again in %.1f s", self.name, error, delay)
            self._timers.call_later(delay, self._try_again)
            return
        logger.error("%s was not written: %s", self.name, error)
        # what is staged was made on top of what is lost
        lost, self._lost, self._next = [*self._lost, self._next], [], _Batch()
        self._overtaken = False
        self.stale = True
        for batch in lost:
            self._settle(batch, error)

    def _try_again(self) -> None:
        lost, self._lost = self._lost, []
        self.under_way += 1  # until all are sent: none is mended before
        for batch in lost:
            if self._lost:
                self._lost.append(batch)
            else:
                self._send(batch)
        self.under_way -= 1
        self._mend()
        self.flush()

    def _timed_out(self, batch: _Batch) -> None:
        logger.error("%s: a write has taken longer than %.1f s", self.name, self._timeout_s)
        self._settle(batch, KafkaError(ErrorCode.REQUEST_TIMED_OUT))

    def _settle(self, batch: _Batch, error: KafkaError | None) -> None:
        if batch.deadline is not None:
            batch.deadline.cancel()
        waiting, batch.waiting = batch.waiting, []
        settle(waiting, error)
