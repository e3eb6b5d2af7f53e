"""Protection of the log against floods."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from sharecore.cli.logs import JsonLines, say_after_the_log
from sharecore.logs import NAME_MAX, LineLimit, LogGuard, LogThread, shorten
from sharecore.security.acl import Operation, ResourceType
from sharecore.security.audit import Decision, record, write_to
from sharecore.security.principal import USER, Principal


class Lines(logging.Handler):
    """Keeps the lines."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.counted = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))
        if "more lines" in self.lines[-1]:
            self.counted.set()


@pytest.fixture
def log() -> Iterator[logging.Logger]:
    log = logging.getLogger("sharecore.test-logs")
    log.setLevel(logging.DEBUG)
    log.propagate = False
    yield log
    log.handlers.clear()


def written(log: logging.Logger, guard: LogGuard | None = None) -> Lines:
    lines = Lines()
    lines.addFilter(guard or LogGuard())
    log.addHandler(lines)
    return lines


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("orders", "orders"),
        ("é", "é"),
        ("two\nlines\x1b[2J", "two\\nlines\\x1b[2J"),
        ("x" * NAME_MAX, "x" * NAME_MAX),
        ("x" * 500_000, "x" * NAME_MAX + "... (499,745 more characters)"),
        ("\u2028", "\\u2028"),
    ],
)
def test_a_name_is_one_short_line(text: str, expected: str) -> None:
    assert shorten(text) == expected


def test_what_a_line_quotes_is_cut(log: logging.Logger) -> None:
    lines = written(log)
    name = "n" * 500_000
    log.warning("user %r, group %s, error %s, %d bytes, %.1f s", name, name, ValueError(name), 7, 0.25)
    log.debug("client %s", name)
    assert all(len(line) < 1_500 for line in lines.lines)
    assert lines.lines[0].endswith(", 7 bytes, 0.2 s")
    assert len(lines.lines) == 2


def test_a_trace_is_cut(log: logging.Logger) -> None:
    lines = written(log)
    lines.setFormatter(JsonLines())
    try:
        raise ValueError("n" * 500_000)
    except ValueError:
        log.exception("it failed")
    assert len(lines.lines[0]) < 30_000
    assert json.loads(lines.lines[0])["exception"].startswith("Traceback")


def test_lines_of_a_kind_are_limited_and_the_others_are_counted(log: logging.Logger) -> None:
    lines = written(log, LogGuard(LineLimit(3, 0.0), count_s=0.01))
    for number in range(10_000):
        log.warning("refused %s", number)
    log.warning("another kind")
    assert lines.counted.wait(20)
    counted = [line for line in lines.lines if "more lines like this one" in line]
    assert lines.lines[:3] == ["refused 0", "refused 1", "refused 2"]
    assert "another kind" in lines.lines
    assert len(lines.lines) == 4 + len(counted)
    assert sum(int(line.split()[1]) for line in counted) <= 10_000 - 3
    assert "refused" in counted[0]


def test_debug_lines_are_all_written(log: logging.Logger) -> None:
    lines = written(log, LogGuard(LineLimit(3, 0.0)))
    for _ in range(50):
        log.debug("wanted")
    assert len(lines.lines) == 50


def test_lines_are_allowed_again_after_a_while() -> None:
    now = [0.0]
    limit = LineLimit(2, 1.0, kinds_max=2, now_s=lambda: now[0])
    assert [limit.allows("a") for _ in range(4)] == [True, True, False, False]
    now[0] = 1.5
    assert [limit.allows("a") for _ in range(2)] == [True, False]
    assert limit.take_left_out("a") == (3, 1.5)
    assert limit.take_left_out("a") == (0, 0.0)
    assert all(limit.allows(kind) for kind in "bc")
    assert limit.take_left_out("a") == (0, 0.0), "of three kinds the oldest is forgotten"


def test_the_audit_has_names_cut_and_lines_limited(tmp_path: object) -> None:
    audit = logging.getLogger("sharecore.audit")
    before = audit.handlers[:], audit.propagate, audit.level
    path = f"{tmp_path}/audit.jsonl"
    write_to(path, allowed=False)
    try:
        for user in ("mallory", "eve"):
            for number in range(1_000):
                name = f"{number}" + "n" * 30_000
                record(
                    Decision(
                        Principal(USER, user), "::1", Operation.READ, ResourceType.TOPIC, name, allowed=False
                    )
                )
        audit.handlers[0].flush()
        with open(path) as file:
            told = [json.loads(line) for line in file]
    finally:
        for handler in audit.handlers:
            handler.close()
        audit.handlers[:], audit.propagate = before[0], before[1]
        audit.setLevel(before[2])
    by_user = {user: sum(line["principal"] == f"User:{user}" for line in told) for user in ("mallory", "eve")}
    assert all(100 <= count < 200 for count in by_user.values()), (
        "one does not hide what is denied to another"
    )
    assert all(len(line["resource"]) < 400 for line in told)


