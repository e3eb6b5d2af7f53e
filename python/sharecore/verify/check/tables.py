"""State of each record, each log offset, and each share-group offset, in pages."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Generic, NamedTuple, TypeVar

SHIFT = 8
SIZE = 1 << SHIFT
MASK = SIZE - 1
_ZEROS = bytes(8 * SIZE)
Page = TypeVar("Page")


def _zeros(code: str) -> array[int]:
    made = array(code)
    made.frombytes(_ZEROS[: made.itemsize * SIZE])
    return made


def _times() -> array[float]:
    return array("d", _ZEROS)


def _nones(code: str) -> array[int]:
    made = array(code)
    made.frombytes(b"\xff" * (made.itemsize * SIZE))
    return made


class Pages(Generic[Page]):
    """Pages of consecutive numbers, created on demand.

    Args:
        make: creates an empty page.
    """

    def __init__(self, make: Callable[[], Page]) -> None:
        self._make = make
        self._pages: dict[int, Page] = {}

    def at(self, number: int) -> Page:
        """Return the page of a number; raise ValueError for a negative one."""
        page = self._pages.get(number >> SHIFT)
        if page is None:
            if number < 0:
                raise ValueError(f"{number} is negative")
            page = self._pages[number >> SHIFT] = self._make()
        return page

    def get(self, number: int) -> Page | None:
        """Return the page of a number, if it exists."""
        return self._pages.get(number >> SHIFT)

    def __len__(self) -> int:
        return len(self._pages)

    def __iter__(self) -> Iterator[tuple[int, Page]]:
        """Yield the first number of each page with the page, ascending."""
        for key in sorted(self._pages):
            yield key << SHIFT, self._pages[key]


class SentPage:
    """Records by ID: how they were sent, and where they were seen."""

    __slots__ = (
        "client", "committed_end", "committed_line", "confirmed", "end", "failed", "line", "log", "offset",
        "seen_line", "seen_log", "seen_offset", "txn", "unknown",
    )  # fmt: skip

    def __init__(self) -> None:
        self.client = _zeros("I")
        self.confirmed, self.failed, self.unknown = _zeros("B"), _zeros("B"), _zeros("B")
        self.log, self.offset = _nones("i"), _nones("q")
        self.line, self.txn, self.end = _zeros("I"), _zeros("I"), _times()
        self.seen_log, self.seen_offset, self.seen_line = _nones("i"), _nones("q"), _zeros("I")
        self.committed_line, self.committed_end = _zeros("I"), _times()


class LogPage:
    """Offsets of a log: the record seen there, and the line."""

    __slots__ = ("id", "line")

    def __init__(self) -> None:
        self.id, self.line = _nones("q"), _zeros("I")


class Coverage:
    """Offset ranges that were read completely."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._ends: list[int] = []
        self._lines: list[int] = []

    def add(self, first: int, end: int, line: int) -> None:
        """Record that everything from `first` to `end` was read."""
        if first >= end:
            return
        at = bisect_right(self._firsts, first)
        if at and self._ends[at - 1] >= first:
            at -= 1
            if self._ends[at] >= end:
                return
            self._ends[at], self._lines[at] = end, line
        else:
            self._firsts.insert(at, first)
            self._ends.insert(at, end)
            self._lines.insert(at, line)
        while at + 1 < len(self._firsts) and self._firsts[at + 1] <= self._ends[at]:
            self._ends[at] = max(self._ends[at], self._ends[at + 1])
            del self._firsts[at + 1], self._ends[at + 1], self._lines[at + 1]

    def line(self, offset: int) -> int:
        """Return the line that completed this offset's range; 0 if the offset was never read."""
        at = bisect_right(self._firsts, offset) - 1
        return self._lines[at] if at >= 0 and offset < self._ends[at] else 0


class Log:
    """A partition of a topic.

    Attributes:
        covered: offsets read completely, committed or not.
        covered_committed: offsets read completely by readers of committed records.
    """

    def __init__(self, number: int, topic: str, partition: int) -> None:
        self.number, self.name = number, f"{topic}-{partition}"
        self.topic = topic
        self.pages: Pages[LogPage] = Pages(LogPage)
        self.covered, self.covered_committed = Coverage(), Coverage()

    def id_at(self, offset: int) -> int:
        """Return the record seen at an offset, or -1."""
        page = self.pages.get(offset)
        return -1 if page is None else page.id[offset & MASK]

    def seen(self) -> Iterator[tuple[int, int, int]]:
        """Yield offset, ID and line of every record seen, in offset order."""
        for base, page in self.pages:
            lines = page.line
            for at, ident in enumerate(page.id):
                if ident >= 0:
                    yield base + at, ident, lines[at]


class SharePage:
    """Offsets of a share partition: the latest delivery, and the record's acknowledgement.

    `count`, `client`, `start`, `end`, `until` and `line` describe the latest delivery: it was acquired
    between `start` and `end`, and its lock lasts at least until `until`. `settled_*` describe the first
    confirmed accept or reject; `perhaps` is the line of one with an unknown outcome. `floor` is the highest
    count made durable by a confirmed release. `events` counts events so far that may have lost deliveries.
    """

    __slots__ = (
        "client", "count", "end", "events", "floor", "floor_line", "line", "perhaps", "settled_end",
        "settled_line", "start", "until",
    )  # fmt: skip

    def __init__(self) -> None:
        self.count, self.client, self.line = _zeros("I"), _zeros("I"), _zeros("I")
        self.start, self.end, self.until = _times(), _times(), _times()
        self.settled_line, self.settled_end, self.perhaps = _zeros("I"), _times(), _zeros("I")
        self.floor, self.floor_line, self.events = _zeros("I"), _zeros("I"), _zeros("I")


class Share:
    """A share partition: a group's view of a log.

    Attributes:
        passed: offsets passed by the start offset without an acknowledgement, each with its line.
        origin: the first known start offset.
    """

    def __init__(self, group: Group, log: Log) -> None:
        self.group, self.log = group, log
        self.name = f"{group.name}, {log.name}"
        self.pages: Pages[SharePage] = Pages(SharePage)
        self.start_offset, self.start_line = -1, 0
        self.origin = 0 if group.from_earliest else -1
        self.passed, self.passed_line = array("q"), array("I")

    def is_done(self, page: SharePage, at: int) -> bool:
        """Return whether a record certainly or possibly was acknowledged or used up its deliveries."""
        if page.settled_line[at] or page.perhaps[at]:
            return True
        # unseen deliveries count too: each needs a closed session, or a fault
        unseen = self.group.events - page.events[at]
        return bool(self.group.limit and page.count[at] + unseen >= self.group.limit)


class Group:
    """A share group, as in the header.

    Args:
        limit: the delivery limit; 0 if unknown.
        committed: whether the group reads only committed records.
        from_earliest: whether the group began with the oldest record.
    """

    def __init__(self, name: str, limit: int, committed: bool, from_earliest: bool) -> None:
        self.name, self.limit, self.committed, self.from_earliest = name, limit, committed, from_earliest
        self.events = 0


class Take(NamedTuple):
    """A line about records acquired by a share-group member."""

    line: int
    client: int
    start: float
    end: float
    until: float


class Settle(NamedTuple):
    """A line about an acknowledgement."""

    line: int
    client: int
    start: float
    end: float
    kind: str
    outcome: str
