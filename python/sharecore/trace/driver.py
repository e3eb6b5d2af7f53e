"""Driver of a trace: applies operations to an engine, and returns results in the oracle's format."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import cast

from sharecore.errors import ErrorCode, KafkaError
from sharecore.trace import operation as ops
from sharecore.trace.engines import Combine, Engine, LastingLocks, Partition, StateBatch, Write
from sharecore.trace.operation import TraceError


class TracePersister:
    """Store writes, and answer each at once, with an error, or when the trace says so.

    Attributes:
        written: the writes of the current operation, answered or not.
    """

    def __init__(self, combine: Combine, start_offset: int, state: Sequence[StateBatch]) -> None:
        self.start_offset = start_offset
        self.state = list(state)
        self.written: list[Write] = []
        self._combine = combine
        self._hold = False
        self._fail_next = 0
        self._fail_code = 0
        self._held: deque[Write] = deque()

    def configure(self, *, hold: bool, fail_next: int, fail_code: int) -> None:
        self._hold = hold
        self._fail_next = fail_next
        self._fail_code = fail_code

    def write(self, write: Write) -> int | None:
        """Return the error code that answers the write; None while it is held."""
        self.written.append(write)
        if self._hold:
            self._held.append(write)
            return None
        if self._fail_next > 0:
            self._fail_next -= 1
            return self._fail_code
        self._store(write)
        return 0

    def complete(self, most: int | None, code: int) -> list[Write]:
        """Answer the `most` oldest held writes (None: all) with `code`."""
        count = len(self._held) if most is None else min(max(most, 0), len(self._held))
        answered = [self._held.popleft() for _ in range(count)]
        if code == 0:
            for write in answered:
                self._store(write)
        return answered

    def _store(self, write: Write) -> None:
        self.start_offset = write.start_offset
        self.state = self._combine(self.state, write.batches(), write.start_offset)


Result = dict[str, object]
DeadLetter = tuple[int, int, int, int]
_CAUSES = ("limit", "reject", "expired")

_START_MS = 1_000_000
_PERSISTER_ERRORS: Mapping[int, str] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "UnknownTopicOrPartitionException",
    ErrorCode.GROUP_ID_NOT_FOUND: "GroupIdNotFoundException",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "CoordinatorNotAvailableException",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "CoordinatorNotAvailableException",
    ErrorCode.NOT_COORDINATOR: "CoordinatorNotAvailableException",
    ErrorCode.FENCED_LEADER_EPOCH: "NotLeaderOrFollowerException",
    ErrorCode.FENCED_STATE_EPOCH: "NotLeaderOrFollowerException",
}


class Driver:
    """One share partition at a time, with its clock and persister.

    Args:
        engine: creates the partitions.
    """

    def __init__(self, engine: Engine) -> None:
        self.now_ms = _START_MS
        self._engine = engine
        self._index = -1
        self._init: ops.Init | None = None
        self._partition: Partition | None = None
        self._persister = TracePersister(engine.combine, 0, [])
        self._pending: dict[int, int] = {}
        self._letters: deque[list[DeadLetter]] = deque()

    @property
    def started(self) -> bool:
        return self._partition is not None

    @property
    def partition(self) -> Partition:
        if self._partition is None:
            raise TraceError("a trace begins with init")
        return self._partition

    def apply(self, line: ops.Line) -> Result:
        """Apply one operation; the result has the oracle's keys in the oracle's order.

        Raises:
            TraceError: the operation is malformed, or is the first and not `init`.
        """
        operation = ops.parse(line)
        if not isinstance(operation, ops.Init):
            _ = self.partition
        self._index += 1
        self._persister.written = []
        outcome = self._outcome(operation)
        return {"i": self._index, "op": line["op"], **outcome, **self._snapshot(), **self._letters_due()}

    def _outcome(self, operation: ops.Operation) -> Result:
        match operation:
            case ops.Init():
                self._init = operation
                return self._start(operation, operation.start_offset, operation.state_batches)
            case ops.Reload():
                return self._reload()
            case ops.Acquire():
                return self._acquire(operation)
            case ops.Acknowledge(member, batches):
                return self._persist(lambda: self.partition.acknowledge(self.now_ms, member, batches))
            case ops.Release(member):
                return self._persist(lambda: self.partition.release(self.now_ms, member))
            case ops.Advance():
                return self._advance(operation)
            case ops.MoveLogStart(offset):
                self.partition.move_log_start(self.now_ms, offset)
            case ops.Archive(first, last):
                self.partition.archive(self.now_ms, first, last)
            case ops.Configure():
                self._configure(operation)
            case ops.ConfigureWrites(hold, fail_next, error_code):
                self._persister.configure(hold=hold, fail_next=fail_next, fail_code=error_code)
            case ops.Complete(most, error_code):
                return self._complete(most, error_code)
            case ops.Letters(most):
                self._finish_letters(most)
        return {}

    def _start(self, init: ops.Init, start_offset: int, state: Sequence[StateBatch]) -> Result:
        try:
            self._partition = self._engine.partition(
                start_offset,
                state,
                max_delivery_count=init.max_delivery_count,
                max_inflight=init.max_inflight,
                lock_ms=init.lock_ms,
                renew_enabled=init.renew_enabled,
                dead_letters=init.dead_letters,
            )
        except (KafkaError, ValueError) as error:
            raise TraceError(f"a partition that cannot be: {error}") from error
        self._persister = TracePersister(self._engine.combine, start_offset, state)
        self._pending = {}
        self._letters.clear()
        self.now_ms = _START_MS
        return {"error": None}

    def _reload(self) -> Result:
        assert self._init is not None
        start_offset, read = self._persister.start_offset, coalesced(sorted(self._persister.state))
        started = self._start(self._init, start_offset, ops.state_batches(read))
        return {"read_start_offset": start_offset, "read": read, **started}

    def _configure(self, operation: ops.Configure) -> None:
        operation.apply(self.partition)
        assert self._init is not None
        self._init = operation.over(self._init)

    def _acquire(self, operation: ops.Acquire) -> Result:
        fetch_offset = operation.fetch_offset
        if fetch_offset is None:
            fetch_offset = self.partition.next_fetch_offset
        acquired = self.partition.acquire(
            self.now_ms,
            operation.member,
            operation.batches,
            fetch_offset=fetch_offset,
            max_fetch_records=operation.max_fetch_records,
            batch_size=operation.batch_size,
            record_limit=operation.record_limit,
        )
        count = sum(last - first + 1 for first, last, _ in acquired)
        return {"fetch_offset": fetch_offset, "count": count, "acquired": [list(lease) for lease in acquired]}

    def _advance(self, operation: ops.Advance) -> Result:
        deadline_ms = self.partition.next_deadline_ms
        self.now_ms += operation.ms
        if operation.kept:
            lasting = cast(LastingLocks, self.partition)
            lasting.keep_locks(self.now_ms, operation.kept, operation.kept_ms)
        self._persist(self._end_locks, awaited=False)
        return {"fired": deadline_ms is not None and deadline_ms <= self.now_ms}

    def _end_locks(self) -> Write | None:
        return self.partition.advance(self.now_ms)

    def _complete(self, most: int | None, code: int) -> Result:
        completed: dict[str, str | None] = {}
        for write in self._persister.complete(most, code):
            error = self._end(write, code)
            if write.id in self._pending:
                completed[str(self._pending.pop(write.id))] = error
        return {"completed": completed}

    def _finish_letters(self, most: int | None) -> None:
        count = len(self._letters) if most is None else min(most, len(self._letters))
        for _ in range(count):
            for letter in self._letters.popleft():
                self._persist(
                    partial(self.partition.finish_archiving, self.now_ms, *letter[:2]), awaited=False
                )

    def _letters_due(self) -> Result:
        assert self._init is not None
        due = sorted(self.partition.take_dead_letters())
        if due:
            self._letters.append(due)
        if not self._init.dead_letters:
            return {}
        return {"letters": [[*runs[:3], _CAUSES[runs[3]]] for runs in coalesced(due)]}

    def _persist(self, change: Callable[[], Write | None], *, awaited: bool = True) -> Result:
        try:
            write = change()
        except KafkaError as error:
            return {"error": exception_name(error.code)}
        if write is None:
            return {"error": None}
        code = self._persister.write(write)
        if code is not None:
            return {"error": self._end(write, code)}
        if awaited:
            self._pending[write.id] = self._index
        return {"error": "pending"}

    def _end(self, write: Write, code: int) -> str | None:
        if code == 0:
            self.partition.commit(write.id, self.now_ms)
            return None
        self.partition.rollback(write.id, self.now_ms)
        return _PERSISTER_ERRORS.get(code, "UnknownServerException")

    def _snapshot(self) -> Result:
        partition = self.partition
        written = self._persister.written
        return {
            "start_offset": partition.start_offset,
            "end_offset": partition.end_offset,
            "next_fetch_offset": partition.next_fetch_offset,
            "can_acquire": partition.can_acquire,
            "delivery_complete_count": partition.delivery_complete_count,
            "inflight": coalesced(partition.inflight()),
            "persisted": coalesced(sorted(batch for write in written for batch in write.batches())),
            "write_start_offset": written[0].start_offset if written else None,
        }


def exception_name(code: ErrorCode) -> str:
    """Return a Java exception name: INVALID_RECORD_STATE -> InvalidRecordStateException."""
    return "".join(word.capitalize() for word in code.name.split("_")) + "Exception"


def coalesced(rows: Iterable[Sequence[int]]) -> list[list[int]]:
    """Return ascending rows of [first, last, ...], with adjacent ones joined if the rest is equal."""
    runs: list[list[int]] = []
    for first, last, *rest in rows:
        if runs and runs[-1][1] + 1 == first and runs[-1][2:] == rest:
            runs[-1][1] = last
        else:
            runs.append([first, last, *rest])
    return runs
