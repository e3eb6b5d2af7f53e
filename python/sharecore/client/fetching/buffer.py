"""Fetched records waiting for the application."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sharecore._core import Record
from sharecore.client.fetching.batch import Batch, Part
from sharecore.client.fetching.lease import Lease


async def done_by(future: asyncio.Future[None], deadline: float | None) -> bool:
    """Return whether the future was done before `deadline` in loop time (None: never)."""
    if deadline is None:
        await future
        return True
    try:
        async with asyncio.timeout_at(deadline):
            await future
    except TimeoutError:
        return False
    return True


class Fetched:
    """Records of one lease; those before `taken` are with the application."""

    __slots__ = ("lease", "records", "taken")

    def __init__(self, lease: Lease, records: list[Record], taken: int = 0) -> None:
        self.lease, self.records, self.taken = lease, records, taken

    def __len__(self) -> int:
        return len(self.records) - self.taken

    def part(self, count: int) -> Part:
        """Return the positions of the next `count` records."""
        records = self.records
        return Part(self.lease, records[self.taken].position, records[self.taken + count - 1].position + 1)


class Buffer:
    """Keeps fetches in order of arrival; polls wait here."""

    def __init__(self) -> None:
        self.records = 0
        self.waiting_for = 0
        """The most records that a waiting poll asks for; 0 while none waits."""
        self.waiting_until_ms = 0.0
        """When the last of the waiting polls times out."""
        self._fetched: deque[Fetched] = deque()
        self._waiters: dict[asyncio.Future[None], tuple[int, float]] = {}

    def add(self, fetched: Fetched) -> None:
        """Add a fetch, and wake a waiting poll."""
        if len(fetched):
            self._fetched.append(fetched)
            self.records += len(fetched)
            self.wake()

    def put_back(self, fetched: Fetched) -> None:
        """Put records at the front."""
        self._fetched.appendleft(fetched)
        self.records += len(fetched)
        self.wake()

    def wake(self) -> None:
        """Make all waiting polls check again."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    @contextmanager
    def waiting(self, wanted: int, until_ms: float) -> Iterator[asyncio.Future[None]]:
        """Count a poll as waiting until then; the future is done when it should check again."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters[waiter] = (wanted, until_ms)
        self._sum_up()
        try:
            yield waiter
        finally:
            del self._waiters[waiter]
            self._sum_up()

    def _sum_up(self) -> None:
        self.waiting_for = max((wanted for wanted, _ in self._waiters.values()), default=0)
        self.waiting_until_ms = max((until for _, until in self._waiters.values()), default=0.0)

    def take_one(self) -> Record | None:
        """Return the next record; None without one."""
        while self._fetched:
            head = self._fetched[0]
            if head.lease.lost is None:
                record = head.records[head.taken]
                head.taken += 1
                self.records -= 1
                if not len(head):
                    self._fetched.popleft()
                return record
            self._drop_head()
        return None

    def take(self, wanted: int, *, exactly: bool) -> Batch:
        """Return the next records: up to `wanted`, or at least that many in whole fetches."""
        records: list[Record] = []
        parts: list[Part] = []
        while self._fetched and len(records) < wanted:
            head = self._fetched[0]
            if head.lease.lost is not None:
                self._drop_head()
                continue
            count = min(len(head), wanted - len(records)) if exactly else len(head)
            parts.append(head.part(count))
            if count == len(head.records):
                records = records + head.records if records else head.records
            else:
                records = records + head.records[head.taken : head.taken + count]
            head.taken += count
            self.records -= count
            if not len(head):
                self._fetched.popleft()
        return Batch(records, tuple(parts))

    def take_parts(self, wanted: int) -> list[Part]:
        """Return up to `wanted` of the next records, as parts of their leases."""
        parts: list[Part] = []
        while self._fetched and wanted > 0:
            head = self._fetched[0]
            if head.lease.lost is not None:
                self._drop_head()
                continue
            count = min(len(head), wanted)
            parts.append(head.part(count))
            head.taken += count
            self.records -= count
            wanted -= count
            if not len(head):
                self._fetched.popleft()
        return parts

    def drop(self, which: Callable[[Lease], bool]) -> list[Part]:
        """Remove the fetches of leases selected by `which`; return their records."""
        dropped = [fetched for fetched in self._fetched if which(fetched.lease)]
        if dropped:
            self._fetched = deque(fetched for fetched in self._fetched if not which(fetched.lease))
            self.records = sum(map(len, self._fetched))
        return [fetched.part(len(fetched)) for fetched in dropped]

    def parts(self) -> list[Part]:
        """Return the buffered parts."""
        return [fetched.part(len(fetched)) for fetched in self._fetched if fetched.lease.lost is None]

    def _drop_head(self) -> None:
        self.records -= len(self._fetched.popleft())
