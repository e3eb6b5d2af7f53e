"""A client's metrics in OpenTelemetry's format, under the names of Kafka's Java clients (KIP-714)."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from math import isnan

from sharecore.client.metrics import MetricName

_PREFIX = "org.apache.kafka."
_EVERY = "*"
_TOTAL = ".total"
_DELTA, _CUMULATIVE = 1, 2
_CLIENT_ID = "client-id"
"""The cluster knows it from the connection, and Java's clients omit it."""
_VARINT, _FIXED64, _BYTES = 0, 1, 2
_NUMBER, _MOMENT = struct.Struct("<d"), struct.Struct("<Q")


def pushed_name(metric: MetricName) -> str:
    """`fetch-latency-avg` of `consumer-share-fetch-manager-metrics` is
    `org.apache.kafka.consumer.share.fetch.manager.fetch.latency.avg`.
    """
    return f"{_PREFIX}{metric.group.removesuffix('-metrics')}.{metric.name}".replace("-", ".")


class Pushes:
    """Encodes pushes; totals as the difference since the last successful push, if requested.

    Args:
        about: attributes of the client, such as its group.
        began_ns: start of the totals, in nanoseconds of the epoch.
    """

    def __init__(self, about: Mapping[str, str | None], began_ns: int) -> None:
        self._about = b"".join(_field(1, _text(name, text)) for name, text in about.items() if text)
        self._since_ns = self._began_ns = began_ns
        self._arrived: dict[MetricName, float] = {}
        self._sent: dict[MetricName, float] = {}
        self._sent_ns = began_ns

    def write(
        self, metrics: Mapping[MetricName, float], wanted: Sequence[str], now_ns: int, *, delta: bool
    ) -> bytes:
        """Encode a push: the metrics with a value whose names begin with a requested prefix."""
        self._sent, self._sent_ns = {}, now_ns
        named = ((pushed_name(metric), metric, value) for metric, value in metrics.items())
        scope = b"".join(
            _field(2, self._metric(name, metric, value, now_ns, delta=delta))
            for name, metric, value in named
            if not isnan(value) and (_EVERY in wanted or name.startswith(tuple(wanted)))
        )
        return _field(1, _field(1, self._about) + _field(2, scope))

    def _metric(self, name: str, metric: MetricName, value: float, now_ns: int, *, delta: bool) -> bytes:
        """Return a `Metric` with one point: a sum for a total, else a gauge."""
        attributes = b"".join(
            _field(7, _text(key.replace("-", "_"), text)) for key, text in metric.tags if key != _CLIENT_ID
        )
        moment = _fixed(3, _MOMENT.pack(now_ns))
        named = _field(1, name.encode())
        if not name.endswith(_TOTAL):
            return named + _field(5, _field(1, moment + _fixed(4, _NUMBER.pack(value)) + attributes))
        self._sent[metric] = value
        began = _fixed(2, _MOMENT.pack(self._since_ns if delta else self._began_ns))
        came = value - self._arrived.get(metric, 0) if delta else value
        point = _field(1, began + moment + _fixed(4, _NUMBER.pack(came)) + attributes)
        temporality = _key(2, _VARINT) + bytes([_DELTA if delta else _CUMULATIVE])
        monotonic = _key(3, _VARINT) + b"\1"
        return named + _field(7, point + temporality + monotonic)

    def arrived(self) -> None:
        """Record that the last push succeeded."""
        self._arrived.update(self._sent)
        self._since_ns = self._sent_ns


# protobuf's encoding, as far as pushes need it


def _text(name: str, text: str) -> bytes:
    """Return a `KeyValue` with a string."""
    return _field(1, name.encode()) + _field(2, _field(1, text.encode()))


def _key(number: int, kind: int) -> bytes:
    return bytes([number << 3 | kind])


def _field(number: int, content: bytes) -> bytes:
    size, head = len(content), bytearray(_key(number, _BYTES))
    while size > 0x7F:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    head.append(size)
    return bytes(head) + content


def _fixed(number: int, content: bytes) -> bytes:
    return _key(number, _FIXED64) + content
