"""Find calls that block the thread of a broker's event loop while it serves.

One loop serves everybody: a file that is slow to open or a name that is slow to resolve stops all clients.
Python raises an audit event for most calls of that kind; those that raise none are wrapped. Each call becomes
a file in a directory of reports, and the test during which it happened fails.

What `sharecore._core` does raises no event.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition, Lock, Thread, get_ident
from types import FrameType
from typing import Any

DIRECTORY = "BLOCKING_CALLS_DIRECTORY"
"""The environment variable that names the directory; who finds it in the environment watches."""
_WATCHED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "watched")
_FORBIDDEN = frozenset(
    {
        "fcntl.flock",
        "fcntl.lockf",
        "glob.glob",
        "http.client.connect",
        "open",
        "os.chmod",
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.link",
        "os.listdir",
        "os.mkdir",
        "os.posix_spawn",
        "os.remove",
        "os.rename",
        "os.rmdir",
        "os.scandir",
        "os.symlink",
        "os.system",
        "os.truncate",
        "os.utime",
        "shutil.copyfile",
        "shutil.move",
        "shutil.rmtree",
        "socket.connect",
        "socket.getaddrinfo",
        "socket.gethostbyaddr",
        "socket.gethostbyname",
        "socket.getnameinfo",
        "sqlite3.connect",
        "subprocess.Popen",
        "tempfile.mkdtemp",
        "tempfile.mkstemp",
        "urllib.Request",
    }
)
"""Audit events of calls that wait for a disk, the network, another process, or time."""
_WRAPPED = (
    *(
        (os, name)
        for name in ("stat", "lstat", "statvfs", "access", "readlink", "fsync", "fdatasync", "waitpid")
    ),
    (time, "sleep"),
    (Condition, "wait"),
    (Thread, "join"),
)
"""Calls of that kind without an event; wrapped as long as a thread is watched."""
_KERNEL_MEMORY = ("/dev/", "/proc/", "/sys/")
"""What lies there is read without a disk."""
_ALLOWED = (
    # before clients are accepted, and after they are gone
    ("sharecore/broker/broker.py", "Broker.start"),
    ("sharecore/broker/broker.py", "Broker.stop"),
    ("sharecore/broker/process/run.py", "_serve"),
    # right before the process ends
    ("sharecore/broker/store/home_watch.py", "HomeWatch._enter"),
    ("asyncio/runners.py", "Runner.close"),
    # a module or a schema is loaded once in the life of a process
    ("<frozen importlib._bootstrap>", "_find_and_load"),
    ("<frozen importlib._bootstrap>", "_handle_fromlist"),
    ("sharecore/protocol/entities.py", "_code"),
    # the line that reports a fatal error
    ("sharecore/logs.py", "LogThread.flush"),
    # our own source for the lines of a traceback, once per file
    ("linecache.py", "updatecache"),
    ("linecache.py", "checkcache"),
    # until the new thread runs
    ("threading.py", "Thread.start"),
    # a test that inspects the broker from inside
    ("tests/harness/running.py", "RunningBroker.look.<locals>.on_loop"),
)
"""Functions, by the end of their file's path, that may block, as may what they call."""
_DEPTH_MAX = 12

_threads: set[int] = set()
_lock = Lock()
_hooked: list[object] = []
_originals: list[tuple[Any, str, Callable[..., Any]]] = []
_collecting: list[tuple[int, list[str]]] = []
_reporting = False


def watch_processes() -> str:
    """Have processes watched that this one starts; return the directory of reports."""
    from tempfile import mkdtemp  # a watched broker does not import it

    directory = os.environ[DIRECTORY] = mkdtemp(prefix="blocking-")
    rest = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each and each != _WATCHED]
    os.environ["PYTHONPATH"] = os.pathsep.join([_WATCHED, *rest])
    return directory


def watch_this_process() -> None:
    """Watch the loop of the main thread, where this process is a broker that a watched one has started."""
    if "serve" in sys.orig_argv:
        # tests capture log lines of their own process with such handlers
        _wrap(logging.StreamHandler, "emit")
        _watch(get_ident())


