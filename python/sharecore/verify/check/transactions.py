"""Transactions: aborted records stay invisible, committed ones are atomic, and no reads are circular."""

from __future__ import annotations

from array import array

from sharecore.verify.check.tables import MASK, SIZE, Log
from sharecore.verify.check.world import READ_COMMITTED, World
from sharecore.verify.history import Op

_OPEN, _COMMITTED, _ABORTED, _EITHER = range(4)


class Transactions:
    """Aborted reads (G1a), reads before the commit, torn transactions, and circular reads (G1c).

    A transaction without a commit attempt is aborted, now or later. One with an unknown commit outcome may be
    either, but as a whole.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._numbers: dict[str, int] = {}
        self._names = [""]
        self._state, self._line, self._start = array("B", [0]), array("I", [0]), array("d", [0.0])
        self._readers, self._reads = array("I"), array("q")
        self._read_line = array("I")
        self.handlers = {"send": self._send, "end_txn": self._end_txn, "read": self._read}

    def _number(self, name: str) -> int:
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self._names)
            self._names.append(name)
            self._state.append(_OPEN)
            self._line.append(0)
            self._start.append(0.0)
        return number

    def _send(self, line: int, op: Op) -> None:
        """Record the transaction of a record."""
        name = op.get("txn")
        if name is not None:
            self._world.sent.at(op["id"]).txn[op["id"] & MASK] = self._number(name)

    def _end_txn(self, line: int, op: Op) -> None:
        """Record the end of a transaction."""
        number, outcome = self._number(op["txn"]), op["outcome"]
        if not op["commit"] or outcome == "failed":
            state = _ABORTED
        else:
            state = _COMMITTED if outcome == "ok" else _EITHER
        self._state[number], self._line[number], self._start[number] = state, line, op["start"]

    def _read(self, line: int, op: Op) -> None:
        """Record the reads of a transaction."""
        name = op.get("txn")
        if name is not None and op["outcome"] == "ok" and op["isolation"] == READ_COMMITTED:
            reader = self._number(name)
            for _, ident in op["records"]:
                self._readers.append(reader)
                self._reads.append(ident)
                self._read_line.append(line)

    def is_visible(self, ident: int, committed: bool) -> bool:
        """Return whether a record in the log is certainly visible for a reader of this isolation level."""
        page, at = self._world.sent.at(ident), ident & MASK
        number = page.txn[at]
        return not (committed and number) or self._state[number] == _COMMITTED

    def finish(self) -> None:
        """Check what readers of committed records saw against the end of each transaction."""
        some, missing = self._look()
        for number, line in some.items():
            if number in missing:
                text = f"transaction {self._names[number]}: one of its records was read and another was not"
                lines = (line, *missing[number], self._line[number])
                self._world.breaches.add("torn", text, lines)
        self._check_circles()

    def _look(self) -> tuple[dict[int, int], dict[int, tuple[int, int]]]:
        """Report wrong reads; return the transactions with an unknown end that have a record seen, or
        missing.
        """
        world, state = self._world, self._state
        some: dict[int, int] = {}
        missing: dict[int, tuple[int, int]] = {}
        for base, page in world.sent:
            for at in range(SIZE):
                number = page.txn[at]
                line = page.committed_line[at]
                if number and line:
                    self._check_seen(base + at, number, line, page.line[at], page.committed_end[at])
                    if state[number] == _EITHER:
                        some.setdefault(number, line)
                elif page.confirmed[at] and page.offset[at] >= 0 and not line:
                    covered = self._covered(world.logs[page.log[at]], page.offset[at])
                    if covered and state[number] == _EITHER and number:
                        missing.setdefault(number, (page.line[at], covered))
                    elif covered and (not number or state[number] == _COMMITTED):
                        self._report_missing(base + at, number, page.line[at], covered)
        return some, missing

    def _check_seen(self, ident: int, number: int, seen: int, sent: int, end: float) -> None:
        state, name = self._state[number], self._names[number]
        if state in (_OPEN, _ABORTED):
            how = "was aborted" if state == _ABORTED else "was never committed"
            text = f"record {ident} was read as committed, but its transaction {name} {how}"
            self._world.breaches.add("aborted", text, (sent, self._line[number], seen), end)
        elif end < self._start[number]:
            text = f"record {ident} was read as committed before transaction {name} was to commit"
            self._world.breaches.add("aborted", text, (sent, seen, self._line[number]), end)

    def _covered(self, log: Log, offset: int) -> int:
        return log.covered_committed.line(offset)

    def _report_missing(self, ident: int, number: int, sent: int, covered: int) -> None:
        whose = f" of the committed transaction {self._names[number]}" if number else ""
        text = f"record {ident}{whose} was confirmed, but those who read committed records did not see it"
        self._world.breaches.add("torn" if number else "lost", text, (sent, self._line[number], covered))

    def _check_circles(self) -> None:
        """Report circular reads between transactions (G1c)."""
        after: dict[int, list[int]] = {}
        lines: dict[tuple[int, int], int] = {}
        waits: dict[int, int] = {}
        for reader, ident, line in zip(self._readers, self._reads, self._read_line, strict=True):
            writer = self._world.sent.at(ident).txn[ident & MASK] if ident >= 0 else 0
            if writer and writer != reader and (writer, reader) not in lines:
                lines[writer, reader] = line
                after.setdefault(writer, []).append(reader)
                waits[reader] = waits.get(reader, 0) + 1
        ready = [number for number in after if not waits.get(number)]
        while ready:
            for reader in after.pop(ready.pop(), ()):
                waits[reader] -= 1
                if not waits[reader]:
                    ready.append(reader)
        circle = _circle(
            {writer: [each for each in readers if waits[each]] for writer, readers in after.items()}
        )
        if circle:
            names = " -> ".join(self._names[number] for number in [*circle, circle[0]])
            pairs = zip(circle, [*circle[1:], circle[0]], strict=True)
            shown = tuple(lines[pair] for pair in pairs)
            text = f"transactions read one another's records in a circle: {names}"
            self._world.breaches.add("circle", text, shown)


def _circle(after: dict[int, list[int]]) -> list[int]:
    """Return a cycle of a graph, if there is one."""
    done: set[int] = set()
    for first in after:
        path: list[int] = []
        places: dict[int, int] = {}
        current: int | None = first
        stack = [iter((first,))]
        while stack:
            current = next(stack[-1], None)
            if current is None:
                stack.pop()
                if path:
                    done.add(path[-1])
                    del places[path.pop()]
            elif current in places:
                return path[places[current] :]
            elif current not in done:
                places[current] = len(path)
                path.append(current)
                stack.append(iter(after.get(current, ())))
    return []
