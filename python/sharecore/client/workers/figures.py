"""Counts of workers' activities, and Prometheus metrics."""

from __future__ import annotations

import threading
import weakref
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from sharecore.client.workers.health import NOT_RUNNING, Health

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Metric

_EDGES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_EDGE_NAMES = (*map(str, _EDGES), "+Inf")
_COUNTERS = {
    "handled": ("accepted", "Records whose processing the broker has confirmed."),
    "released": ("released", "Records released for redelivery."),
    "rejected": ("rejected", "Records that the handler rejected."),
    "given_up": ("given_up", "Records rejected or archived after they failed."),
    "lost": ("lost", "Records whose lock was lost before their processing was confirmed."),
    "failed": ("failed", "Failed handler calls."),
    "retried": ("retried", "Handler calls with a record that had failed before in the same delivery."),
}
"""The counters by name suffix: what they count, and their description."""


class Figures:
    """Counts one worker's activities, in all its runs; only updated in the handlers' loop.

    Args:
        name: of the worker.
        counts: records by outcome, as `Worker.counts`.
    """

    def __init__(self, name: str, counts: Counter[str]) -> None:
        self.name, self._counts = name, counts
        self.health: Callable[[], Health] = lambda: NOT_RUNNING
        self._attempts: Counter[str] = Counter()
        self._buckets = [0] * len(_EDGE_NAMES)
        self._seconds = 0.0

    def called(self, seconds: float, *, again: bool) -> None:
        """Count a completed handler call.

        Args:
            again: whether the record failed before in this delivery.
        """
        self._buckets[bisect_left(_EDGES, seconds)] += 1
        self._seconds += seconds
        if again:
            self._attempts["retried"] += 1

    def failed(self) -> None:
        """Count a call with an exception other than `Reject` and `Release`."""
        self._attempts["failed"] += 1

    def watch(self, health: Callable[[], Health]) -> None:
        """Include the worker in the metrics from now on.

        Args:
            health: returns its health; called in any thread.
        """
        self.health = health
        with _lock:
            _known.add(self)

    def count(self, what: str) -> int:
        """Return a counter's value."""
        return (self._attempts if what in ("failed", "retried") else self._counts)[what]

    def handling(self) -> tuple[list[int], float]:
        """Return the number of calls by duration bucket, and their total seconds."""
        return list(self._buckets), self._seconds


class WorkerMetrics:
    """A prometheus_client collector with the metrics of all workers of this process.

    Workers of the same name are added up.
    """

    def describe(self) -> Iterable[Metric]:
        """Return nothing: the names are fixed, and this is registered once."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Return the metrics, with a sample for each worker's name."""
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
        )

        by_name: defaultdict[str, list[Figures]] = defaultdict(list)
        for each in _all_figures():
            by_name[each.name].append(each)
        for name, (what, about) in _COUNTERS.items():
            counter = CounterMetricFamily(f"sharecore_worker_{name}", about, labels=["worker"])
            for worker, several in by_name.items():
                counter.add_metric([worker], sum(each.count(what) for each in several))
            yield counter
        seconds = HistogramMetricFamily(
            "sharecore_worker_handling_seconds", "Duration of handler calls.", labels=["worker"]
        )
        for worker, several in by_name.items():
            seconds.add_metric([worker], *_added_up(several))
        yield seconds
        health = {worker: [each.health() for each in several] for worker, several in by_name.items()}

        def gauge(name: str, about: str, value: Callable[[list[Health]], float]) -> Metric:
            made = GaugeMetricFamily(f"sharecore_worker_{name}", about, labels=["worker"])
            for worker, several in health.items():
                made.add_metric([worker], value(several))
            return made

        yield gauge(
            "ready", "1 if the worker is processing records.", lambda all_: all(each.ready for each in all_)
        )
        yield gauge(
            "last_poll_seconds",
            "Seconds since the worker last polled; 0 during a poll.",
            lambda all_: max(each.last_poll_seconds or 0.0 for each in all_),
        )
        yield gauge(
            "loop_lag_seconds",
            "Lag of the handlers' event loop.",
            lambda all_: max(each.loop_lag_seconds for each in all_),
        )
        in_hand = GaugeMetricFamily(
            "sharecore_worker_records_in_hand",
            "Records locked by the worker, by state.",
            labels=["worker", "state"],
        )
        for worker, all_ in health.items():
            for state in ("running", "queued", "retrying"):
                in_hand.add_metric([worker, state], sum(getattr(each, state) for each in all_))
        yield in_hand


def _added_up(several: Iterable[Figures]) -> tuple[list[tuple[str, float]], float]:
    """Return cumulative buckets, as Prometheus has them, and the total seconds."""
    counts, total = [0] * len(_EDGE_NAMES), 0.0
    for each in several:
        buckets, seconds = each.handling()
        counts = [one + other for one, other in zip(counts, buckets, strict=True)]
        total += seconds
    running, made = 0, []
    for edge, count in zip(_EDGE_NAMES, counts, strict=True):
        running += count
        made.append((edge, float(running)))
    return made, total


_lock = threading.Lock()
_known: weakref.WeakSet[Figures] = weakref.WeakSet()
_registered: weakref.WeakSet[CollectorRegistry] = weakref.WeakSet()
"""The registries with the workers' metrics."""


def _all_figures() -> list[Figures]:
    with _lock:
        return sorted(_known, key=lambda each: each.name)


def register_worker_metrics(registry: CollectorRegistry | None = None) -> CollectorRegistry:
    """Add the metrics of all workers of this process to a registry of prometheus_client, once.

    Args:
        registry: prometheus_client's default registry if omitted.

    Returns:
        The registry.
    """
    from prometheus_client import REGISTRY

    chosen = REGISTRY if registry is None else registry
    with _lock:
        is_new = chosen not in _registered
        _registered.add(chosen)
    if is_new:
        chosen.register(WorkerMetrics())
    return chosen
