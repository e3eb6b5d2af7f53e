"""A client's metrics in pushes."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, MetricsData

from sharecore.client.metrics import FETCH, NODE, MetricName, Metrics
from sharecore.client.pushed import Pushes, pushed_name

TOTAL = MetricName("fetch-total", FETCH)
AVERAGE = MetricName("fetch-latency-avg", FETCH)
LATENCY = MetricName("request-latency-max", NODE, (("client-id", "c"), ("node-id", "node-0")))
EVERY = ["*"]


def read(data: bytes) -> dict[str, Any]:
    (resource,) = MetricsData.FromString(data).resource_metrics
    (scope,) = resource.scope_metrics
    return {metric.name.removeprefix("org.apache.kafka.consumer."): metric for metric in scope.metrics}


def total(data: bytes) -> Any:
    (point,) = read(data)["share.fetch.manager.fetch.total"].sum.data_points
    return point


def test_names_are_kafkas() -> None:
    assert pushed_name(AVERAGE) == "org.apache.kafka.consumer.share.fetch.manager.fetch.latency.avg"
    assert pushed_name(LATENCY) == "org.apache.kafka.consumer.node.request.latency.max"


def test_a_total_is_what_came_since_the_last_push_that_arrived() -> None:
    pushes = Pushes({"group_id": "g", "client_rack": None}, 1)
    assert total(pushes.write({TOTAL: 5.0}, EVERY, 10, delta=True)).as_double == 5
    # it was lost
    assert total(pushes.write({TOTAL: 7.0}, EVERY, 20, delta=True)).as_double == 7
    pushes.arrived()
    point = total(pushes.write({TOTAL: 8.0}, EVERY, 30, delta=True))
    assert (point.as_double, point.start_time_unix_nano, point.time_unix_nano) == (1, 20, 30)
    point = total(pushes.write({TOTAL: 8.0}, EVERY, 40, delta=False))
    assert (point.as_double, point.start_time_unix_nano) == (8, 1)


def test_a_client_says_of_itself_what_it_knows() -> None:
    (resource,) = MetricsData.FromString(
        Pushes({"group_id": "g", "client_rack": None}, 1).write({}, EVERY, 2, delta=True)
    ).resource_metrics
    assert [(each.key, each.value.string_value) for each in resource.resource.attributes] == [
        ("group_id", "g")
    ]


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (EVERY, {"share.fetch.manager.fetch.total", "node.request.latency.max"}),
        (["org.apache.kafka.consumer.node."], {"node.request.latency.max"}),
        (["org.apache.kafka.producer."], set()),
        ([""], {"share.fetch.manager.fetch.total", "node.request.latency.max"}),
    ],
)
def test_only_what_is_wanted_and_known_is_written(wanted: list[str], names: set[str]) -> None:
    metrics = {TOTAL: 1.0, AVERAGE: float("nan"), LATENCY: 3.0}
    written = read(Pushes({}, 1).write(metrics, wanted, 2, delta=True))
    assert set(written) == names
    if "node.request.latency.max" in names:
        (point,) = written["node.request.latency.max"].gauge.data_points
        assert [(each.key, each.value.string_value) for each in point.attributes] == [("node_id", "node-0")]


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16_383, 16_384, 300_000])
def test_texts_of_any_size(size: int) -> None:
    told = "ä" * size
    pushes = Pushes({"group_id": told or None, "client_rack": "r"}, 2**63)
    (resource,) = MetricsData.FromString(
        pushes.write({TOTAL: 1e300}, EVERY, 2**64 - 1, delta=False)
    ).resource_metrics
    about = {each.key: each.value.string_value for each in resource.resource.attributes}
    assert about == ({"group_id": told} if told else {}) | {"client_rack": "r"}
    (metric,) = resource.scope_metrics[0].metrics
    (point,) = metric.sum.data_points
    assert (point.as_double, point.time_unix_nano, point.start_time_unix_nano) == (1e300, 2**64 - 1, 2**63)
    assert metric.sum.is_monotonic
    assert metric.sum.aggregation_temporality == AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE


def test_every_metric_of_a_consumer_has_the_clients_id_and_a_description() -> None:
    metrics = Metrics(lambda: 1.0, "me")
    metrics.answered("0", 0.1)
    names = list(metrics.read())
    assert {name.tags[0] for name in names} == {("client-id", "me")}
    assert all(name.description for name in names)
    assert MetricName("fetch-total", FETCH, (("client-id", "me"),)) in names
