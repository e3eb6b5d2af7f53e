"""Run a broker as a process until a signal stops it."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial

from sharecore._core import return_memory_soon, use_one_heap
from sharecore.broker.backend import Backend
from sharecore.broker.broker import Broker
from sharecore.broker.process.heap import keep_heap_small
from sharecore.broker.store.backend import StoreBackend
from sharecore.clock import SystemClock
from sharecore.config import BrokerConfig
from sharecore.network import loop_factory
from sharecore.security.first_users import FirstUser
from sharecore.waiting import MovableTime

log = logging.getLogger("sharecore.broker")

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_HANGUP: signal.Signals | None = getattr(signal, "SIGHUP", None)
"""None on Windows."""


class Announce(Enum):
    """How a broker announces that it serves.

    Attributes:
        TEXT: a sentence on standard output.
        JSON: an object with its addresses, one line on standard output.
        LOG: a log line, so that only the log is written.
    """

    TEXT = "text"
    JSON = "json"
    LOG = "log"


@dataclass(frozen=True)
class Manner:
    """Process options of a broker.

    Attributes:
        control: serve the control endpoint, through which tests move the time of acquisition locks.
        announce: how it announces that it serves.
        until_stdin_closes: stop when standard input closes, such as when the parent process dies.
    """

    control: bool = False
    announce: Announce = Announce.TEXT
    until_stdin_closes: bool = False


def run(
    config: BrokerConfig,
    users: Sequence[FirstUser] = (),
    backend: Backend | None = None,
    manner: Manner = Manner(),  # noqa: B008 - it is immutable
) -> int:
    """Serve until SIGINT or SIGTERM, or SIGHUP without TLS; return the exit status.

    Args:
        config: the configuration.
        users: initial SCRAM users.
        backend: None for the broker's data directory.
        manner: process options.

    Raises:
        ConfigError: the configuration is invalid.
        OSError: an address or the data directory is not available.
    """
    if "MALLOC_ARENA_MAX" not in os.environ:
        use_one_heap()
    return_memory_soon()
    _raise_file_limit()
    # the data directory contains passwords, salted or as altered: only the owner may read it
    os.umask(0o077)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(_serve(config, users, backend, manner))


async def _serve(
    config: BrokerConfig, users: Sequence[FirstUser], backend: Backend | None, manner: Manner
) -> int:
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()

    def stop(number: signal.Signals) -> None:
        if stopping.is_set():
            if number == _HANGUP:
                return  # a terminal that closes may send it twice
            # a second signal stops at once: answered writes are safe, as after kill -9
            logging.shutdown()
            os._exit(128 + number)
        log.info("%s: stopping", number.name)
        stopping.set()

    for number in _SIGNALS:
        loop.add_signal_handler(number, stop, number)
    # ignored under nohup, which is to outlive its terminal; TLS listeners reload certificates instead
    if _HANGUP is not None and signal.getsignal(_HANGUP) is not signal.SIG_IGN:
        loop.add_signal_handler(_HANGUP, stop, _HANGUP)
    lock_time = MovableTime(SystemClock(), loop) if manner.control else None
    if manner.until_stdin_closes:
        _watch_stdin(loop, stopping)
    waited = None
    if config.sharecore_durability == "bucket":
        # imported on demand: other starts do not pay for it
        from sharecore.broker.lobby.standby import Lobby

        lobby = Lobby(config)
        if not await _unless_stopped(lobby.wait(partial(_announce_standby, manner)), stopping):
            return 0
        waited = lobby.broker
        backend = StoreBackend(is_tried=lobby.is_tried, former=lobby.former, standby=lobby.watching)
    broker = Broker(config, users=users, backend=backend, lock_time=lock_time, lobby=waited)
    if not await _unless_stopped(broker.start(), stopping):
        return 0
    control = None
    if lock_time is not None:
        from sharecore.broker.process.control import Control

        control = Control(lock_time, loop)
    if manner.announce is Announce.JSON:
        addresses = broker.addresses() | ({} if control is None else {"control": control.url})
        print(json.dumps(addresses), flush=True)
    elif manner.announce is Announce.LOG:
        log.info("%s", broker.describe())
    else:
        print(broker.describe(), flush=True)
    # exclude long-lived objects from garbage collection
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)
    keep_heap_small()
    try:
        await stopping.wait()
    finally:
        if control is not None:
            await asyncio.to_thread(control.close)
        await broker.stop()
    log.info("stopped")
    return 0


def _announce_standby(manner: Manner, text: str) -> None:
    """Say that this broker stands by; programs that wait for its addresses wait until it serves."""
    if manner.announce is Announce.TEXT:
        print(text, flush=True)
    else:
        log.info("%s", text)


async def _unless_stopped(work: Coroutine[object, None, None], stopping: asyncio.Event) -> bool:
    """Do work that may take as long as another broker leads; return False if a signal came first."""
    working = asyncio.ensure_future(work)
    signalled = asyncio.ensure_future(stopping.wait())
    await asyncio.wait({working, signalled}, return_when=asyncio.FIRST_COMPLETED)
    if not working.done():
        working.cancel()
    signalled.cancel()
    try:
        await working
    except asyncio.CancelledError:
        log.info("stopped")
        return False
    return True


def _watch_stdin(loop: asyncio.AbstractEventLoop, stopping: asyncio.Event) -> None:
    """Set `stopping` when standard input ends; discard its contents."""

    def read() -> None:
        while os.read(0, 4096):
            pass
        log.info("standard input closed: stopping")
        loop.call_soon_threadsafe(stopping.set)

    threading.Thread(target=read, name="sharecore stdin", daemon=True).start()


def _raise_file_limit() -> None:
    """Raise the open-file limit to the hard limit, as each connection needs a file."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            log.debug("cannot raise the limit of open files; it stays at %d", soft)
