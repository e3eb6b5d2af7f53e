"""Metrics in OpenTelemetry's protobuf format, as pushed by clients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, MetricsData

from sharecore._core import decompress

_FIELDS_MAX = 60_000
"""Maximum fields of a push; Apache Kafka's largest clients have some hundred metrics of ten fields."""
_FIXED = {1: 8, 5: 4}
_Nested = Mapping[int, Any]
"""Nested message fields."""
_VALUE: dict[int, object] = {}
_ATTRIBUTE: _Nested = {2: _VALUE}
_VALUE |= {5: {1: _VALUE}, 6: {1: _ATTRIBUTE}}
_EXEMPLAR: _Nested = {7: _ATTRIBUTE}
_NUMBERS: _Nested = {1: {5: _EXEMPLAR, 7: _ATTRIBUTE}}
_HISTOGRAM: _Nested = {1: {8: _EXEMPLAR, 9: _ATTRIBUTE}}
_EXPONENTIAL: _Nested = {1: {1: _ATTRIBUTE, 8: {}, 9: {}, 11: _EXEMPLAR}}
_SUMMARY: _Nested = {1: {6: {}, 7: _ATTRIBUTE}}
_METRIC: _Nested = {
    5: _NUMBERS,
    7: _NUMBERS,
    9: _HISTOGRAM,
    10: _EXPONENTIAL,
    11: _SUMMARY,
    12: _ATTRIBUTE,
}
_MESSAGES: _Nested = {1: {1: {1: _ATTRIBUTE, 3: {}}, 2: {1: {3: _ATTRIBUTE}, 2: _METRIC}}}


class Meaning(Enum):
    """Kind of a value: gauge, cumulative sum, or delta since the last push."""

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
    """Contents of one push.

    Args:
        about: attributes of the client, such as its group.
    """

    about: Mapping[str, str]
    points: Iterable[Point]


def read_push(data: bytes, compression: int, bytes_max: int) -> list[Pushed]:
    """Decode a MetricsData message.

    Args:
        compression: Kafka's compression type.
        bytes_max: maximum decompressed size.

    Raises:
        ValueError: the message is invalid, too large once decompressed, or has too many fields.
    """
    expanded = decompress(data, compression, expanded_bytes_max=bytes_max)
    _check_fields(expanded)
    try:
        message = MetricsData.FromString(expanded)
    except DecodeError as error:
        raise ValueError(str(error)) from None
    return [
        Pushed(_texts(each.resource.attributes), _points(each.scope_metrics))
        for each in message.resource_metrics
    ]


def _check_fields(data: bytes) -> None:
    """Raise ValueError if a message is invalid or has too many fields.

    Empty messages compress to almost nothing, and millions of them would become objects. Fields are counted
    at every nesting level, without creating objects.
    """
    left = _FIELDS_MAX
    inside: list[tuple[int, int, _Nested]] = [(0, len(data), _MESSAGES)]
    while inside:
        at, end, nested = inside.pop()
        while at < end:
            left -= 1
            if left < 0:
                raise ValueError(f"more than {_FIELDS_MAX} fields")
            tag, at = _varint(data, at, end)
            wire_type = tag & 7
            if wire_type == 0:
                _, at = _varint(data, at, end)
            elif wire_type == 2:
                size, at = _varint(data, at, end)
                if tag >> 3 in nested:
                    inside.append((at, min(at + size, end), nested[tag >> 3]))
                at += size
            elif wire_type in _FIXED:
                at += _FIXED[wire_type]
            else:
                raise ValueError(f"a field of type {wire_type}")
        if at > end:
            raise ValueError("a field reaches past the end")


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise ValueError("a number without an end")


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
