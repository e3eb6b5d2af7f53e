"""A client's metrics in OpenTelemetry's format, under the names of Kafka's Java clients (KIP-714)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, MetricsData

from sharecore.client.metrics import MetricName

_PREFIX = "org.apache.kafka."
_EVERY = "*"
_TOTAL = ".total"
_DELTA = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
_CUMULATIVE = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE


def pushed_name(metric: MetricName) -> str:
    """`fetch-latency-avg` of `consumer-share-fetch-manager-metrics` is
    `org.apache.kafka.consumer.share.fetch.manager.fetch.latency.avg`.
    """
    return f"{_PREFIX}{metric.group.removesuffix('-metrics')}.{metric.name}".replace("-", ".")


class Pushes:
    """Writes pushes; totals as what has come since the last one that arrived, where that is asked for.

    Args:
        about: what the client says of itself, such as its group.
        began_ns: since when totals are counted, in nanoseconds of the epoch.
    """

    def __init__(self, about: Mapping[str, str | None], began_ns: int) -> None:
        self._about = [_text(name, text) for name, text in about.items() if text]
        self._since_ns = self._began_ns = began_ns
        self._arrived: dict[MetricName, float] = {}
        self._sent: dict[MetricName, float] = {}
        self._sent_ns = began_ns

    def write(
        self, metrics: Mapping[MetricName, float], wanted: Sequence[str], now_ns: int, *, delta: bool
    ) -> bytes:
        """One push: those metrics whose names begin as wanted and that have a value."""
        self._sent, self._sent_ns = {}, now_ns
        data = MetricsData()
        resource = data.resource_metrics.add()
        resource.resource.attributes.extend(self._about)
        scope = resource.scope_metrics.add()
        for metric, value in metrics.items():
            name = pushed_name(metric)
            if isnan(value) or not (_EVERY in wanted or name.startswith(tuple(wanted))):
                continue
            written = scope.metrics.add(name=name)
            if name.endswith(_TOTAL):
                self._sent[metric] = value
                written.sum.is_monotonic = True
                written.sum.aggregation_temporality = _DELTA if delta else _CUMULATIVE
                point = written.sum.data_points.add()
                point.start_time_unix_nano = self._since_ns if delta else self._began_ns
                value -= self._arrived.get(metric, 0) if delta else 0
            else:
                point = written.gauge.data_points.add()
            point.time_unix_nano = now_ns
            point.as_double = value
            point.attributes.extend(_text(key.replace("-", "_"), text) for key, text in metric.tags)
        written_bytes: bytes = data.SerializeToString()
        return written_bytes

    def arrived(self) -> None:
        """What was written last has arrived."""
        self._arrived.update(self._sent)
        self._since_ns = self._sent_ns


def _text(name: str, text: str) -> Any:
    attribute = KeyValue(key=name)
    attribute.value.string_value = text
    return attribute
