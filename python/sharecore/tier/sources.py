"""What the logs of a cluster share: fetches, questions about offsets, and what may be kept."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Protocol

from sharecore.errors import ErrorCode, KafkaError
from sharecore.tier.window import Budget
from sharecore.upstream import EARLIEST, LATEST, Fetched, ListedOffset
from sharecore.waiting import Done, settle

logger = logging.getLogger(__name__)

AHEAD_BYTES = 4 << 20
"""What is read ahead of a partition at most."""

Place = tuple[str, int]


class Sink(Protocol):
    """Who takes what is fetched of a partition."""

    def fetched(self, fetched: Fetched, /) -> None: ...

    def failed(self, error: KafkaError, /) -> None: ...


class Subscription(Protocol):
    """A partition that is fetched on and on (`upstream.Subscription`)."""

    offset: int

    def allow(self, room: int) -> None: ...

    def seek(self, offset: int, room: int) -> None: ...

    def was_read(self, leader_epoch: int) -> None: ...

    def close(self) -> None: ...


class Fetching(Protocol):
    """Who fetches partitions (`upstream.Fetcher`)."""

    def subscribe(self, topic: str, partition: int, offset: int, room: int, sink: Sink) -> Subscription: ...


class Asking(Protocol):
    """Who asks the cluster once (`upstream.Administration`)."""

    async def list_offsets(
        self, wanted: Mapping[Place, int], *, committed: bool = False
    ) -> dict[Place, ListedOffset | KafkaError]: ...

    async def read(
        self, topic: str, partition: int, offset: int, max_bytes: int, *, committed: bool = False
    ) -> Fetched: ...


class Limits(Protocol):
    """Who is told where a log begins and ends."""

    topic: str
    index: int
    committed: bool

    def told(self, start: int, end: int) -> None: ...


class Sources:
    """One cluster, as logs read it.

    Args:
        asking: asks it once.
        fetching: fetches on and on; by whether only what is committed is read.
        send: appends a record batch to a partition; raises KafkaError.
        budget: what all logs keep together.
        ahead_bytes: what is read ahead of a partition.
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
        """Hold on to a task until it has ended."""
        self._tasks.add(work)
        work.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """End what is under way."""
        for task in self._tasks:
            task.cancel()

    def find_limits(self, log: Limits, done: Done) -> None:
        """Asks where a log begins and ends; questions of one turn of the event loop go out together."""
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
                log.told(start.offset, end.offset)
            settle(waiting, None if failed is None else passing(failed))


def passing(error: KafkaError) -> KafkaError:
    """Return what clients are told of trouble with the cluster: to try again."""
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, error.message or error.code.name)
