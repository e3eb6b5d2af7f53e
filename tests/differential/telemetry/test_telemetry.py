"""Clients are asked for their metrics as Apache Kafka 4.3.1 asks them, and refused as it refuses them."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from tests.differential.telemetry.both import BYTES_MAX, CLIENT_METRICS, Both, Settings, both
from tests.harness.clients import create_topic

from sharecore.client import ShareConsumer
from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with both(tmp_path_factory.mktemp("telemetry")) as started:
        yield started


@pytest.fixture
def brokers(pair: Both) -> Iterator[Both]:
    yield pair
    pair.forget()


def payload(name: str = "org.apache.kafka.consumer.x", value: float = 1.0) -> bytes:
    data = MetricsData()
    metric = data.resource_metrics.add().scope_metrics.add().metrics.add(name=name)
    metric.gauge.data_points.add(as_double=value)
    written: bytes = data.SerializeToString()
    return written


def test_both_offer_it(brokers: Both) -> None:
    apache, ours = brokers.raw(ApiKey.API_VERSIONS, 3, client_software_name="t", client_software_version="1")
    for key in (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY):
        (theirs,) = [each for each in apache.api_keys if each.api_key == key]
        assert [each for each in ours.api_keys if each.api_key == key] == [theirs]


def test_nothing_is_asked_for_without_a_subscription(brokers: Both) -> None:
    answer = brokers.get(brokers.new_id())
    assert answer["error_code"] == 0
    assert answer["requested_metrics"] == []
    assert answer["push_interval_ms"] == 300_000


def test_a_client_without_an_id_is_given_one(brokers: Both) -> None:
    for none in (None, UUID(int=0)):
        answers = brokers.raw(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, client_instance_id=none)
        ids = [answer.client_instance_id for answer in answers]
        assert len({*ids, None}) == 3
        assert [each.version for each in ids] == [4, 4]
        for answer in answers:
            # pushes may use its id
            assert answer.error_code == 0


def test_reserved_ids(brokers: Both) -> None:
    for number in (0, 1):
        assert brokers.push(UUID(int=number), 0) == ErrorCode.INVALID_REQUEST
    brokers.get(UUID(int=1))


def test_the_subscription_id_is_the_same(brokers: Both) -> None:
    brokers.alter("one", {"metrics": "org.apache.kafka.consumer.", "interval.ms": "1000"})
    answer = brokers.get(brokers.new_id())
    assert answer["requested_metrics"] == ["org.apache.kafka.consumer."]
    assert answer["subscription_id"] != 0
    for number in (1 << 127, (1 << 128) - 1, 0x0123456789ABCDEF_FEDCBA9876543210):
        brokers.get(UUID(int=number))


def test_subscriptions_are_put_together(brokers: Both) -> None:
    brokers.alter("a", {"metrics": "x.,y.", "interval.ms": "5000"})
    brokers.alter("b", {"metrics": "y.,z.", "interval.ms": "400"})
    answer = brokers.get(brokers.new_id())
    assert sorted(answer["requested_metrics"]) == ["x.", "y.", "z."]
    assert answer["push_interval_ms"] == 400
    brokers.alter("c", {"metrics": "*", "interval.ms": "3600000"})
    assert brokers.get(brokers.new_id())["requested_metrics"] == ["*"]
    brokers.alter("a", dict.fromkeys(("metrics", "interval.ms")))
    brokers.alter("b", dict.fromkeys(("metrics", "interval.ms")))
    # the default push interval is five minutes
    assert brokers.get(brokers.new_id())["push_interval_ms"] == 300_000


def test_names_of_metrics(brokers: Both) -> None:
    names = ["", "a", "a,a,b", " a , b ", "*,a", "a.*", "a,,b", ","]
    wanted = {
        f"n{number}": {"metrics": metrics, "match": f"client_id=n{number}"}
        for number, metrics in enumerate(names)
    }
    refused = [each["error_code"] for each in brokers.alter_all(wanted)]
    assert refused == [0, 0, 0, 0, 0, 0, ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_CONFIG]
    for on in wanted:
        brokers.get(brokers.new_id(), on)


MATCHES = [
    "client_id=a",
    "client_id=b",
    "client_id=a.*",
    "client_id=.*x",
    "client_software_name=unknown",
    "client_software_name=test-software,client_software_version=1.5",
    "client_software_version=1.*",
    "client_source_address=127.0.0.1",
    "client_source_address=127[.].*",
    "client_source_port=[0-9]+",
    "client_instance_id=[A-Za-z0-9_-]+",
    "client_instance_id=AAAAAAD.*",
    "client_id=a,client_id=b",
    "client_id=b,client_id=a",
    "client_id=a=",
    "client_id = a",
]


def test_what_a_subscription_matches(brokers: Both) -> None:
    said = {"client_software_name": "test-software", "client_software_version": "1.5"}
    brokers.raw(ApiKey.API_VERSIONS, 3, on="told", **said)
    wanted = {f"s{number}": {"metrics": f"m{number}", "match": match} for number, match in enumerate(MATCHES)}
    brokers.alter_all(wanted)
    matched = [set(brokers.get(brokers.new_id(), on)["requested_metrics"]) for on in ("a", "told")]
    assert matched[0] != matched[1]
    assert all(0 < len(each) < len(MATCHES) for each in matched)


SETTINGS: list[Settings] = [
    {"interval.ms": "99"},
    {"interval.ms": "100"},
    {"interval.ms": "3600000"},
    {"interval.ms": "3600001"},
    {"interval.ms": "-1"},
    {"interval.ms": "x"},
    {"interval.ms": ""},
    {"interval.ms": "2147483648"},
    {"interval.ms": " 500 "},
    {"metrics": " a , b ", "match": " client_id = a , client_source_port=1"},
    {"metrics": "", "interval.ms": "99"},
    {"nonsense": "1"},
    {"nonsense": "1", "interval.ms": "1"},
    {"nonsense": None},
    {"retention.ms": "1"},
    {"match": "client_id"},
    {"match": "client_id="},
    {"match": "=x"},
    {"match": "client_id=a=b"},
    {"match": "client_ip=1"},
    {"match": "CLIENT_ID=1"},
    {"match": "client_id=["},
    {"match": "client_id=*"},
    {"match": "client_id=("},
    {"match": "client_id=a,b"},
    {"match": "client_id=a{2,3}"},
    {"match": ""},
    {"match": ","},
    {"match": "client_id=a,,client_id=b"},
    {"match": "client_id=a", "interval.ms": "1"},
    {"metrics": ",", "match": "client_id=x"},
    {"metrics": "a,a"},
    {"metrics": "*,*"},
]


def test_settings_are_taken_and_refused_alike(brokers: Both) -> None:
    wanted: dict[str, Settings] = {f"s{number}": settings for number, settings in enumerate(SETTINGS)}
    wanted |= {name: {"metrics": "x"} for name in ("", "a b", "x" * 300, "é", ".", "..", "a/b")}
    brokers.alter_all({"unwritten": {"metrics": "x"}, **wanted}, validate_only=True)
    brokers.describe("unwritten", "s0")
    codes = {each["error_code"] for each in brokers.alter_all(wanted)}
    assert codes == {0, ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG}
    brokers.describe(*wanted)
    listed(brokers)


def listed(brokers: Both) -> None:
    brokers.ask(ApiKey.LIST_CONFIG_RESOURCES, 0, on="admin")
    brokers.ask(ApiKey.LIST_CONFIG_RESOURCES, 1, on="admin", resource_types=bytes([CLIENT_METRICS]))
    brokers.ask(ApiKey.LIST_CONFIG_RESOURCES, 1, on="admin", resource_types=bytes([CLIENT_METRICS, 32]))


def test_lists_of_a_subscription_grow_and_shrink(brokers: Both) -> None:
    def change(operation: int, key: str, value: str) -> None:
        config = {"name": key, "config_operation": operation, "value": value}
        resource = {"resource_type": CLIENT_METRICS, "resource_name": "grown", "configs": [config]}
        brokers.ask(
            ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, on="admin", resources=[resource], validate_only=False
        )
        brokers.describe("grown")

    brokers.alter("grown", {"metrics": "a,b"})
    change(2, "metrics", "c")
    change(3, "metrics", "a")
    change(2, "match", "client_id=x")
    change(2, "match", "nonsense")
    change(2, "interval.ms", "5")
    brokers.describe("grown", configuration_keys=["metrics", "nonsense"])
    # the old API sets all of them at once
    replaced = {
        "resource_type": CLIENT_METRICS,
        "resource_name": "grown",
        "configs": [{"name": "interval.ms", "value": "700"}],
    }
    brokers.ask(ApiKey.ALTER_CONFIGS, 2, on="admin", resources=[replaced], validate_only=False)
    time.sleep(0.2)
    brokers.describe("grown")
    listed(brokers)


def test_who_asks_too_soon(brokers: Both) -> None:
    brokers.alter("slow", {"metrics": "m", "interval.ms": "3600000"})
    client = brokers.new_id()
    answer = brokers.get(client)
    again = brokers.get(client)
    assert again["error_code"] == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    # its subscription has changed: it may ask at once, and only once
    brokers.alter("slow", {"metrics": "n"})
    assert brokers.get(client)["subscription_id"] != answer["subscription_id"]
    assert brokers.get(client)["error_code"] == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert brokers.push(client, answer["subscription_id"]) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert brokers.get(client)["error_code"] == 0
    assert brokers.get(client)["error_code"] == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_who_pushes_too_soon(brokers: Both) -> None:
    brokers.alter("slow", {"metrics": "m", "interval.ms": "60000"})
    client = brokers.new_id()
    subscription = brokers.get(client)["subscription_id"]
    assert brokers.push(client, subscription, metrics=payload()) == 0
    assert brokers.push(client, subscription) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert brokers.get(client)["error_code"] == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    # the last push may come at any time, and no push may follow it
    assert brokers.push(client, subscription, terminating=True, metrics=payload()) == 0
    assert brokers.push(client, subscription, terminating=True) == ErrorCode.INVALID_REQUEST
    assert brokers.push(client, subscription) in (
        0,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    )
    brokers.get(client)


def test_pushes_each_interval(brokers: Both) -> None:
    brokers.alter("quick", {"metrics": "m", "interval.ms": "200"})
    client = brokers.new_id()
    subscription = brokers.get(client)["subscription_id"]
    for _ in range(3):
        assert brokers.push(client, subscription, metrics=payload()) == 0
        time.sleep(0.25)
    assert brokers.get(client)["error_code"] == 0


def test_a_push_by_who_never_asked(brokers: Both) -> None:
    brokers.alter("one", {"metrics": "m", "interval.ms": "60000"})
    other = brokers.new_id()
    assert brokers.push(other, 12345, metrics=payload()) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    subscription = brokers.get(other)["subscription_id"]
    brokers.push(other, subscription)
    # from a client that got its id from another broker
    stranger = brokers.new_id()
    brokers.alter("one", {"metrics": "m"})
    apache, _ = brokers.raw(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, on="b", client_instance_id=stranger)
    brokers.close("b")
    brokers.push(stranger, apache.subscription_id, on="c", metrics=payload())


@pytest.mark.parametrize("kind", [-1, 0, 1, 2, 3, 4, 5, 127])
@pytest.mark.parametrize(
    "metrics",
    [
        pytest.param(b"", id="empty"),
        pytest.param(payload(), id="metrics"),
        pytest.param(b"\xff" * 20, id="garbage"),
        pytest.param(gzip.compress(payload(), mtime=0), id="gzip"),
    ],
)
def test_compressions_and_what_cannot_be_read(brokers: Both, kind: int, metrics: bytes) -> None:
    client = brokers.new_id()
    subscription = brokers.get(client)["subscription_id"]
    brokers.push(client, subscription, compression_type=kind, metrics=metrics)
    brokers.get(client)
    brokers.push(client, subscription, compression_type=0, metrics=payload())


def test_a_push_that_is_too_large(brokers: Both) -> None:
    for size in (BYTES_MAX, BYTES_MAX + 1):
        client = brokers.new_id()
        subscription = brokers.get(client)["subscription_id"]
        metrics = payload("m" * (size - len(payload("")) - 5))
        metrics = payload("m" * (size - len(payload("")) - 5 + size - len(metrics)))
        assert len(metrics) == size
        code = brokers.push(client, subscription, metrics=metrics)
        assert code == (ErrorCode.NONE if size == BYTES_MAX else ErrorCode.TELEMETRY_TOO_LARGE)
        assert brokers.get(client)["error_code"] == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_the_order_of_reasons(brokers: Both) -> None:
    """Which one is told where several hold."""
    large = payload("m" * BYTES_MAX)
    reasons: list[tuple[int, dict[str, Any]]] = [
        (1, {"compression_type": 9, "metrics": large}),
        (0, {"compression_type": 9, "metrics": large}),
        (1, {"metrics": large}),
        (0, {"terminating": True, "compression_type": 9}),
        (1, {"terminating": True}),
        (0, {"terminating": True, "metrics": large}),
    ]
    for wrong_by, said in reasons:
        client = brokers.new_id()
        subscription = brokers.get(client)["subscription_id"] ^ wrong_by
        brokers.push(client, subscription, **said)
        brokers.get(client)
        brokers.push(client, subscription)


def test_a_connection_that_ends(brokers: Both) -> None:
    """Whether the client is still known that comes back at once."""
    brokers.alter("slow", {"metrics": "m", "interval.ms": "60000"})
    client = brokers.new_id()
    subscription = brokers.get(client, "first")["subscription_id"]
    brokers.push(client, subscription, "first", terminating=True)
    brokers.get(client, "second")
    brokers.close("first")
    time.sleep(0.5)
    brokers.get(client, "second")
    brokers.push(client, subscription, "third")
    brokers.close("second")
    brokers.close("third")
    time.sleep(0.5)
    brokers.get(client, "fourth")


def test_our_client_pushes_to_apache_kafka(brokers: Both) -> None:
    apache = brokers.brokers[0]
    brokers.alter("all", {"metrics": "org.apache.kafka.consumer.share.", "interval.ms": "100"})
    create_topic(apache.bootstrap, "t")

    async def consume() -> None:
        settings = {"bootstrap.servers": apache.bootstrap, "group.id": "g", "client.id": "ours"}
        async with ShareConsumer(settings) as consumer:
            consumer.subscribe(["t"])
            await consumer.poll(timeout=0.5)
            assert (await consumer.client_instance_id(20)).version == 4

    asyncio.run(consume())
    said = apache.read_log()
    assert "pushed ours org.apache.kafka.consumer.share.coordinator.heartbeat.total" in said, said[-2000:]
    assert "pushed ours org.apache.kafka.consumer.node" not in said
