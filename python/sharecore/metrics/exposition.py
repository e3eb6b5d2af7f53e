"""Samples as Prometheus reads them (text format 0.0.4)."""

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


class Sheet:
    """The samples of one scrape, but for those of which there may be thousands (see `Lines`)."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def add(self, family: Family, value: float, *labels: str) -> None:
        """One sample of a gauge or a counter."""
        self._metric(family).add_metric(labels, value)

    def info(self, family: Family, labels: Mapping[str, str]) -> None:
        """What stays the same while the process runs."""
        self._made[family.name] = InfoMetricFamily(family.name, family.doc, value=dict(labels))

    def summary(self, family: Family, count: float, total: float, *labels: str) -> None:
        """A count and a sum."""
        self._metric(family).add_metric(labels, count_value=count, sum_value=total)

    def histogram(
        self, family: Family, edges: Sequence[str], counts: Sequence[int], total: float, *labels: str
    ) -> None:
        """Count by bucket.

        Args:
            edges: the upper edges as they are printed, `+Inf` last.
            counts: how many fell into each bucket, not those below it.
        """
        running, buckets = 0, []
        for edge, count in zip(edges, counts, strict=True):
            running += count
            buckets.append((edge, running))
        self._metric(family).add_metric(labels, buckets, total)

    def registry(self, others: Iterable[Collector] = ()) -> CollectorRegistry:
        """All of it, those of other collectors behind it."""
        registry = CollectorRegistry()
        registry.register(_Made(list(self._made.values())))
        for other in others:
            registry.register(other)
        return registry

    def text(self, others: Iterable[Collector] = ()) -> bytes:
        """Return the same in the text format."""
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
    """Metrics that are there already."""

    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def describe(self) -> Iterable[Metric]:
        """Names are not checked against others: each scrape has a registry of its own."""
        return []

    def collect(self) -> Iterable[Metric]:
        """All of them."""
        return self._metrics


class Lines:
    """Samples of families that may have thousands: text from the start, each family's together.

    A library object a sample would cost ten times as much.
    """

    def __init__(self) -> None:
        self._lines: dict[str, tuple[Family, list[str]]] = {}

    def of(self, family: Family) -> list[str]:
        """Return the lines of a family, to append to: `labels_of(...)`, a blank, the value."""
        return self._lines.setdefault(family.sample_name, (family, []))[1]

    def each(self) -> Iterator[tuple[Family, list[str]]]:
        """Return the families that have lines, with them."""
        return (kept for kept in self._lines.values() if kept[1])

    def text(self) -> bytes:
        """Return the text format."""
        parts = []
        for family, lines in self.each():
            name = family.sample_name
            parts.append(f"# HELP {name} {family.doc}\n# TYPE {name} {family.kind.value}\n{name}")
            parts.append(f"\n{name}".join(lines))
            parts.append("\n")
        return "".join(parts).encode()


def labels_of(names: Sequence[str], values: Sequence[str]) -> str:
    """Labels as they stand behind a name, without the closing brace."""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))


def _escaped(value: str) -> str:
    if "\\" in value or '"' in value or "\n" in value:
        return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    return value