class SlowLines(Lines):
    """Blocks until allowed to write."""

    def __init__(self) -> None:
        super().__init__()
        self.began, self.may_write = threading.Event(), threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.began.set()
        assert self.may_write.wait(10)
        super().emit(record)


def test_nobody_waits_until_a_line_is_written_and_lines_keep_their_order(log: logging.Logger) -> None:
    target = SlowLines()
    handler = LogThread(target)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    log.addHandler(handler)
    for number in range(1000):
        log.info("line %d", number)
    assert target.lines == []
    target.may_write.set()
    handler.flush()
    assert target.lines == [f"INFO line {number}" for number in range(1000)]
    handler.close()


def test_lines_that_find_no_room_are_counted(log: logging.Logger) -> None:
    target = SlowLines()
    handler = LogThread(target, bytes_max=10)
    log.addHandler(handler)
    log.info("first")
    assert target.began.wait(10)
    log.info("x" * 100)  # one line always fits
    for _ in range(1234):
        log.info("lost")
    target.may_write.set()
    handler.flush()
    missing = "1,234 lines are missing here: the log is not written as fast as they come"
    assert target.lines == ["first", "x" * 100, missing]
    handler.close()


def test_a_line_that_says_why_the_process_ends_is_waited_for(log: logging.Logger) -> None:
    target = Lines()
    log.addHandler(LogThread(target))
    log.critical("the disk is gone")
    assert target.lines == ["the disk is gone"]


def test_the_line_of_a_failed_start_stands_behind_the_log(
    log: logging.Logger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    handler = LogThread(DelayedLines(sys.stderr))
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    log.propagate = True
    log.error("writing failed")
    say_after_the_log("sharecore: File too large")
    assert capsys.readouterr().err == "writing failed\nsharecore: File too large\n"
    handler.close()


class DelayedLines(logging.StreamHandler[Any]):
    """Writes a line only some time after it was asked to."""

    def emit(self, record: logging.LogRecord) -> None:
        time.sleep(0.05)
        super().emit(record)


@pytest.mark.process
@pytest.mark.parametrize("end", ["pass", "raise SystemExit(3)", "raise ValueError('why')"])
def test_nothing_is_lost_at_the_end_of_a_process(end: str) -> None:
    program = f"""
import logging
from sharecore.cli.logs import set_up_logging
set_up_logging("info", in_thread=True)
for number in range(90):
    logging.info("line %d", number)
{end}
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    lines = ended.stderr.splitlines()
    assert [line.rpartition(": ")[2] for line in lines[:90]] == [f"line {number}" for number in range(90)]
    assert (lines[-1] == "ValueError: why") is ("ValueError" in end)


def test_a_fork_waits_for_the_line_that_is_written() -> None:
    program = """
import logging, os, sys, threading, time
from sharecore.logs import LogThread

class Stream:
    lock, begun = threading.Lock(), threading.Event()
    def write(self, text):
        with self.lock:
            self.begun.set()
            time.sleep(0.2)
            sys.stderr.write(text)
    def flush(self):
        sys.stderr.flush()

logging.getLogger().addHandler(LogThread(logging.StreamHandler(Stream())))
logging.warning("parent")
Stream.begun.wait()
if os.fork() == 0:
    logging.warning("child")
    logging.shutdown()
    os._exit(0)
os.wait()
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert ended.stderr.split() == ["parent", "child"]
    assert ended.returncode == 0


def test_two_threads_may_fork_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sharecore.logs._FORK_S", 0)
    stream = io.StringIO()
    handler = LogThread(logging.StreamHandler(stream))
    handler.before_fork()
    with ThreadPoolExecutor(1) as other:
        other.submit(handler.before_fork).result()
    handler.after_fork_in_parent()
    handler.handle(logging.makeLogRecord({"msg": "written", "levelno": logging.INFO}))
    handler.close()
    assert stream.getvalue() == "written\n"


def test_a_child_of_a_fork_logs_for_itself() -> None:
    program = """
import logging, os, threading
from sharecore.cli.logs import set_up_logging
set_up_logging("info", in_thread=True)
logging.info("parent")

# other threads may hold the locks at the moment of the fork
handler, held, forked = logging.getLogger().handlers[0], threading.Event(), threading.Event()
guard = handler.filters[0]
def hold():
    with handler._changed, guard._lock, guard._limit._lock:
        held.set()
        forked.wait()
threading.Thread(target=hold, daemon=True).start()
held.wait()
child = os.fork()
if child == 0:
    logging.info("child")
    logging.shutdown()
    os._exit(0)
forked.set()
os.waitpid(child, 0)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert sorted(line.rpartition(": ")[2] for line in ended.stderr.splitlines()) == ["child", "parent"]
