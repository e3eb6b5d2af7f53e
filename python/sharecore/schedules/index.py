"""Schedules by key and due time, on disk: millions need little memory."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sharecore.client.producing.schedules import Pair, Schedule, read_schedule

_CACHE_KIB = 16_384


class Entry(NamedTuple):
    """A schedule and its next due time."""

    due_ms: int
    schedule: Schedule


class Index:
    """A table in a temporary file, rebuilt from the state topic."""

    def __init__(self) -> None:
        # SQLite's own temporary file: a killed process leaves nothing behind
        self._table = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._table.executescript(
            f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-{_CACHE_KIB};"
            "CREATE TABLE schedules (key BLOB PRIMARY KEY, due INTEGER, tried INTEGER, headers TEXT,"
            " value BLOB) WITHOUT ROWID; CREATE INDEX by_time ON schedules (tried);"
        )

    def close(self) -> None:
        self._table.close()

    def change(self, changes: Iterable[tuple[bytes, Entry | None]]) -> None:
        """Set schedules, or remove them."""
        with self._table:
            self._table.execute("BEGIN")
            for key, entry in changes:
                if entry is None:
                    self._table.execute("DELETE FROM schedules WHERE key = ?", (key,))
                    continue
                due_ms, schedule = entry
                headers = [
                    (name, None if content is None else content.decode("latin-1"))
                    for name, content in schedule.as_headers()
                ]
                self._table.execute(
                    "INSERT OR REPLACE INTO schedules VALUES (?, ?, ?, ?, ?)",
                    (key, due_ms, due_ms, json.dumps(headers), schedule.value),
                )

    def put_off(self, key: bytes, until_ms: int) -> None:
        """Postpone a schedule until a time."""
        self._table.execute("UPDATE schedules SET tried = ? WHERE key = ?", (until_ms, key))

    def next_ms(self) -> int | None:
        """Return the next due time."""
        found: int | None = self._table.execute("SELECT min(tried) FROM schedules").fetchone()[0]
        return found

    def due(self, now_ms: int, limit: int) -> list[Entry]:
        """Return the due schedules, earliest first."""
        rows = self._table.execute(
            "SELECT key, due, headers, value FROM schedules WHERE tried <= ? ORDER BY tried LIMIT ?",
            (now_ms, limit),
        )
        return [_entry(*row) for row in rows]

    def __iter__(self) -> Iterator[Entry]:
        """Return all schedules, earliest first."""
        rows = self._table.execute("SELECT key, due, headers, value FROM schedules ORDER BY tried")
        return (_entry(*row) for row in rows)

    def __len__(self) -> int:
        count: int = self._table.execute("SELECT count(*) FROM schedules").fetchone()[0]
        return count


def _entry(key: bytes, due_ms: int, headers: str, value: bytes) -> Entry:
    pairs: list[Pair] = [
        (name, None if content is None else content.encode("latin-1"))
        for name, content in json.loads(headers)
    ]
    return Entry(due_ms, read_schedule(key, value, pairs))
