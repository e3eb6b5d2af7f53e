"""The history of a run: one JSON object per line, ordered by the ends of calls (docs/verify.md)."""

from __future__ import annotations

import heapq
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self, TypedDict

FORMAT = 1
_REPORT_BYTES = 1 << 22


class HistoryError(ValueError):
    """A file is not a history, or has an invalid line."""


GroupOf = TypedDict("GroupOf", {"delivery_limit": int, "isolation": str, "from": str}, total=False)
"""What the first line says about a share group."""

Op = TypedDict(
    "Op",
    {
        "op": str,
        "start": float,
        "end": float,
        "outcome": str,
        "format": int,
        "groups": dict[str, GroupOf],
        "clock_uncertainty_ms": float,
        "bound_ms": float,
        "client": str,
        "group": str,
        "topic": str,
        "partition": int,
        "id": int,
        "offset": int,
        "records": list[list[int]],
        "offsets": list[list[int]],
        "from": int,
        "next": int,
        "kind": str,
        "isolation": str,
        "lock_ms": float,
        "txn": str,
        "commit": bool,
        "start_offset": int,
        "lag": int,
    },
    total=False,
)
"""The content of a line: each operation has some of the fields (docs/verify.md).

A file may have other types, or lack fields: the check of that line fails.
"""


class Line(NamedTuple):
    """A line of a history: its number across all files, from 1, and its content."""

    number: int
    op: Op


class Writer:
    """Writes a history; thread-safe.

    Args:
        path: the file, which is replaced.
        header: the content of the first line, besides the format.
        now_ms: the clock of the run.
    """

    def __init__(self, path: Path, header: Mapping[str, object], now_ms: Callable[[], float]) -> None:
        self.path, self.now_ms = path, now_ms
        self.written = 0
        self._lock = threading.Lock()
        self._file = path.open("w", encoding="utf-8", buffering=1 << 16)
        now = now_ms()
        self._put({"op": "history", "format": FORMAT, "start": now, "end": now, **header})

    def write(self, op: str, start: float, outcome: str = "ok", /, **fields: object) -> None:
        """Add a call that ends now."""
        with self._lock:
            if not self._file.closed:
                # inside the lock: lines must be ordered by their ends
                ended = self.now_ms()
                self._put({"op": op, "start": start, "end": ended, "outcome": outcome, **fields})

    def _put(self, line: Mapping[str, object]) -> None:
        self._file.write(json.dumps(line, separators=(",", ":")) + "\n")
        self.written += 1

    def flush(self) -> None:
        """Flush the buffer to the operating system."""
        with self._lock:
            self._file.flush()

    def close(self) -> None:
        """Complete the file; later calls of `write` are dropped."""
        with self._lock:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Progress:
    """Counts the bytes read.

    Args:
        report: called now and then with the number so far.
    """

    def __init__(self, report: Callable[[int], None] = lambda _: None) -> None:
        self._report, self._bytes, self._unreported = report, 0, 0

    def add(self, size: int) -> None:
        """Count a line."""
        self._unreported += size
        if self._unreported >= _REPORT_BYTES:
            self._bytes, self._unreported = self._bytes + self._unreported, 0
            self._report(self._bytes)


def read(paths: Sequence[Path], progress: Progress | None = None) -> Iterator[Line]:
    """Yield the lines of histories; several files are merged by the ends of calls.

    Raises:
        HistoryError: a file is not a history, or lines are out of order.
        OSError: a file cannot be read.
    """
    counted = progress or Progress()
    several = [_operations(path, counted) for path in paths]
    merged = several[0] if len(several) == 1 else heapq.merge(*several, key=_end)
    last = float("-inf")
    for number, op in enumerate(merged, 1):
        end = op["end"]
        if end < last:
            where = "the file" if len(paths) == 1 else "each file"
            raise HistoryError(
                f"line {number} ended at {end}, before the line above it ({last}). Sort {where} by `end`"
            )
        last = end
        yield Line(number, op)


def _end(op: Op) -> float:
    return op["end"]


def _operations(path: Path, progress: Progress) -> Iterator[Op]:
    with path.open("rb") as file:
        number = 0
        for text in file:
            number += 1
            progress.add(len(text))
            try:
                op = json.loads(text)
            except (ValueError, RecursionError) as error:
                if not text.endswith(b"\n"):
                    return  # the writer was killed in the middle of a line
                raise HistoryError(f"{path}: line {number} is not JSON: {error}") from None
            _check_times(path, number, op)
            if number == 1:
                _check_header(path, op)
            yield op
    if number == 0:
        raise HistoryError(f"{path} is empty. A history begins with a line whose `op` is `history`")


def _check_header(path: Path, op: Op) -> None:
    if op["op"] != "history":
        raise HistoryError(f"{path}: the first line has `op` {op['op']!r}; it must be `history`")
    if op.get("format") != FORMAT:
        raise HistoryError(f"{path} has format {op.get('format')!r}; this program reads format {FORMAT}")


def _check_times(path: Path, number: int, op: Op) -> None:
    try:
        known = op["start"] <= op["end"] and type(op["op"]) is str
    except (KeyError, TypeError):
        known = False
    if not known:
        raise HistoryError(f"{path}: line {number} needs `op`, and times `start` and `end` in this order")


def pick(paths: Sequence[Path], numbers: frozenset[int]) -> dict[int, str]:
    """Return the text of the lines with these numbers."""
    found: dict[int, str] = {}
    if numbers:
        last = max(numbers)
        for number, op in read(paths):
            if number in numbers:
                found[number] = json.dumps(op, separators=(",", ":"))
            if number >= last:
                break
    return found
