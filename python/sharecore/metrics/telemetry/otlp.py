"""Metrics in OpenTelemetry's protobuf format, as clients push them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, MetricsData

from sharecore._core import decompress


class Meaning(Enum):
    """What a value says: how much there is, how much there was in all, how much came since the last push."""

    LEVEL = "level"
    TOTAL = "total"
    CHANGE = "change"


class Point(NamedTuple):
    """One value.

    Args:
        name: of the metric.
        labels: attributes of the value.
        meaning: None for a kind of metric that is not read: histograms, summaries, and changes that go both
            ways. No client of Kafka's pushes any.
    """

    name: str
    labels: Mapping[str, str]
    value: float
    meaning: Meaning | None


class Pushed(NamedTuple):
    """What one push says.

    Args:
        about: attributes of the client itself, such as its group.
    """

    about: Mapping[str, str]
    points: Iterable[Point]


def read_push(data: bytes, compression: int, bytes_max: int) -> list[Pushed]:
    """Reads a MetricsData message.

    Args:
        compression: Kafka's number of the type.
        bytes_max: it may expand to so many bytes.

    Raises:
        ValueError: the bytes are none, or expand to more.
    """
    try:
        message = MetricsData.FromString(decompress(data, compression, expanded_bytes_max=bytes_max))
    except DecodeError as error:
        raise ValueError(str(error)) from None
    return [
        Pushed(_texts(each.resource.attributes), _points(each.scope_metrics))
        for each in message.resource_metrics
    ]


def _points(scopes: Iterable[Any]) -> Iterator[Point]:
    for scope in scopes:
        for metric in scope.metrics:
            kind = metric.WhichOneof("data")
            if kind not in ("gauge", "sum"):
                for _ in getattr(metric, kind).data_points if kind else ():
                    yield Point(metric.name, {}, 0, None)
                continue
            data = getattr(metric, kind)
            meaning = Meaning.LEVEL if kind == "gauge" else _of_sum(data)
            for point in data.data_points:
                value = point.as_int if point.WhichOneof("value") == "as_int" else point.as_double
                yield Point(metric.name, _texts(point.attributes), value, meaning)


def _of_sum(data: Any) -> Meaning | None:
    if data.aggregation_temporality == AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA:
        return Meaning.CHANGE if data.is_monotonic else None
    return Meaning.TOTAL if data.is_monotonic else Meaning.LEVEL


def _texts(attributes: Iterable[Any]) -> dict[str, str]:
    found = {}
    for each in attributes:
        kind = each.value.WhichOneof("value")
        if kind in ("string_value", "int_value", "double_value", "bool_value"):
            found[each.key] = str(getattr(each.value, kind))
    return found
