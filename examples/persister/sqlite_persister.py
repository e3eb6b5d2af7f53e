"""Keeps the state of share partitions in an SQLite database, in place of the broker's own log.

    group.share.persister.class.name=sqlite_persister:SqlitePersister
    group.share.persister.path=/var/lib/queue/state.db

One thread does the work, so operations take effect in the order of the calls. What has piled up while it was
committing becomes one transaction: under load, many acknowledgements share one sync of the disk.
"""

from __future__ import annotations

import queue
import sqlite3
import threading
from collections.abc import Callable, Mapping
from typing import Any

from sharecore.errors import ErrorCode, KafkaError
from sharecore.persister import (
    UNINITIALIZED,
    Done,
    LoadedState,
    SharePartitionKey,
    StateSummary,
    Write,
    combine_state_batches,
    pack_batches,
    unpack_batches,
)

Work = Callable[[], Any]
Ended = Callable[[Any], None]

SCHEMA = """
CREATE TABLE IF NOT EXISTS share_state (
    group_id TEXT, topic_id BLOB, partition INTEGER,
    state_epoch INTEGER, leader_epoch INTEGER, start_offset INTEGER, complete INTEGER, batches BLOB,
    PRIMARY KEY (group_id, topic_id, partition)
) WITHOUT ROWID
"""
WHERE = "WHERE group_id = ? AND topic_id = ? AND partition = ?"


class SqlitePersister:
    """A persister (docs/persister.md)."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._database = sqlite3.connect(settings["path"], check_same_thread=False, isolation_level=None)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=FULL")
        self._database.execute(SCHEMA)
        self._queue: queue.SimpleQueue[tuple[Work, Ended] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="sqlite-persister", daemon=True)
        self._thread.start()

    # the contract: each of these only puts work into the queue

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int, done: Done) -> None:
        def work() -> None:
            found = self._find(key)
            if found is not None and state_epoch < found[0]:
                raise KafkaError(ErrorCode.FENCED_STATE_EPOCH)
            complete = UNINITIALIZED if start_offset == UNINITIALIZED else 0
            self._put(key, state_epoch, 0, start_offset, complete, b"")

        self._queue.put((work, done))

    def read(
        self, key: SharePartitionKey, leader_epoch: int, done: Callable[[LoadedState | KafkaError], None]
    ) -> None:
        def work() -> LoadedState:
            state_epoch, known_epoch, start_offset, complete, batches = self._get(key)
            if leader_epoch < known_epoch:
                raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
            self._put(key, state_epoch, leader_epoch, start_offset, complete, batches)
            return LoadedState(state_epoch, start_offset, list(unpack_batches(batches)))

        self._queue.put((work, done))

    def write(
        self, key: SharePartitionKey, state_epoch: int, leader_epoch: int, write: Write, done: Done
    ) -> None:
        batches = pack_batches(write.batches())
        start_offset, complete = write.start_offset, write.delivery_complete_count
        self._queue.put(
            (lambda: self._write(key, state_epoch, leader_epoch, start_offset, complete, batches), done)
        )

    def write_start(
        self, key: SharePartitionKey, state_epoch: int, leader_epoch: int, start_offset: int, done: Done
    ) -> None:
        self._queue.put((lambda: self._write(key, state_epoch, leader_epoch, start_offset, 0, b""), done))

    def delete(self, key: SharePartitionKey, done: Done) -> None:
        self._queue.put((lambda: self._execute(f"DELETE FROM share_state {WHERE}", *_row(key)), done))

    def summary(self, key: SharePartitionKey, done: Callable[[StateSummary | KafkaError], None]) -> None:
        def work() -> StateSummary:
            found = self._find(key)
            return StateSummary(*(found[:4] if found else (0, 0, UNINITIALIZED, UNINITIALIZED)))

        self._queue.put((work, done))

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()
        self._database.close()

    # the thread

    def _run(self) -> None:
        closing = False
        while not closing:
            pending = [self._queue.get()]
            while not self._queue.empty():
                pending.append(self._queue.get())
            closing = None in pending
            self._transact([each for each in pending if each is not None])

    def _transact(self, pending: list[tuple[Work, Ended]]) -> None:
        """One transaction; those who asked hear of the outcome once it is on the disk."""
        outcomes: list[Any] = []
        try:
            self._execute("BEGIN")
            for work, _ in pending:
                try:
                    outcomes.append(work())
                except KafkaError as error:
                    outcomes.append(error)
            self._execute("COMMIT")
        except sqlite3.Error as error:
            if self._database.in_transaction:
                self._execute("ROLLBACK")
            outcomes = [KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error))] * len(pending)
        for (_, done), outcome in zip(pending, outcomes, strict=True):
            done(outcome)

    def _write(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        complete: int,
        batches: bytes,
    ) -> None:
        known_state, known_leader, _, _, before = self._get(key)
        if leader_epoch < known_leader:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        if state_epoch < known_state:
            raise KafkaError(ErrorCode.FENCED_STATE_EPOCH)
        combined = combine_state_batches([before, batches], start_offset)
        self._put(key, known_state, known_leader, start_offset, complete, combined)

    def _get(self, key: SharePartitionKey) -> tuple[int, int, int, int, bytes]:
        found = self._find(key)
        if found is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the share partition has no state")
        return found

    def _find(self, key: SharePartitionKey) -> tuple[int, int, int, int, bytes] | None:
        columns = "state_epoch, leader_epoch, start_offset, complete, batches"
        found: tuple[int, int, int, int, bytes] | None = self._database.execute(
            f"SELECT {columns} FROM share_state {WHERE}", _row(key)
        ).fetchone()
        return found

    def _put(self, key: SharePartitionKey, *state: Any) -> None:
        self._execute("REPLACE INTO share_state VALUES (?, ?, ?, ?, ?, ?, ?, ?)", *_row(key), *state)

    def _execute(self, statement: str, *parameters: Any) -> None:
        self._database.execute(statement, parameters)


def _row(key: SharePartitionKey) -> tuple[str, bytes, int]:
    return key.group_id, key.topic_id.bytes, key.partition
