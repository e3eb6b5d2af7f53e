"""Pushed client metrics as series: names, labels, and limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from prometheus_client.parser import text_string_to_metric_families

from sharecore.metrics.exposition import Exposition, Lines
from sharecore.metrics.telemetry.instances import Client, text_of
from sharecore.metrics.telemetry.otlp import read_push
from sharecore.metrics.telemetry.series import PushedSeries

CLIENT = Client("app", "software", "1.0", "10.0.0.1", "4000")
ONE, TWO = UUID(int=1 << 70), UUID(int=1 << 71)
DELTA, CUMULATIVE = 1, 2
LEFT_OUT = "sharecore_client_metrics_series_left_out"
Samples = dict[str, list[tuple[dict[str, str], float]]]


class Clock:
    now_ms = 0

    def __call__(self) -> int:
        return self.now_ms


class Push:
    """One encoded push."""

    def __init__(self, **about: str) -> None:
        self._data = MetricsData()
        resource = self._data.resource_metrics.add()
        for name, text in about.items():
            resource.resource.attributes.add(key=name).value.string_value = text
        self._metrics = resource.scope_metrics.add().metrics

    def level(self, name: str, value: float, labels: Mapping[str, Any] | None = None) -> Push:
        self._labelled(self._metrics.add(name=name).gauge.data_points.add(as_double=value), labels or {})
        return self

    def total(self, name: str, value: int, temporality: Any = DELTA, *, monotonic: bool = True) -> Push:
        data = self._metrics.add(name=name).sum
        data.is_monotonic, data.aggregation_temporality = monotonic, temporality
        data.data_points.add(as_int=value)
        return self

    def histogram(self, name: str) -> Push:
        self._metrics.add(name=name).histogram.data_points.add(count=1)
        return self

    @staticmethod
    def _labelled(point: Any, labels: Mapping[str, Any]) -> None:
        for name, value in labels.items():
            attribute = point.attributes.add(key=name).value
            if isinstance(value, str):
                attribute.string_value = value
            else:
                attribute.int_value = value

    def bytes(self) -> bytes:
        data: bytes = self._data.SerializeToString()
        return data


class Taken:
    """Series, and their exposition."""

    def __init__(self, **limits: int) -> None:
        self.clock = Clock()
        given = {"clients_max": 10, "series_max": 100, "client_series_max": 100} | limits
        self.series = PushedSeries(self.clock, **given)

    def push(self, pushed: Push, instance_id: UUID = ONE, client: Client = CLIENT) -> None:
        self.series.take(instance_id, client, read_push(pushed.bytes(), 0, 1 << 20), 60_000)

    def scrape(self) -> Samples:
        sheet, lines = Exposition(), Lines()
        self.series.report(sheet, lines)
        found: Samples = {}
        for family in text_string_to_metric_families((sheet.text() + lines.text()).decode()):
            for sample in family.samples:
                found.setdefault(sample.name, []).append((dict(sample.labels), sample.value))
        return found


def test_a_value_has_the_labels_of_its_client() -> None:
    taken = Taken()
    name = "org.apache.kafka.consumer.node.request.latency.max"
    taken.push(Push(group_id="g", client_rack="r").level(name, 4.5, {"node-id": "node-1", "partition": 3}))
    shown = taken.scrape()
    own = {"client_instance_id": text_of(ONE), "client_id": "app", "group": "g"}
    labels = {"node_id": "node-1", "partition": "3", **own}
    assert shown["kafka_client_consumer_node_request_latency_max"] == [(labels, 4.5)]
    about = own | CLIENT._asdict() | {"client_rack": "r"}
    assert shown["sharecore_client_info"] == [(about, 1)]


def test_totals_go_on_and_levels_are_the_newest() -> None:
    taken = Taken()
    taken.push(Push().total("a.total", 5).total("b", 7, CUMULATIVE).level("c", 1).level("gone", 1))
    taken.push(Push().total("a.total", 3).total("b", 9, CUMULATIVE).level("c", 2))
    taken.push(Push().level("c", 3))
    shown = taken.scrape()
    values = {name: value for name, [(_, value)] in shown.items() if name.startswith("kafka_client_")}
    assert values == {"kafka_client_a_total": 8, "kafka_client_b_total": 9, "kafka_client_c": 3}


def test_each_client_has_its_own() -> None:
    taken = Taken()
    for instance_id in (ONE, TWO):
        taken.push(Push().level("a", 1), instance_id)
    assert len(taken.scrape()["kafka_client_a"]) == 2
    taken.clock.now_ms = 59_999
    taken.push(Push().level("a", 1), TWO)
    taken.clock.now_ms = 60_000
    ((labels, _),) = taken.scrape()["kafka_client_a"]
    assert labels["client_instance_id"] == text_of(TWO)


def test_what_is_beyond_the_limits_is_counted() -> None:
    taken = Taken(series_max=5, client_series_max=3, clients_max=2)
    many = Push()
    for number in range(10):
        many.level(f"m{number}", 1)
    taken.push(many, ONE)
    assert taken.scrape()[LEFT_OUT][0][1] == 7
    taken.push(many, TWO)
    shown = taken.scrape()
    assert shown["sharecore_client_metrics_series"][0][1] == 5
    assert shown[LEFT_OUT][0][1] == 7 + 8
    # a client that pushes less makes room for others
    taken.push(Push().level("m0", 1), ONE)
    taken.push(many, TWO)
    assert taken.scrape()["sharecore_client_metrics_series"][0][1] == 4
    taken.push(many, UUID(int=1 << 72))
    assert taken.scrape()["sharecore_client_metrics_series"][0][1] == 5
    assert len(taken.scrape()["sharecore_client_info"]) == 2


def test_names_do_not_pile_up() -> None:
    taken = Taken(series_max=5)
    for number in range(100):
        taken.push(Push().level(f"m{number}", 1))
    assert len(taken.series._families) <= 10
    assert len(taken.series._names) <= 10


def test_nothing_is_remembered_of_names_that_are_too_long() -> None:
    taken = Taken(series_max=5)
    for number in range(5):
        taken.push(Push().level(f"{number}{'n' * 100_000}", 1))
    assert len(taken.series._names) == 0


@pytest.mark.parametrize(
    ("pushed", "left_out"),
    [
        (Push().histogram("h"), 1),
        (Push().total("changes", 1, DELTA, monotonic=False), 1),
        (Push().level("a_total", 1).total("a", 1), 1),
        (Push().level("n" * 2000, 1), 1),
        (Push().level("n", 1, {"label": "x" * 2000}), 1),
        (Push().level("n", float("nan")), 0),
    ],
)
def test_what_cannot_be_shown_is_left_out(pushed: Push, left_out: int) -> None:
    taken = Taken()
    taken.push(pushed)
    assert taken.scrape()[LEFT_OUT][0][1] == left_out


def test_a_client_adds_nothing_to_what_is_not_its_own() -> None:
    taken = Taken()
    lie = {"client_id": "boss", "__name__": "up", "group": "other", "1st": "a", "": "b", 'x="y"} 1\nup': "c"}
    taken.push(Push(group_id="g").level('up 1\nup{a="b', 1, lie).level("sharecore_share_group_lag", 1))
    shown = taken.scrape()
    assert set(shown) == {
        "sharecore_client_metrics_series",
        LEFT_OUT,
        "sharecore_client_info",
        "kafka_client_up_1_up_a__b",
        "kafka_client_sharecore_share_group_lag",
    }
    ((labels, _),) = shown["kafka_client_up_1_up_a__b"]
    assert (labels["client_id"], labels["group"]) == ("app", "g")
    assert "__name__" not in labels


@given(st.binary(max_size=200), st.text(), st.text(), st.text())
def test_any_bytes_and_any_words(data: bytes, name: str, key: str, text: str) -> None:
    taken = Taken()
    try:
        taken.series.take(ONE, CLIENT, read_push(data, 0, 1 << 20), 60_000)
    except ValueError:
        taken.push(Push().level("fine", 1))
    taken.push(Push(group_id=text).level(name, 2, {key: text}), TWO)
    assert taken.scrape()["sharecore_client_metrics_series"][0][1] >= 0


def _message(field: int, content: bytes) -> bytes:
    size, length = len(content), bytearray()
    while size > 127:
        length.append(size & 127 | 128)
        size >>= 7
    return bytes((field << 3 | 2,)) + bytes((*length, size)) + content


@pytest.mark.heavy
@pytest.mark.parametrize(
    "bomb",
    [
        b"\x0a\x00" * 1_000_000,
        _message(1, _message(2, b"\x12\x00" * 1_000_000)),
        _message(1, _message(2, _message(2, _message(1, b"m") + _message(5, b"\x0a\x00" * 1_000_000)))),
        _message(1, _message(1, b"\x0a\x00" * 1_000_000)),
        b"\x08\x00" * 1_000_000,
    ],
    ids=["resources", "metrics", "points", "attributes", "numbers"],
)
def test_a_push_of_a_million_empty_fields_is_refused_unread(bomb: bytes) -> None:
    with pytest.raises(ValueError, match=r"more than 60000 fields"):
        read_push(bomb, 0, 1 << 30)


@pytest.mark.parametrize("bytes_", [b"\x0a\x7f", b"\x0b", b"\x0a" + b"\xff" * 20, b"\x09\x00", b"\xff"])
def test_what_is_no_message_is_refused(bytes_: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whichever reader finds it
        read_push(bytes_, 0, 1 << 20)
