"""A call that blocks the event loop of a broker is detected, wherever the broker runs."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest
from tests.harness import blocking
from tests.harness.running import RunningBroker

CALLS: dict[str, Callable[[], object]] = {
    "open": lambda: open(__file__).close(),
    "os.listdir": lambda: os.listdir("."),
    "os.stat": lambda: os.stat(__file__),
    "socket.getaddrinfo": lambda: socket.getaddrinfo("127.0.0.1", 1),
    "time.sleep": lambda: time.sleep(0),
    "subprocess.Popen": lambda: subprocess.run(["true"], check=True),
    "Condition.wait": lambda: threading.Event().wait(0.001),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_blocks_is_found(broker: RunningBroker, name: str) -> None:
    async def serve() -> None:
        CALLS[name]()

    asyncio.run_coroutine_threadsafe(serve(), broker.loop).result()
    reports = blocking.take_reports()
    assert any(each.startswith(name) for each in reports), reports
    assert all("in test_a_call_that_blocks_is_found.<locals>.serve" in each for each in reports)


def test_calls_of_other_threads_and_without_a_disk_are_not(broker: RunningBroker) -> None:
    async def serve() -> None:
        await asyncio.to_thread(os.stat, __file__)
        await asyncio.get_running_loop().getaddrinfo("127.0.0.1", 1)
        os.listdir("/dev/fd")

    asyncio.run_coroutine_threadsafe(serve(), broker.loop).result()
    os.stat(__file__)
    assert blocking.take_reports() == []


def test_a_broker_in_a_process_of_its_own_is_watched() -> None:
    program = "import asyncio, os\nasync def main(): os.stat('/etc')\nos.stat('/etc'); asyncio.run(main())"
    subprocess.run([sys.executable, "-c", program, "serve"], check=True)
    (report,) = blocking.take_reports()
    assert report.startswith("os.stat('/etc',) blocks the event loop")
    subprocess.run([sys.executable, "-c", program, "consume"], check=True)
    assert blocking.take_reports() == []
