"""The machine under a benchmark, for the line below a table."""

from __future__ import annotations

import os
import platform
import statistics
import tempfile
import time
from pathlib import Path

SYNCS = 2000
SYNCED_BYTES = 400
WAKES = 200
SLOW_US = 100
"""Beyond this the CPUs and not the brokers say how long a small request takes."""


def machine() -> str:
    """CPUs, system, and how long one CPU takes to wake another, with what to do where that is long."""
    what = f"{os.cpu_count()} CPUs for all; {platform.platform()}"
    microseconds = wake_us()
    if microseconds is None:
        return what
    what += f"; a CPU wakes another in {microseconds:.0f} µs"
    if microseconds > SLOW_US:
        what += (
            "\nthat is slow, and rates and latency of small requests with it: "
            "docs/benchmarks.md#cpus-that-fall-asleep"
        )
    return what


def wake_us() -> float | None:
    """Median time from a write into a pipe on one CPU until a process that sleeps on another has read it, in
    microseconds; None where there is one CPU only or processes cannot be bound to one.
    """
    if not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2:
        return None
    here, there = sorted(os.sched_getaffinity(0))[:2]
    asks_out, asks_in = os.pipe()
    says_out, says_in = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.sched_setaffinity(0, {there})
            while os.read(asks_out, 1) == b"?":
                os.write(says_in, b"!")
        finally:
            os._exit(0)
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {here})
    times = []
    try:
        for _ in range(WAKES):
            began = time.perf_counter()
            os.write(asks_in, b"?")
            os.read(says_out, 1)
            times.append(time.perf_counter() - began)
    finally:
        os.write(asks_in, b".")
        os.waitpid(child, 0)
        os.sched_setaffinity(0, before)
        for end in (asks_out, asks_in, says_out, says_in):
            os.close(end)
    # there and back again
    return statistics.median(times) / 2 * 1e6


class Stolen:
    """How much of the CPUs' time the host has given to somebody else; nothing where no kernel tells."""

    def __init__(self) -> None:
        self._before = self._now()

    @staticmethod
    def _now() -> tuple[int, int]:
        try:
            with open("/proc/stat", encoding="ascii") as stat:
                ticks = [int(each) for each in stat.readline().split()[1:9]]
        except OSError:
            return 0, 0
        return ticks[-1], sum(ticks)

    @property
    def percent(self) -> float:
        """Of all CPU time."""
        stolen, total = (now - before for now, before in zip(self._now(), self._before, strict=True))
        return 100 * stolen / max(total, 1)


def sync_ms(directory: Path) -> tuple[float, float]:
    """What it takes to make a small write durable, in milliseconds: median and 99th percentile.

    Within a file that has its size, one a millisecond: what a broker at 1,000 records a second gets at best.
    """
    times = []
    with tempfile.TemporaryFile(dir=directory) as file:
        file.write(bytes(SYNCS * SYNCED_BYTES))
        file.flush()
        os.fsync(file.fileno())
        due = time.perf_counter()
        for number in range(SYNCS):
            due += 0.001
            time.sleep(max(0, due - time.perf_counter()))
            began = time.perf_counter()
            os.pwrite(file.fileno(), b"x" * SYNCED_BYTES, number * SYNCED_BYTES)
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - began) * 1e3)
    parts = statistics.quantiles(times, n=100)
    return parts[49], parts[98]