@contextmanager
def watched_thread() -> Iterator[None]:
    """Watch the loop that runs in this thread meanwhile."""
    thread = get_ident()
    _watch(thread)
    try:
        yield
    finally:
        _leave(thread)


@contextmanager
def calls_of_others() -> Iterator[list[str]]:
    """Collect what would block a loop, of all threads but this one, whether or not a loop runs in them."""
    calls: list[str] = []
    _collecting.append((get_ident(), calls))
    try:
        yield calls
    finally:
        _collecting.pop()


def take_reports() -> list[str]:
    """Return the calls that have blocked a loop since the last time, each with its stack."""
    directory = os.environ[DIRECTORY]
    reports = []
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name)
        with open(path, encoding="utf-8") as file:
            reports.append(file.read())
        os.unlink(path)
    return reports


def _watch(thread: int) -> None:
    with _lock:
        if not _hooked:
            _hooked.append(_hook)
            sys.addaudithook(_hook)
        if not _threads:
            for owner, name in _WRAPPED:
                _wrap(owner, name)
        _threads.add(thread)


def _leave(thread: int) -> None:
    with _lock:
        _threads.discard(thread)
        if not _threads:
            for owner, name, original in _originals:
                setattr(owner, name, original)
            _originals.clear()


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _FORBIDDEN and (_collecting or get_ident() in _threads):
        _notice(event, arguments)


def _wrap(owner: Any, name: str) -> None:
    original: Callable[..., Any] = getattr(owner, name)

    def watched(*arguments: Any, **named: Any) -> Any:
        if _collecting or get_ident() in _threads:
            _notice(f"{owner.__name__}.{name}", arguments)
        return original(*arguments, **named)

    _originals.append((owner, name, original))
    setattr(owner, name, watched)
    for functions in (os.supports_dir_fd, os.supports_effective_ids, os.supports_fd):
        if original in functions:
            functions.add(watched)


def _notice(call: str, arguments: tuple[Any, ...]) -> None:
    """Report a call unless no loop runs here, it cannot block, or it is allowed."""
    global _reporting
    mine = get_ident()
    waits = call in ("Condition.wait", "Thread.join", "time.sleep")
    collected = [calls for thread, calls in _collecting if thread != mine and not waits]
    blocks = mine in _threads and _runs_loop()
    if _reporting or not (collected or blocks) or _cannot_block(call, arguments):
        return
    stack = list(_frames(sys._getframe(2)))
    for path, function, _ in stack:
        if any(function == allowed and path.endswith(end) for end, allowed in _ALLOWED):
            return
    lines = [f"{path}:{line} in {function}" for path, function, line in stack[:_DEPTH_MAX]]
    for calls in collected:
        calls.append("\n    ".join([f"{call}{repr(arguments)[:200]}", *lines]))
    if not blocks:
        return
    title = f"{call}{repr(arguments)[:200]} blocks the event loop of process {os.getpid()}:"
    _reporting = True
    try:
        path = os.path.join(os.environ[DIRECTORY], f"{os.getpid()}-{time.monotonic_ns()}")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n    ".join([title, *lines]) + "\n")
    finally:
        _reporting = False


def _runs_loop() -> bool:
    events = sys.modules.get("asyncio.events")
    running = getattr(events, "_get_running_loop", None)
    return running is not None and running() is not None


def _frames(frame: FrameType | None) -> Iterator[tuple[str, str, int]]:
    while frame is not None:
        yield frame.f_code.co_filename, frame.f_code.co_qualname, frame.f_lineno
        frame = frame.f_back


def _cannot_block(call: str, arguments: tuple[Any, ...]) -> bool:
    first: Any = arguments[0] if arguments else None
    if call == "socket.connect":
        return bool(first.gettimeout() == 0)
    if call == "Condition.wait":
        return arguments[1:] == (0,)
    if isinstance(first, int) and not call.endswith(("sync", "sleep", "pid")):
        return True  # a file that is open
    return isinstance(first, str) and first.startswith(_KERNEL_MEMORY)
