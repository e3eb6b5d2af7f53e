"""The machine under a benchmark, for the line below a table."""

from __future__ import annotations

import os
import platform
import statistics
import time

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
