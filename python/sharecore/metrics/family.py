"""Metric definitions: name, labels, and the corresponding Kafka metrics."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property


class Kind(Enum):
    """Metric types, named as in Prometheus."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"
    INFO = "info"


@dataclass(frozen=True)
class Family:
    """One metric with its labels.

    Args:
        name: the family's name; a counter's samples end in `_total`.
        doc: its description.
        labels: its label names.
        kafka: corresponding attributes of Kafka's MBeans, as `domain:type=t,key=*:attribute`.
    """

    name: str
    kind: Kind
    doc: str
    labels: tuple[str, ...] = ()
    kafka: tuple[str, ...] = ()

    @cached_property
    def sample_name(self) -> str:
        """Return the name of its samples, or of the count for a histogram."""
        return self.name + {Kind.COUNTER: "_total", Kind.INFO: "_info"}.get(self.kind, "")


def gauge(name: str, doc: str, *labels: str, kafka: tuple[str, ...] = ()) -> Family:
    """Return a value that goes up and down."""
    return Family(name, Kind.GAUGE, doc, labels, kafka)


def counter(name: str, doc: str, *labels: str, kafka: tuple[str, ...] = ()) -> Family:
    """Return a value that only increases until the process ends."""
    return Family(name, Kind.COUNTER, doc, labels, kafka)


def histogram(name: str, doc: str, *labels: str, kafka: tuple[str, ...] = ()) -> Family:
    """Return counts by bucket, from which Kafka's averages, percentiles and rates follow."""
    return Family(name, Kind.HISTOGRAM, doc, labels, kafka)


def summary(name: str, doc: str, *labels: str, kafka: tuple[str, ...] = ()) -> Family:
    """Return a count and a sum."""
    return Family(name, Kind.SUMMARY, doc, labels, kafka)
