"""A partition of an internal topic, as a coordinator writes it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from sharecore.coordinator.record_log import Done, Record, settle
from sharecore.errors import KafkaError

if TYPE_CHECKING:
    from sharecore.storage import Log, Ticket

logger = logging.getLogger(__name__)

CallSoon = Callable[[Callable[[], None]], object]
"""Runs a callback once the present turn of the event loop is over; `asyncio.AbstractEventLoop.call_soon`."""


class StagedLog:
    """Joins the records of one turn of the event loop into one batch.

    So writes of many groups and share partitions share an append, and nobody waits for a clock. A
    coordinator changes its
    memory as it stages: when an append fails, what is in memory is ahead of the log, and `stale` says so
        until the
    coordinator has read the log again.

    Args:
        log: the partition.
    """

    def __init__(self, log: Log, call_soon: CallSoon) -> None:
        self.log = log
        self.stale = True
        self.under_way = 0
        self._call_soon = call_soon
        self._records: list[Record] = []
        self._waiting: list[Done] = []
        self._placed: list[tuple[int, Callable[[int], None]]] = []
        self._now_ms = 0

    @property
    def name(self) -> str:
        """Topic and partition."""
        return f"{self.log.topic}-{self.log.index}"

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
            placed: called with the offset of the first of them, once it is known.
        """
        if not self._records:
            self._call_soon(self.flush)
        if placed is not None:
            self._placed.append((len(self._records), placed))
        if done is not None:
            self._waiting.append(done)
        self._records += records
        self._now_ms = now_ms

    def flush(self) -> None:
        """Appends what is staged."""
        if not self._records:
            return
        records, self._records = self._records, []
        waiting, self._waiting = self._waiting, []
        placed, self._placed = self._placed, []
        try:
            appended = self.log.append_local(records, now_ms=self._now_ms)
        except KafkaError as error:
            self._failed(waiting, error)
            return
        for index, call in placed:
            call(appended.base_offset + index)
        self.under_way += 1
        appended.ticket.add_done_callback(lambda ticket: self._durable(ticket, waiting))

    def _durable(self, ticket: Ticket, waiting: list[Done]) -> None:
        self.under_way -= 1
        error = ticket.error
        if error is not None:
            self._failed(waiting, error)
            return
        settle(waiting, None)

    def _failed(self, waiting: list[Done], error: KafkaError) -> None:
        logger.error("%s was not written: %s", self.name, error)
        self.stale = True
        # what is staged was made on top of what is lost
        staged, self._waiting = self._waiting, []
        self._records.clear()
        self._placed.clear()
        settle((*waiting, *staged), error)
