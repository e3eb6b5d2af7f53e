"""Metrics of the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharecore.metrics import families as f
from sharecore.metrics.durations import BUCKETS

if TYPE_CHECKING:
    from sharecore.metrics.exposition import Exposition

_EDGES = (*(f"{2**i / 1e6:g}" for i in range(BUCKETS - 1)), "+Inf")
"""Upper bounds in seconds: the store counts in microseconds."""


def report(
    sheet: Exposition,
    figures: tuple[list[int], float, int, int, int, int, int, int],
    free: int,
    damaged: int,
    maintenance_failed: int,
) -> None:
    """Add the store's metrics, free disk space, damaged batches and failures of maintenance."""
    commits, seconds, written, failed, segments, held, live, staged = figures
    sheet.histogram(f.STORE_COMMIT_TIME, _EDGES, commits, seconds)
    for family, value in (
        (f.STORE_WRITTEN, written),
        (f.STORE_FAILURES, failed),
        (f.STORE_MAINTENANCE_FAILURES, maintenance_failed),
        (f.STORE_SEGMENTS, segments),
        (f.STORE_BYTES, held),
        (f.STORE_LIVE, live),
        (f.STORE_STAGED, staged),
        (f.STORE_DAMAGED, damaged),
        (f.DISK_FREE, free),
    ):
        sheet.add(family, value)
