"""Throughput in batches beside a local disk, and what a home costs under a steady load."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from benches.bucket.latency import Counts
from benches.requests.subject import Subject

Figures = dict[str, float]
CLIENTS = 20
"""Producers in batches."""
_RECORDS, _RECORD_BYTES = 100, 1000
_IN_FLIGHT = 20
"""Batches of each producer under way: with all of them, enough for eight objects of 4 MiB."""
_FIRST_S = 70.0
"""Requests saved in an idle minute are used up before the cost is measured."""


def batches(subject: Subject, seconds: float, passed: Callable[[], Counts]) -> Figures:
    """Produce in batches; return MB/s, what the bucket takes and gives, and how many creates were under
    way on average, and their size.
    """
    words = [f"records={_RECORDS}", f"record_bytes={_RECORD_BYTES}", f"in_flight={_IN_FLIGHT}"]
    before, began_s = passed(), time.monotonic()
    found = subject.measure("produce", CLIENTS, seconds, 0, 0, words)
    took_s, through = time.monotonic() - began_s, passed().since(before)
    return {
        "MB/s": found["requests_s"] * _RECORDS * _RECORD_BYTES / 1e6,
        "MB/s to the bucket": through.put_bytes / took_s / 1e6,
        "MB/s from the bucket": through.get_bytes / took_s / 1e6,
        "creates under way": through.put_s / took_s,
        "MB a create": through.put_bytes / max(through.puts, 1) / 1e6,
        "CPU s a GB": found["broker_cpu_us"] / (_RECORDS * _RECORD_BYTES) * 1e3,
    }


def cost(subject: Subject, rate: int, seconds: float, passed: Callable[[], Counts]) -> Figures:
    """Produce and settle records of 1 kB at a rate, with one producer; return the cost."""
    members = max(1, min(16, rate // 100))
    found: Figures = {}

    def run() -> None:
        more = [f"record_bytes={_RECORD_BYTES}"]
        found.update(subject.measure("end-to-end", members, _FIRST_S + seconds, rate, rate, more))

    load = threading.Thread(target=run)
    load.start()
    time.sleep(_FIRST_S)
    before, began_s = passed(), time.monotonic()
    time.sleep(seconds)
    through, took_s = passed().since(before), time.monotonic() - began_s
    load.join()
    return {
        "records/s received": found["requests_s"],
        "creates/s": through.puts / took_s,
        "lists and reads/s": (through.lists + through.gets) / took_s,
        "dollars an hour": through.dollars / took_s * 3600,
        "produced to received: p50, s": found["p50_ms"] / 1000,
    }
