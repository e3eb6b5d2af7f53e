"""Draws the pictures of docs/concepts.md from runs of the engine: `make pictures`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

from sharecore._core import Partition, Write

DIRECTORY = Path(__file__).parents[2] / "docs/pictures"

ACCEPT, RELEASE, REJECT = b"\x01", b"\x02", b"\x03"
STATES = {0: "available", 1: "acquired", 2: "acknowledged", 4: "archived"}
COLORS = {
    "beyond": "#e8ebef",
    "available": "#9cc7f0",
    "acquired": "#f2b84b",
    "acknowledged": "#7cc48d",
    "archived": "#d98080",
    "passed": "#f7f8fa",
}
LOCK_MS = 30_000


class Row(NamedTuple):
    """The window after a step."""

    step: str
    start: int
    cells: list[tuple[str, int]]
    """State and delivery count of each offset of the log."""


class Story:
    """A share partition over a log of so many records, and how it looked after each step."""

    def __init__(self, records: int, *, limit: int = 5) -> None:
        self.partition = Partition(lock_ms=LOCK_MS, max_delivery_count=limit)
        self.rows: list[Row] = []
        self._records = records
        self.now_ms = 0

    def acquire(self, member: str, records: int) -> None:
        """A member takes that many records at most."""
        fetch_offset = self.partition.next_fetch_offset
        self.partition.acquire(
            self.now_ms,
            member,
            [(fetch_offset, self._records - 1)],
            fetch_offset,
            max_fetch_records=records,
            record_limit=True,
        )

    def acknowledge(self, member: str, first: int, last: int, kind: bytes) -> None:
        """A member settles what it has, and the write becomes durable."""
        self._written(self.partition.acknowledge(self.now_ms, member, [(first, last, kind)]))

    def wait(self, milliseconds: int) -> None:
        """Time goes by; locks run out."""
        self.now_ms += milliseconds
        self._written(self.partition.advance(self.now_ms))

    def _written(self, write: Write | None) -> None:
        if write is not None:
            self.partition.commit(write.id, self.now_ms)

    def show(self, step: str) -> None:
        """Keep the window as it is now."""
        start = self.partition.start_offset
        cells = [("passed" if offset < start else "beyond", 0) for offset in range(self._records)]
        for first, last, state, count in self.partition.inflight():
            for offset in range(max(first, start), last + 1):
                cells[offset] = (STATES[state], count)
        self.rows.append(Row(step, start, cells))


def window() -> Iterator[Row]:
    """Two members, every way a record ends, and the start offset that follows."""
    story = Story(12)
    story.show("twelve records, nobody has fetched")
    story.acquire("a", 4)
    story.show("member a takes four")
    story.acquire("b", 4)
    story.show("member b takes the next four")
    story.acknowledge("a", 0, 0, ACCEPT)
    story.acknowledge("a", 1, 1, RELEASE)
    story.acknowledge("a", 2, 2, REJECT)
    story.show("a accepts 0, releases 1, rejects 2, still has 3")
    story.acquire("b", 2)
    story.show("b asks again: 1 comes first, counted")
    story.acknowledge("b", 1, 1, ACCEPT)
    story.show("b accepts 1: the start offset passes what is settled")
    story.wait(LOCK_MS)
    story.show("thirty seconds later all locks have run out")
    yield from story.rows


def limit() -> Iterator[Row]:
    """A record that nobody can process is given up."""
    story = Story(5, limit=3)
    for number in range(1, 4):
        story.acquire("a", 1 if number > 1 else 5)
        if number == 1:
            story.acknowledge("a", 1, 4, ACCEPT)
        story.show(f"delivery {number} of record 0")
        story.acknowledge("a", 0, 0, RELEASE)
    story.show("released a third time, with share.delivery.count.limit=3")
    yield from story.rows


PICTURES: dict[str, Callable[[], Iterator[Row]]] = {"window": window, "limit": limit}

_CELL, _ROW, _LEFT, _TOP = 38, 62, 16, 34


def draw(rows: list[Row]) -> str:
    """Return the rows as SVG, on a ground of its own so that it is read on light and dark pages."""
    columns = len(rows[0].cells)
    width = max(_LEFT * 2 + columns * _CELL, 560)
    height = _TOP + len(rows) * _ROW + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'font-family="ui-sans-serif, system-ui, sans-serif" font-size="13" fill="#20262e">',
        f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>',
    ]
    for number, row in enumerate(rows):
        top = _TOP + number * _ROW
        parts.append(f'<text x="{_LEFT}" y="{top - 8}">{escape(row.step)}</text>')
        for offset, (state, count) in enumerate(row.cells):
            left = _LEFT + offset * _CELL
            parts.append(
                f'<rect x="{left}" y="{top}" width="{_CELL - 3}" height="26" rx="4" fill="{COLORS[state]}" '
                f'stroke="#b8c0ca"><title>offset {offset}: {state}, delivery count {count}</title></rect>'
            )
            told = f"{offset}·{count}" if count else f"{offset}"
            parts.append(
                f'<text x="{left + (_CELL - 3) / 2}" y="{top + 18}" text-anchor="middle">{told}</text>'
            )
        left = _LEFT + row.start * _CELL
        parts.append(f'<path d="M{left} {top + 30} l5 7 h-10 z" fill="#20262e"/>')
    left, top = _LEFT, height - 28
    for state, color in COLORS.items():
        parts.append(
            f'<rect x="{left}" y="{top}" width="14" height="14" rx="3" fill="{color}" stroke="#b8c0ca"/>'
        )
        parts.append(f'<text x="{left + 19}" y="{top + 12}">{state}</text>')
        left += 34 + 7 * len(state)
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    """Writes them."""
    DIRECTORY.mkdir(exist_ok=True)
    for name, story in PICTURES.items():
        (DIRECTORY / f"{name}.svg").write_text(draw(list(story())))


if __name__ == "__main__":
    main()
