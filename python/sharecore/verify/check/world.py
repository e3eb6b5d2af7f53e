"""Reads the lines of a history into tables, and passes each event to the checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from sharecore.verify.check.breach import Breaches
from sharecore.verify.check.tables import MASK, Group, Log, Pages, SentPage, Settle, Share, SharePage, Take
from sharecore.verify.history import GroupOf, Op

READ_COMMITTED = "read_committed"
TERMINAL = ("accept", "reject")
KINDS = (*TERMINAL, "release", "renew")


class Check(Protocol):
    """A check of one guarantee. It defines only the methods it needs, and `finish`."""

    def finish(self) -> None:
        """Report what is known only at the end."""


class Faults:
    """Times with a fault, or possibly one."""

    def __init__(self) -> None:
        self._spans: list[tuple[float, float]] = []

    def add(self, start: float, end: float) -> None:
        """Record a fault."""
        self._spans.append((start, end))

    def touch(self, start: float, end: float) -> bool:
        """Return whether a fault overlaps a time."""
        return any(first <= end and start <= last for first, last in self._spans)


class World:
    """The state of the history so far.

    Attributes:
        lost_at: by client and group, when it last learned that it had lost its leases, or left.
        elsewhere: by ID, further places where a record was seen: (log number, offset, line).
    """

    def __init__(self, breaches: Breaches) -> None:
        self.breaches = breaches
        self.sent: Pages[SentPage] = Pages(SentPage)
        self.logs: list[Log] = []
        self._logs: dict[tuple[str, int], Log] = {}
        self.shares: dict[tuple[str, str, int], Share] = {}
        self._groups: dict[str, Group] = {}
        self._described: dict[str, GroupOf] = {}
        self.clients: dict[str, int] = {}
        self.client_names: list[str] = []
        self.faults = Faults()
        self.lost_at: dict[tuple[int, str], float] = {}
        self.elsewhere: dict[int, list[tuple[int, int, int]]] = {}
        self.records = 0
        self._on_delivery: list[Callable[[Share, SharePage, int, int, int, Take], None]] = []
        self._on_settled: list[Callable[[Share, SharePage, int, int, Settle], None]] = []
        self._others: dict[str, list[Callable[[int, Op], None]]] = {}
        self._own = {
            "history": self._header,
            "send": self._send,
            "read": self._read,
            "take": self._take,
            "settle": self._settle,
            "lost": self._lost,
            "leave": self._lost,
            "fault": self._fault,
        }

    def attach(self, checks: Iterable[object]) -> None:
        """Register checks for events: `delivered`, `settled`, and their `handlers` by operation."""
        for each in checks:
            for name, handler in getattr(each, "handlers", {}).items():
                self._others.setdefault(name, []).append(handler)
            if hasattr(each, "delivered"):
                self._on_delivery.append(each.delivered)
            if hasattr(each, "settled"):
                self._on_settled.append(each.settled)

    def process(self, line: int, op: Op) -> None:
        """Process a line."""
        name = op["op"]
        own = self._own.get(name)
        if own is not None:
            own(line, op)
        for other in self._others.get(name, ()):
            other(line, op)

    def pages_made(self) -> int:
        """Return the number of pages of all tables."""
        shares = sum(len(share.pages) for share in self.shares.values())
        return len(self.sent) + shares + sum(len(log.pages) for log in self.logs)

    # names

    def client(self, name: str) -> int:
        """Return the number of a client, from 1."""
        number = self.clients.get(name)
        if number is None:
            self.client_names.append(name)
            number = self.clients[name] = len(self.client_names)
        return number

    def log(self, op: Op) -> Log:
        """Return the log of a line."""
        key = (op["topic"], op["partition"])
        log = self._logs.get(key)
        if log is None:
            log = self._logs[key] = Log(len(self.logs), *key)
            self.logs.append(log)
        return log

    def share(self, op: Op) -> Share:
        """Return the share partition of a line."""
        key = (op["group"], op["topic"], op["partition"])
        share = self.shares.get(key)
        if share is None:
            share = self.shares[key] = Share(self.group(op["group"]), self.log(op))
        return share

    def group(self, name: str) -> Group:
        """Return a share group; `NAME#2` is the second incarnation of the group NAME."""
        group = self._groups.get(name)
        if group is None:
            described = self._described.get(name, self._described.get(name.partition("#")[0], {}))
            group = self._groups[name] = Group(
                name,
                int(described.get("delivery_limit", 0)),
                described.get("isolation") == READ_COMMITTED,
                described.get("from") == "earliest",
            )
        return group

    # lines

    def _header(self, line: int, op: Op) -> None:
        self._described.update(op.get("groups", {}))

    def _send(self, line: int, op: Op) -> None:
        self.records += 1
        ident = op["id"]
        page, at = self.sent.at(ident), ident & MASK
        outcome = op["outcome"]
        if outcome == "ok":
            page.confirmed[at] += 1
            page.offset[at] = op.get("offset", -1)
        elif outcome == "failed":
            page.failed[at] += 1
        elif outcome == "unknown":
            page.unknown[at] += 1
        else:
            raise ValueError(f"outcome {outcome!r}")
        page.log[at] = self.log(op).number
        page.client[at] = self.client(op["client"])
        page.line[at], page.end[at] = line, op["end"]

    def _read(self, line: int, op: Op) -> None:
        if op["outcome"] != "ok":
            return
        log = self.log(op)
        committed = op["isolation"] == READ_COMMITTED
        for offset, ident in op["records"]:
            self._see(log, offset, ident, line, committed, op["end"])
        first, end = op["from"], op["next"]
        (log.covered_committed if committed else log.covered).add(first, end, line)

    def _see(self, log: Log, offset: int, ident: int, line: int, committed: bool, end: float) -> None:
        """Record that a record is at an offset."""
        self.records += 1
        page, at = log.pages.at(offset), offset & MASK
        before = page.id[at]
        if before < 0:
            page.id[at], page.line[at] = ident, line
        elif before != ident:
            text = f"{log.name}, offset {offset}: record {before} was read there, and later record {ident}"
            self.breaches.add("changed", text, (page.line[at], line), end)
        if ident < 0:
            self.breaches.add("foreign", f"{log.name}, offset {offset}: nobody sent this", (line,), end)
            return
        record, at = self.sent.at(ident), ident & MASK
        if record.seen_log[at] < 0:
            record.seen_log[at], record.seen_offset[at] = log.number, offset
            record.seen_line[at] = line
        elif record.seen_offset[at] != offset or record.seen_log[at] != log.number:
            places = self.elsewhere.setdefault(ident, [])
            if all(place[:2] != (log.number, offset) for place in places):
                places.append((log.number, offset, line))
        if committed and not record.committed_line[at]:
            record.committed_line[at], record.committed_end[at] = line, end

    def _take(self, line: int, op: Op) -> None:
        records = op["records"]
        if not records:
            return
        share = self.share(op)
        log, group = share.log, share.group
        start, end = op["start"], op["end"]
        lock = op["lock_ms"]
        take = Take(line, self.client(op["client"]), start, end, start + lock)
        checks = self._on_delivery
        for offset, ident, count in records:
            self._see(log, offset, ident, line, group.committed, end)
            page, at = share.pages.at(offset), offset & MASK
            for check in checks:
                check(share, page, at, offset, count, take)
            if count >= page.count[at] or start > page.end[at]:
                page.count[at], page.client[at], page.line[at] = count, take.client, line
                page.start[at], page.end[at], page.until[at] = start, end, take.until
            page.events[at] = group.events

    def _settle(self, line: int, op: Op) -> None:
        share = self.share(op)
        kind, outcome = op["kind"], op["outcome"]
        if kind not in KINDS:
            raise ValueError(f"kind {kind!r}")
        settle = Settle(line, self.client(op["client"]), op["start"], op["end"], kind, outcome)
        checks = self._on_settled
        terminal = kind in TERMINAL
        for first, last in op["offsets"]:
            if last - first > 1_000_000:
                raise ValueError(f"offsets {first}-{last}: more than a client can hold")
            self.records += last - first + 1
            for offset in range(first, last + 1):
                page, at = share.pages.at(offset), offset & MASK
                for check in checks:
                    check(share, page, at, offset, settle)
                if outcome == "ok":
                    if terminal and not page.settled_line[at]:
                        page.settled_line[at], page.settled_end[at] = line, settle.end
                    elif kind == "release" and page.client[at] == settle.client:
                        page.floor[at], page.floor_line[at] = page.count[at], line
                    elif kind == "renew" and page.client[at] == settle.client:
                        page.until[at] = max(page.until[at], settle.start + op["lock_ms"])
                elif terminal and outcome == "unknown":
                    page.perhaps[at] = line

    def _lost(self, line: int, op: Op) -> None:
        key = (self.client(op["client"]), op["group"])
        self.lost_at[key] = max(op["end"], self.lost_at.get(key, 0.0))
        self.group(op["group"]).events += 1

    def _fault(self, line: int, op: Op) -> None:
        self.faults.add(op["start"], op["end"])
        for group in self._groups.values():
            group.events += 1
