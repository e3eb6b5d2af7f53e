"""What workers did, counted, and as metrics of Prometheus."""

from __future__ import annotations

import threading
import weakref
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from sharecore.client.workers.health import NOT_RUNNING, Health

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Metric

_EDGES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_EDGE_NAMES = (*map(str, _EDGES), "+Inf")
_COUNTERS = {
    "handled": ("accepted", "Records whose handling the broker has confirmed."),
    "released": ("released", "Records given back for another delivery."),
    "rejected": ("rejected", "Records that the handler rejected."),
    "given_up": ("given_up", "Records rejected or archived after they failed."),
    "lost": ("lost", "Records whose lock was lost before their handling was confirmed."),
    "failed": ("failed", "Calls of the handler that failed."),
    "retried": ("retried", "Calls of the handler with a record that had failed before in the same delivery."),
}
"""The counters, by the part of the name that tells them apart: what they count, and their description."""


class Figures:
    """Counts what one worker did, in all its runs; only the handlers' loop adds to it.

    Args:
        name: the worker's.
        counts: records by what became of them, as `Worker.counts`.
    """

    def __init__(self, name: str, counts: Counter[str]) -> None:
        self.name, self._counts = name, counts
        self.health: Callable[[], Health] = lambda: NOT_RUNNING
        self._attempts: Counter[str] = Counter()
        self._buckets = [0] * len(_EDGE_NAMES)
        self._seconds = 0.0

    def called(self, seconds: float, *, again: bool) -> None:
        """Count a call of the handler that has ended.

        Args:
            again: the record failed before in this delivery.
        """
        self._buckets[bisect_left(_EDGES, seconds)] += 1
        self._seconds += seconds
        if again:
            self._attempts["retried"] += 1

    def failed(self) -> None:
        """Count a call that raised something that is neither `Reject` nor `Release`."""
        self._attempts["failed"] += 1

    def watch(self, health: Callable[[], Health]) -> None:
        """Have the worker among the metrics from now on.

        Args:
            health: returns how it is; called in any thread.
        """
        self.health = health
        with _lock:
            _known.add(self)

    def count(self, what: str) -> int:
        """Return a counter's value."""
        return (self._attempts if what in ("failed", "retried") else self._counts)[what]

    def handling(self) -> tuple[list[int], float]:
        """Return how many calls took how long, by bucket, and the seconds of all."""
        return list(self._buckets), self._seconds


class WorkerMetrics:
    """A collector of prometheus_client with the metrics of all workers that have run in this process.

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
            "sharecore_worker_handling_seconds", "How long calls of the handler took.", labels=["worker"]
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

        yield gauge("ready", "1: the worker handles records.", lambda all_: all(each.ready for each in all_))
        yield gauge(
            "last_poll_seconds",
            "Seconds since the worker last asked for records; 0 while it waits for some.",
            lambda all_: max(each.last_poll_seconds or 0.0 for each in all_),
        )
        yield gauge(
            "loop_lag_seconds",
            "How late the handlers' event loop comes to what is due.",
            lambda all_: max(each.loop_lag_seconds for each in all_),
        )
        in_hand = GaugeMetricFamily(
            "sharecore_worker_records_in_hand",
            "Records that are locked for the worker, by what they wait for.",
            labels=["worker", "state"],
        )
        for worker, all_ in health.items():
            for state in ("running", "queued", "retrying"):
                in_hand.add_metric([worker, state], sum(getattr(each, state) for each in all_))
        yield in_hand


def _added_up(several: Iterable[Figures]) -> tuple[list[tuple[str, float]], float]:
    """Return the buckets as Prometheus has them, each with those before it, and the seconds of all."""
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
_registered: weakref.WeakSet[Any] = weakref.WeakSet()
"""The registries that have the workers' metrics."""


def _all_figures() -> list[Figures]:
    with _lock:
        return sorted(_known, key=lambda each: each.name)


def register_worker_metrics(registry: CollectorRegistry | None = None) -> CollectorRegistry:
    """Add the metrics of all workers of this process to a registry of prometheus_client, once.

    Args:
        registry: prometheus_client's own without it, which its servers show.

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
