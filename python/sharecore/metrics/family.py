"""What a metric is: its name, its labels, and which of Kafka's it stands for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property


class Kind(Enum):
    """Types of metrics, as Prometheus names them."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"
    INFO = "info"


@dataclass(frozen=True)
class Family:
    """One metric with its labels.

    Args:
        name: of the family; a counter's samples end in `_total`.
        doc: what it says, for people.
        labels: names of its labels.
        kafka: the attributes of Kafka's MBeans that it stands for, as `domain:type=t,key=*:attribute`.
    """

    name: str
    kind: Kind
    doc: str
    labels: tuple[str, ...] = ()
    kafka: tuple[str, ...] = ()

    @cached_property
    def sample_name(self) -> str:
        """Name of its samples, of the count for a histogram."""
        return self.name + {Kind.COUNTER: "_total", Kind.INFO: "_info"}.get(self.kind, "")


def gauge(name: str, doc: str, *labels: str, kafka: tuple[str, ...] = ()) -> Family:
    """Return a value that goes up and down."""
    return Family(name, Kind.GAUGE, doc, labels, kafka)


def counter(name: str, doc: str, *labels: str, kafka: tuple[str, ...] = ()) -> Family:
    """Return a value that only grows, until the process ends."""
    return Family(name, Kind.COUNTER, doc, labels, kafka)


def histogram(name: str, doc: str, *labels: str, kafka: tuple[str, ...] = ()) -> Family:
    """How many fell into which bucket; Kafka's averages, percentiles and rates follow from it."""
    return Family(name, Kind.HISTOGRAM, doc, labels, kafka)


def summary(name: str, doc: str, *labels: str, kafka: tuple[str, ...] = ()) -> Family:
    """Return a count and a sum."""
    return Family(name, Kind.SUMMARY, doc, labels, kafka)
