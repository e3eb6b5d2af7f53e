"""Protection of the log from clients: cut names, limited and counted lines, and a writing thread."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Protocol
from weakref import WeakSet

NAME_MAX = 255
"""Characters of a name, or of anything else that a line quotes: the longest name of a topic fits."""
_MESSAGE_MAX = 4_000
_TRACE_MAX = 20_000
_FORK_S = 1.0
"""How long a fork waits for the line that is being written."""
_PLAIN = (bool, int, float, type(None))


class _Forks(Protocol):
    """What a forked child sets right, as another thread may have held a lock in that moment."""

    def after_fork(self) -> None: ...


_forking: WeakSet[_Forks] = WeakSet()
_writing: WeakSet[LogThread] = WeakSet()
"""Threads that write lines: a fork waits until they are between two of them."""


def _before_fork() -> None:
    for each in list(_writing):
        each.before_fork()


def _after_fork_in_parent() -> None:
    for each in list(_writing):
        each.after_fork_in_parent()


def _after_fork() -> None:
    for each in list(_forking):
        each.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork
    )


def cut(text: str, characters_max: int = NAME_MAX) -> str:
    """Return that many characters of a text, and how many more there are."""
    more = len(text) - characters_max
    return text if more <= 0 else f"{text[:characters_max]}... ({more:,} more characters)"


def shorten(text: str, characters_max: int = NAME_MAX) -> str:
    """Return that many characters of a text on one line, without control characters."""
    short = cut(text, characters_max)
    if short.isprintable():
        return short
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in short)


@dataclass(slots=True)
class _Allowance:
    """Lines that a kind may still write at a time, and the number of suppressed ones."""

    lines: float
    at_s: float
    left_out: int = 0
    since_s: float = 0.0


class LineLimit:
    """Allow a burst of lines of a kind, then a rate per second; count the others.

    Args:
        burst: lines at once.
        per_second: lines a second, of a kind whose burst is used up.
        kinds_max: kinds that are remembered; of more, the one that came up least recently is forgotten.
        now_s: the time, which never goes back.
    """

    def __init__(
        self,
        burst: int = 100,
        per_second: float = 2.0,
        *,
        kinds_max: int = 1_000,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._burst = burst
        self._per_second = per_second
        self._kinds_max = kinds_max
        self._now_s = now_s
        self._kinds: OrderedDict[Hashable, _Allowance] = OrderedDict()
        self._lock = threading.Lock()
        _forking.add(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()

    def allows(self, kind: Hashable) -> bool:
        """Return whether a line of this kind may be written now; count it if not."""
        now_s = self._now_s()
        with self._lock:
            known = self._kinds.get(kind)
            if known is None:
                known = self._kinds[kind] = _Allowance(self._burst, now_s)
                if len(self._kinds) > self._kinds_max:
                    self._kinds.popitem(last=False)
            self._kinds.move_to_end(kind)
            refilled = known.lines + (now_s - known.at_s) * self._per_second
            known.lines, known.at_s = min(refilled, self._burst), now_s
            if known.lines >= 1:
                known.lines -= 1
                return True
            if not known.left_out:
                known.since_s = now_s
            known.left_out += 1
            return False

    def take_left_out(self, kind: Hashable) -> tuple[int, float]:
        """Return how many lines of a kind were left out since the last call, and in how many seconds."""
        with self._lock:
            known = self._kinds.get(kind)
            if known is None or not known.left_out:
                return 0, 0.0
            count, known.left_out = known.left_out, 0
            return count, self._now_s() - known.since_s


def once_a_minute() -> LineLimit:
    """Return a limit of one line a minute of each kind."""
    return LineLimit(burst=1, per_second=1 / 60)


class LogGuard(logging.Filter):
    """Filter of a handler: cut quoted names, and suppress and count lines beyond the limit of their kind.

    A kind is a logger's message before its arguments are filled in, with what `extra={"kind": ...}` names.
    Lines below INFO are cut, never left out: whoever asks for them wants them all.

    Args:
        limit: how many lines of a kind.
        count_s: so long after the first line that was left out a line says how many were.
    """

    def __init__(self, limit: LineLimit | None = None, count_s: float = 10.0) -> None:
        super().__init__()
        self._limit = limit or LineLimit()
        self._count_s = count_s
        self._counting: dict[Hashable, threading.Timer] = {}
        self._lock = threading.Lock()
        _forking.add(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        self._counting.clear()  # a forked child does not have the counting threads

    def filter(self, record: logging.LogRecord) -> bool:
        if getattr(record, "counts_others", False):
            return True
        if record.levelno >= logging.INFO:
            first_line = str(record.msg).partition("\n")[0][:_MESSAGE_MAX]
            kind = (record.name, record.levelno, first_line, getattr(record, "kind", None))
            if not self._limit.allows(kind):
                self._count_later(kind, record)
                return False
        _cut(record)
        return True

    def _count_later(self, kind: Hashable, record: logging.LogRecord) -> None:
        with self._lock:
            if kind in self._counting:
                return
            _cut(record)
            example = shorten(record.getMessage(), NAME_MAX)
            timer = threading.Timer(self._count_s, self._count, (kind, record.name, record.levelno, example))
            timer.daemon = True
            self._counting[kind] = timer
        timer.start()

    def _count(self, kind: Hashable, name: str, level: int, example: str) -> None:
        with self._lock:
            self._counting.pop(kind, None)
        count, seconds = self._limit.take_left_out(kind)
        if not count:
            return
        log = logging.getLogger(name)
        values = (count, seconds, example)
        record = log.makeRecord(
            name, level, "", 0, "and %d more lines like this one in %.0f s: %s", values, None
        )
        record.counts_others = True
        log.handle(record)


class LogThread(logging.Handler):
    """Writes lines in a thread, in their order: neither a slow disk nor a full pipe holds up who logs.

    A line that says that the process cannot go on (CRITICAL) is waited for, and so is the end of the process.

    Args:
        target: writes lines; they are formatted here.
        bytes_max: characters of lines that may wait to be written; further lines are left out and counted.
        flush_s: how long to wait for lines to be written at most.
    """

    def __init__(self, target: logging.Handler, *, bytes_max: int = 8 << 20, flush_s: float = 5.0) -> None:
        super().__init__()
        target.setFormatter(_AsIs())
        self._target = target
        self._bytes_max = bytes_max
        self._flush_s = flush_s
        self._waiting: list[logging.LogRecord] = []
        self._bytes = 0
        self._left_out = 0
        self._is_writing = self._has_ended = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_forked = False
        self._line_lock = threading.Lock()
        """Held while a line is written."""
        self._paused_by: int | None = None
        """The thread that forks."""
        _forking.add(self)
        _writing.add(self)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self._line(record, self.format(record))
        except Exception:
            self.handleError(record)
            return
        if self._is_forked:
            self._target.handle(line)  # a forked child has no other threads
            return
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(target=self._write, name="sharecore-log", daemon=True)
                self._thread.start()
            size = len(line.msg)
            if self._waiting and self._bytes + size > self._bytes_max:
                self._left_out += 1
                return
            self._waiting.append(line)
            self._bytes += size
            self._changed.notify_all()
        if record.levelno >= logging.CRITICAL:
            self.flush()

    def flush(self) -> None:
        """Wait until all lines are written."""
        if not self._is_forked and self._thread is not None:
            with self._changed:
                self._changed.wait_for(lambda: not (self._waiting or self._is_writing), self._flush_s)
        self._target.flush()

    def close(self) -> None:
        self.flush()
        if not self._is_forked:
            with self._changed:
                self._has_ended = True
                self._changed.notify_all()
        self._target.close()
        super().close()

    def before_fork(self) -> None:
        # the stream has a lock, too, which a child would wait for without end; a pipe that nobody reads may
        # hold up the line
        if self._line_lock.acquire(timeout=_FORK_S):
            self._paused_by = threading.get_ident()

    def after_fork_in_parent(self) -> None:
        # another thread may fork at once, and not have got the lock
        if self._paused_by == threading.get_ident():
            self._paused_by = None
            self._line_lock.release()

    def after_fork(self) -> None:
        self._is_forked = True
        self._changed = threading.Condition()
        self._line_lock = threading.Lock()
        self._paused_by = None

    def _write(self) -> None:
        while True:
            with self._changed:
                self._is_writing = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._waiting or self._has_ended)
                lines, self._waiting, self._bytes = self._waiting, [], 0
                left_out, self._left_out = self._left_out, 0
                if not lines:
                    return
                self._is_writing = True
            for line in lines:
                with self._line_lock:
                    self._target.handle(line)
            if left_out:
                text = f"{left_out:,} lines are missing here: the log is not written as fast as they come"
                last = lines[-1]
                missing = logging.LogRecord(last.name, logging.WARNING, "", 0, text, None, None)
                with self._line_lock:
                    self._target.handle(self._line(missing, self.format(missing)))

    @staticmethod
    def _line(record: logging.LogRecord, text: str) -> logging.LogRecord:
        return logging.LogRecord(record.name, record.levelno, "", 0, text, None, None)


class _AsIs(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return str(record.msg)


class _Quoted:
    """An argument of a line, cut when the line is written."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __str__(self) -> str:
        return shorten(str(self.value))

    def __repr__(self) -> str:
        value = self.value
        if isinstance(value, (str, bytes)) and len(value) > NAME_MAX:
            return f"{value[:NAME_MAX]!r}... ({len(value) - NAME_MAX:,} more)"
        return shorten(repr(value))


def unquoted(argument: Any) -> Any:
    """Return an argument of a record as its caller gave it."""
    return argument.value if isinstance(argument, _Quoted) else argument


def _cut(record: logging.LogRecord) -> None:
    if isinstance(record.msg, str) and len(record.msg) > _MESSAGE_MAX:
        record.msg = record.msg[:_MESSAGE_MAX]
    if isinstance(record.args, tuple):
        record.args = tuple(
            each if isinstance(each, (*_PLAIN, _Quoted)) else _Quoted(each) for each in record.args
        )
    if record.exc_info:
        trace = record.exc_text or logging.Formatter().formatException(record.exc_info)
        half = _TRACE_MAX // 2
        # keep the start and the end
        record.exc_text = trace if len(trace) <= _TRACE_MAX else f"{trace[:half]}\n...\n{trace[-half:]}"
