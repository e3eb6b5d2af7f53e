"""Runs a broker as this process's one task, until a signal stops it."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Sequence

from sharecore._core import use_one_heap
from sharecore.broker.broker import Broker
from sharecore.broker.ground import Ground
from sharecore.config import BrokerConfig
from sharecore.network import loop_factory
from sharecore.security.first_users import FirstUser

log = logging.getLogger("sharecore.broker")

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run(config: BrokerConfig, users: Sequence[FirstUser] = (), ground: Ground | None = None) -> int:
    """Serves until SIGINT or SIGTERM; returns the exit status.

    Args:
        config: the configuration.
        users: users of SCRAM that are there from the start.
        ground: what the broker stands on; its data directory, unless another is given.

    Raises:
        ConfigError: the configuration cannot be served.
        OSError: an address or the data directory cannot be had.
    """
    if "MALLOC_ARENA_MAX" not in os.environ:
        use_one_heap()
    _raise_file_limit()
    # what is kept holds passwords, salted or as they were set at run time: it is nobody else's to read
    os.umask(0o077)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(_serve(config, users, ground))


async def _serve(config: BrokerConfig, users: Sequence[FirstUser], ground: Ground | None) -> int:
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()

    def stop(number: signal.Signals) -> None:
        if stopping.is_set():
            # whoever asks twice does not want to wait: what was answered is safe, as after kill -9
            os._exit(128 + number)
        log.info("%s: stopping", number.name)
        stopping.set()

    for number in _SIGNALS:
        loop.add_signal_handler(number, stop, number)
    broker = Broker(config, users=users, ground=ground)
    await broker.start()
    print(broker.describe(), flush=True)
    # what is alive now stays: no collection needs to look at it again
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)
    try:
        await stopping.wait()
    finally:
        await broker.stop()
    log.info("stopped")
    return 0


def _raise_file_limit() -> None:
    """A connection is a file: as many as the system lets this process have."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            log.debug("the limit of open files stays at %d", soft)
