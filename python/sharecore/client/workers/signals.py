"""Runs a worker until SIGTERM or SIGINT; a child process forked by a handler keeps its own signals."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from types import FrameType

from sharecore.client.workers.worker import Worker

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_Previous = dict[int, Callable[[int, FrameType | None], object] | int | None]
_installed: list[_Previous] = []
"""The previous signal handlers; at most one entry, in this process and, until its fork is over, in a child.
"""
_masks: dict[int, set[signal.Signals] | set[int]] = {}
"""The signals that a forking thread had already blocked."""


async def run_until_signal(work: Worker, config: Mapping[str, object] | None = None) -> None:
    """Run a worker. SIGTERM and SIGINT drain it; a second one cancels running handlers, and interrupts a
    handler that blocks the event loop.

    Raises:
        ConfigError, KafkaError: as `Worker.run`.
    """
    loop = asyncio.get_running_loop()
    running = asyncio.ensure_future(work.run(config))
    received = 0

    def receive() -> None:
        nonlocal received
        received += 1
        if received == 1:
            # not at once: the run may not have begun
            loop.call_soon_threadsafe(work.stop)
        else:
            loop.call_soon_threadsafe(running.cancel)
            work.interrupt()

    with _signals(receive):
        try:
            await running
        except asyncio.CancelledError:
            if not received:
                raise


@contextlib.contextmanager
def _signals(receive: Callable[[], None]) -> Iterator[None]:
    """Call `receive` at each signal to this process, between any two steps of the main thread.

    The loop's add_signal_handler is not used: a forked child shares its wake-up socket, so that a signal to
    the child would look like one to the worker.
    """
    pid = os.getpid()

    def handle(number: int, _: FrameType | None) -> None:
        if os.getpid() == pid:
            receive()
        else:
            _restore_in_child()
            os.kill(os.getpid(), number)

    previous: _Previous = {number: signal.signal(number, handle) for number in _SIGNALS}
    _installed.append(previous)
    try:
        yield
    finally:
        _installed.remove(previous)
        _restore(previous)


def _restore(previous: _Previous) -> None:
    for number, action in previous.items():
        signal.signal(number, signal.SIG_DFL if action is None else action)


def _hold_signals() -> None:
    """Block signals in a forking thread: Python drops those that a child gets before it has begun."""
    _masks[threading.get_ident()] = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS if _installed else ())


def _let_signals_through() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _masks.pop(threading.get_ident()))


def _begin_child() -> None:
    _restore_in_child()
    _let_signals_through()


def _restore_in_child() -> None:
    """Restore in a forked child the signal handlers from before the worker, without the loop's wake-up."""
    if _installed:
        previous = _installed[0]
        _installed.clear()
        with contextlib.suppress(ValueError):  # not the main thread
            signal.set_wakeup_fd(-1)
        _restore(previous)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_hold_signals, after_in_parent=_let_signals_through, after_in_child=_begin_child
    )
