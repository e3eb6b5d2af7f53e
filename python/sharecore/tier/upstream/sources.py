"""Shared resources of upstream logs: fetches, offset lookups, and cache memory."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Protocol

from sharecore.errors import ErrorCode, KafkaError
from sharecore.tier.upstream.window import Budget
from sharecore.upstream import EARLIEST, LATEST, Fetched, ListedOffset
from sharecore.waiting import Done, settle

logger = logging.getLogger("sharecore.tier")

AHEAD_BYTES = 4 << 20
"""Maximum read-ahead of a partition."""

Place = tuple[str, int]


class Sink(Protocol):
    """Receiver of a partition's fetched records."""

    def fetched(self, fetched: Fetched, /) -> None:
        """Take fetched records, in offset order."""

    def failed(self, error: KafkaError, /) -> None:
        """Note that the partition cannot be fetched; the subscription is closed."""


class Subscription(Protocol):
    """A continuously fetched partition (`upstream.Subscription`)."""

    offset: int

    def allow(self, room: int) -> None:
        """Set the sink's capacity in bytes; 0 pauses."""

    def seek(self, offset: int, room: int) -> None:
        """Continue at another offset; drop the pending fetch and clear an error."""

    def was_read(self, leader_epoch: int) -> None:
        """Set the leader epoch of records that the caller has read itself, before the first fetch."""

    def close(self) -> None:
        """Fetch the partition no more."""


class Fetching(Protocol):
    """Continuous fetches (`upstream.Fetcher`)."""

    def subscribe(self, topic: str, partition: int, offset: int, room: int, sink: Sink) -> Subscription:
        """Fetch a partition from an offset on, while its sink has room (bytes)."""


class Asking(Protocol):
    """Single requests to the cluster (`upstream.Administration`)."""

    async def list_offsets(
        self, wanted: Mapping[Place, int], *, committed: bool = False
    ) -> dict[Place, ListedOffset | KafkaError]:
        """Return the offset for a timestamp or a position of each partition, or an error."""

    async def read(
        self, topic: str, partition: int, offset: int, max_bytes: int, *, committed: bool = False
    ) -> Fetched:
        """Return up to `max_bytes` of records from an offset on; raise KafkaError on failure."""


class Limits(Protocol):
    """Receiver of a log's start and end offset."""

    topic: str
    index: int
    committed: bool

    def set_limits(self, start: int, end: int) -> None: ...


class Sources:
    """One cluster, as used by logs.

    Args:
        asking: single requests.
        fetching: continuous fetches, by whether they are read-committed.
        send: appends a record batch to a partition; raises KafkaError.
        budget: cache memory of all logs.
        ahead_bytes: read-ahead of a partition.
    """

    def __init__(
        self,
        asking: Asking,
        fetching: Callable[[bool], Fetching],
        send: Callable[[str, int, bytes], asyncio.Future[int]],
        budget: Budget,
        *,
        ahead_bytes: int = AHEAD_BYTES,
    ) -> None:
        self.asking = asking
        self.fetching = fetching
        self.send = send
        self.budget = budget
        self.ahead_bytes = ahead_bytes
        self._wanted: dict[Limits, list[Done]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def run(self, work: asyncio.Task[None]) -> None:
        """Hold a reference to a task until it has ended."""
        self._tasks.add(work)
        work.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Cancel pending requests."""
        for task in self._tasks:
            task.cancel()

    def find_limits(self, log: Limits, done: Done) -> None:
        """Look up the offsets of a log; lookups of one event-loop turn share a request."""
        if not self._wanted:
            asyncio.get_running_loop().call_soon(self._ask)
        self._wanted.setdefault(log, []).append(done)

    def _ask(self) -> None:
        wanted, self._wanted = self._wanted, {}
        for committed in (False, True):
            logs = {log: done for log, done in wanted.items() if log.committed is committed}
            if logs:
                self.run(asyncio.get_running_loop().create_task(self._find(logs, committed)))

    async def _find(self, logs: Mapping[Limits, list[Done]], committed: bool) -> None:
        places = [(log.topic, log.index) for log in logs]
        try:
            starts = await self.asking.list_offsets(dict.fromkeys(places, EARLIEST))
            ends = await self.asking.list_offsets(dict.fromkeys(places, LATEST), committed=committed)
        except KafkaError as error:
            starts = ends = dict.fromkeys(places, error)
        for log, waiting in logs.items():
            place = log.topic, log.index
            start, end = starts[place], ends[place]
            failed = next((each for each in (start, end) if isinstance(each, KafkaError)), None)
            if not isinstance(start, KafkaError) and not isinstance(end, KafkaError):
                log.set_limits(start.offset, end.offset)
            settle(waiting, None if failed is None else passing(failed))


def passing(error: KafkaError) -> KafkaError:
    """Return the clients' error for upstream trouble: retriable."""
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, error.message or error.code.name)
