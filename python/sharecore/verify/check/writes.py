"""Writes: confirmed ones are in the log, failed ones are not, and none is duplicated."""

from __future__ import annotations

from sharecore.verify.check.tables import MASK, SIZE, Log
from sharecore.verify.check.world import World
from sharecore.verify.history import Op


class Writes:
    """Lost writes, failed writes that were read, and duplicates.

    Attributes:
        unchecked: confirmed records at offsets that no reader reached.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._highest: dict[int, tuple[int, int, float]] = {}
        self.unchecked = 0
        self.handlers = {"send": self._send, "ends": self._ends}

    def _send(self, line: int, op: Op) -> None:
        """Record the highest confirmed offset of a log."""
        offset = op.get("offset", -1)
        if op["outcome"] == "ok" and offset >= 0:
            log = self._world.log(op).number
            known = self._highest.get(log)
            if known is None or known[0] < offset:
                self._highest[log] = (offset, line, op["end"])

    def _ends(self, line: int, op: Op) -> None:
        """Check the end of a log against earlier confirmations."""
        if op["outcome"] != "ok":
            return
        log = self._world.log(op)
        known = self._highest.get(log.number)
        if known is not None and op["offset"] <= known[0] and known[2] < op["start"]:
            text = f"{log.name} ends at {op['offset']}, but offset {known[0]} was confirmed before"
            self._world.breaches.add("lost", text, (known[1], line), op["end"])

    def finish(self) -> None:
        """Check each record sent against where it was seen."""
        for base, page in self._world.sent:
            for at in range(SIZE):
                if page.confirmed[at]:
                    offset = page.offset[at]
                    if offset >= 0:
                        self._check_there(base + at, self._world.logs[page.log[at]], offset, page.line[at])
                elif page.seen_line[at]:
                    self._check_never(
                        base + at, page.failed[at], page.unknown[at], page.seen_line[at], page.line[at]
                    )
        for ident, places in self._world.elsewhere.items():
            self._check_copies(ident, places)

    def _check_there(self, ident: int, log: Log, offset: int, line: int) -> None:
        there = log.id_at(offset)
        if there == ident:
            return
        covered = log.covered.line(offset)
        if there >= 0 or covered:
            page = log.pages.get(offset)
            shown = page.line[offset & MASK] if there >= 0 and page is not None else covered
            found = f"record {there} is there" if there >= 0 else "nothing is there"
            text = f"record {ident} was confirmed at {log.name}, offset {offset}, but {found}"
            self._world.breaches.add("lost", text, (line, shown))
        else:
            self.unchecked += 1

    def _check_never(self, ident: int, failed: int, unknown: int, seen: int, line: int) -> None:
        if failed and not unknown:
            self._world.breaches.add("failed", f"record {ident} was read, but its write failed", (line, seen))
        elif not unknown:
            self._world.breaches.add("foreign", f"record {ident} was read, but nobody sent it", (seen,))

    def _check_copies(self, ident: int, places: list[tuple[int, int, int]]) -> None:
        page, at = self._world.sent.at(ident), ident & MASK
        allowed = page.confirmed[at] + page.unknown[at]
        copies = 1 + len(places)
        if copies > allowed and allowed:
            logs = self._world.logs
            names = [f"{logs[log].name} offset {offset}" for log, offset, _ in places]
            names.insert(0, f"{logs[page.seen_log[at]].name} offset {page.seen_offset[at]}")
            text = f"record {ident} was sent {allowed} times and is there {copies} times: {', '.join(names)}"
            lines = (page.line[at], page.seen_line[at], *(line for _, _, line in places))
            self._world.breaches.add("duplicate", text, lines)
