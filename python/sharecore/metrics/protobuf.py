"""Samples as io.prometheus.client messages, for native histograms.

The text format has no native histograms, and the library cannot write these messages. There are seven of
them, with only numbers and strings.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from sharecore.metrics.durations import EDGES, FIRST_EXPONENT
from sharecore.metrics.family import Kind

if TYPE_CHECKING:
    from prometheus_client import Metric
    from prometheus_client.samples import Sample

    from sharecore.metrics.exposition import Lines

MEDIA_TYPE = "application/vnd.google.protobuf"
CONTENT_TYPE = f"{MEDIA_TYPE}; proto=io.prometheus.client.MetricFamily; encoding=delimited"

_TYPES = {"counter": 0, "gauge": 1, "info": 1, "summary": 2, "unknown": 3, "histogram": 4}
_PLACES = {"counter": 3, "gauge": 2, "info": 2, "summary": 4, "unknown": 5, "histogram": 7}
"""Field of the value in a Metric."""
_DOUBLE = struct.Struct("<d")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")
_SCHEMA = 0
"""Each bucket is twice as wide as the previous one."""


class Writer:
    """Write scrapes, and cache the encoded labels of lines, most of which recur."""

    def __init__(self) -> None:
        self._before: dict[int, dict[str, bytes]] = {}

    def messages(self, metrics: Iterable[Metric], lines: Lines) -> bytes:
        """Return all samples, one length-prefixed message per family."""
        parts = []
        for metric in metrics:
            if metric.samples:
                name = metric.samples[0].name if metric.type in ("counter", "info") else metric.name
                body = b"".join(_message(4, each) for each in _of_family(metric))
                parts.append(_family(name, metric.documentation, metric.type, body))
        kept: dict[int, dict[str, bytes]] = {place: {} for place in _PLACES.values()}
        for family, texts in lines.each():
            kind = family.kind.value
            place = _PLACES[kind]
            body = _of_lines(texts, place, self._before.get(place, {}), kept[place])
            parts.append(_family(family.sample_name, family.doc, kind, body))
        self._before = kept
        return b"".join(parts)


def _of_lines(texts: Sequence[str], place: int, before: Mapping[str, bytes], kept: dict[str, bytes]) -> bytes:
    """Return the Metric messages of a family's lines."""
    found: list[bytes] = []
    pack = _DOUBLE.pack
    for text in texts:
        about, _, value = text.rpartition("} ")
        head = kept[about] = before.get(about) or _before_value(about, place)
        found += head, pack(float(value))
    return b"".join(found)


def _family(name: str, doc: str, kind: str, metrics: bytes) -> bytes:
    body = _text(1, name) + _text(2, doc) + _number(3, _TYPES[kind]) + metrics
    return _varint(len(body)) + body


def _of_family(metric: Metric) -> Iterator[bytes]:
    """Yield the Metric messages of one family."""
    if metric.type not in (Kind.HISTOGRAM.value, Kind.SUMMARY.value):
        for sample in metric.samples:
            yield _labels(sample.labels) + _message(_PLACES[metric.type], _double(1, sample.value))
        return
    for labels, samples in groupby(metric.samples, _without_edge):
        given = list(samples)
        value = {sample.name.removeprefix(metric.name): sample.value for sample in given}
        body = _number(1, int(value["_count"])) + _double(2, value["_sum"])
        if metric.type == Kind.HISTOGRAM.value:
            body += _buckets([each for each in given if each.name.endswith("_bucket")])
        yield _labels(labels) + _message(_PLACES[metric.type], body)


def _without_edge(sample: Sample) -> dict[str, str]:
    return {name: value for name, value in sample.labels.items() if name != "le"}


def _buckets(samples: Sequence[Sample]) -> bytes:
    """Return classic buckets, and native ones if the bounds are powers of two."""
    body = b""
    counts, before = [], 0
    for sample in samples:
        upto = int(sample.value)
        body += _message(3, _number(1, upto) + _double(2, float(sample.labels["le"])))
        counts.append(upto - before)
        before = upto
    if tuple(sample.labels["le"] for sample in samples) != EDGES:
        return body
    # the first bucket is around zero; values above all bounds count as at most twice the last one
    zero, *positive = counts
    span = _number(1, _zigzag(FIRST_EXPONENT + 1)) + _number(2, len(positive))
    changes = [count - last for count, last in zip(positive, [0, *positive], strict=False)]
    deltas = b"".join(_varint(_zigzag(change)) for change in changes)
    native = _number(5, _zigzag(_SCHEMA)) + _double(6, float(EDGES[0])) + _number(7, zero)
    return body + native + _message(12, span) + _message(13, deltas)


def _before_value(about: str, place: int) -> bytes:
    """Return a line's message up to its value, which comes last."""
    whole = _message(4, _labels(_read_labels(about)) + _message(place, _double(1, 0.0)))
    return whole[: -_DOUBLE.size]


def _read_labels(text: str) -> dict[str, str]:
    return {
        name: _ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], value)
        for name, value in _LABEL.findall(text)
    }


def _labels(labels: Mapping[str, str]) -> bytes:
    return b"".join(_message(1, _text(1, name) + _text(2, value)) for name, value in labels.items())


def _varint(number: int) -> bytes:
    if number < 0x80:
        return bytes((number,))
    parts = bytearray()
    while number >= 0x80:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def _zigzag(number: int) -> int:
    return 2 * number if number >= 0 else -2 * number - 1


def _number(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number)


def _double(field: int, number: float) -> bytes:
    return _varint(field << 3 | 1) + _DOUBLE.pack(number)


def _message(field: int, body: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(body)) + body


def _text(field: int, text: str) -> bytes:
    return _message(field, text.encode())
