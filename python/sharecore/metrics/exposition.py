"""Samples in Prometheus's text format 0.0.4."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from prometheus_client import generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector, CollectorRegistry

from sharecore.metrics.family import Family, Kind

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_MADE = {
    Kind.GAUGE: GaugeMetricFamily,
    Kind.COUNTER: CounterMetricFamily,
    Kind.SUMMARY: SummaryMetricFamily,
    Kind.INFO: InfoMetricFamily,
}


class Exposition:
    """Samples of one scrape, except families with thousands of samples (see `Lines`)."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def add(self, family: Family, value: float, *labels: str) -> None:
        """Add a sample of a gauge or a counter."""
        self._metric(family).add_metric(labels, value)

    def info(self, family: Family, labels: Mapping[str, str]) -> None:
        """Add constant labels of the process."""
        self._made[family.name] = InfoMetricFamily(family.name, family.doc, value=dict(labels))

    def summary(self, family: Family, count: float, total: float, *labels: str) -> None:
        """Add a count and a sum."""
        self._metric(family).add_metric(labels, count_value=count, sum_value=total)

    def histogram(
        self, family: Family, edges: Sequence[str], counts: Sequence[int], total: float, *labels: str
    ) -> None:
        """Add the counts of buckets.

        Args:
            edges: upper bounds as printed, `+Inf` last.
            counts: non-cumulative count of each bucket.
        """
        running, buckets = 0, []
        for edge, count in zip(edges, counts, strict=True):
            running += count
            buckets.append((edge, running))
        self._metric(family).add_metric(labels, buckets, total)

    def registry(self, others: Iterable[Collector] = ()) -> CollectorRegistry:
        """Return a registry of all samples, followed by those of other collectors."""
        registry = CollectorRegistry()
        registry.register(_Made(list(self._made.values())))
        for other in others:
            registry.register(other)
        return registry

    def text(self, others: Iterable[Collector] = ()) -> bytes:
        """Return all samples in the text format."""
        return generate_latest(self.registry(others))

    def _metric(self, family: Family) -> Any:
        metric = self._made.get(family.name)
        if metric is None:
            if family.kind is Kind.HISTOGRAM:
                metric = HistogramMetricFamily(family.name, family.doc, labels=family.labels)
            else:
                metric = _MADE[family.kind](family.name, family.doc, labels=family.labels)
            self._made[family.name] = metric
        return metric


class _Made(Collector):
    """Collected metrics."""

    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def describe(self) -> Iterable[Metric]:
        """Return nothing: each scrape has a separate registry, so names need no check."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Return all metrics."""
        return self._metrics


class Lines:
    """Samples of families with thousands of samples, grouped by family, as text.

    A library object per sample would cost ten times as much.
    """

    def __init__(self) -> None:
        self._lines: dict[str, tuple[Family, list[str]]] = {}

    def of(self, family: Family) -> list[str]:
        """Return a family's lines, to append `labels_of(...)`, a space and the value."""
        return self._lines.setdefault(family.sample_name, (family, []))[1]

    def each(self) -> Iterator[tuple[Family, list[str]]]:
        """Return the families with lines."""
        return (kept for kept in self._lines.values() if kept[1])

    def text(self) -> bytes:
        """Return the lines in the text format."""
        parts = []
        for family, lines in self.each():
            name = family.sample_name
            parts.append(f"# HELP {name} {family.doc}\n# TYPE {name} {family.kind.value}\n{name}")
            parts.append(f"\n{name}".join(lines))
            parts.append("\n")
        return "".join(parts).encode()


def labels_of(names: Sequence[str], values: Sequence[str]) -> str:
    """Return labels in the text format, without the closing brace."""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))


def _escaped(value: str) -> str:
    if "\\" in value or '"' in value or "\n" in value:
        return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    return value
