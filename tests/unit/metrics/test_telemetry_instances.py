"""Which clients may ask and push when; the differential test compares with Apache Kafka."""

from __future__ import annotations

from uuid import UUID

import pytest

from sharecore.config.client_metrics import ClientMetricsConfig, check_client_metrics
from sharecore.errors import ConfigError, ErrorCode, KafkaError
from sharecore.metrics.telemetry.instances import Asked, Client, Instances

CLIENT = Client("app", "software", "1.0", "10.0.0.1", "4000")
ID = UUID(int=77)


class Clock:
    now_ms = 0

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def instances(clock: Clock) -> Instances:
    return Instances(clock, 3)


def push(
    instances: Instances,
    asked: Asked,
    *,
    subscription_id: int | None = None,
    compression: int = 0,
    terminating: bool = False,
) -> ErrorCode:
    taken: list[Asked] = []
    try:
        instances.push(
            asked.instance_id,
            CLIENT,
            "c",
            subscription_id=asked.subscription_id if subscription_id is None else subscription_id,
            compression=compression,
            terminating=terminating,
            too_large=False,
            receive=taken.append,
        )
    except KafkaError as error:
        assert not taken
        return error.code
    assert taken == [asked]
    return ErrorCode.NONE


def subscribe(instances: Instances, name: str, **settings: str) -> None:
    given = {key.replace("_", "."): text for key, text in settings.items()}
    check_client_metrics(name, given)
    instances.subscribe(name, ClientMetricsConfig.parse(given))


def test_a_client_that_comes_back_after_long_is_a_new_one(instances: Instances, clock: Clock) -> None:
    subscribe(instances, "s", metrics="m", interval_ms="1000")
    asked = instances.ask(ID, CLIENT, "c")
    assert push(instances, asked, terminating=True) is ErrorCode.NONE
    clock.now_ms = 59_999
    assert push(instances, asked) is ErrorCode.INVALID_REQUEST
    clock.now_ms += 60_000
    assert push(instances, asked) is ErrorCode.NONE


def test_silent_clients_are_forgotten(instances: Instances, clock: Clock) -> None:
    subscribe(instances, "s", metrics="m", interval_ms="100000")
    instances.ask(ID, CLIENT, "c")
    clock.now_ms = 299_999
    instances.forget_silent()
    assert len(instances) == 1
    clock.now_ms = 300_000
    instances.forget_silent()
    assert len(instances) == 0
    instances.disconnected("c")


def test_so_many_are_known_and_who_was_silent_longest_makes_room(instances: Instances, clock: Clock) -> None:
    subscribe(instances, "s", metrics="m", interval_ms="60000")
    asked = [instances.ask(UUID(int=number), CLIENT, "c") for number in range(3, 6)]
    assert push(instances, asked[0]) is ErrorCode.NONE
    instances.ask(UUID(int=9), CLIENT, "c")
    assert len(instances) == 3
    assert push(instances, asked[0]) is ErrorCode.THROTTLING_QUOTA_EXCEEDED, "it is still known"
    assert push(instances, asked[1]) is ErrorCode.NONE, "it was forgotten, and what it names is still right"


def test_the_clients_of_a_connection_go_with_it(instances: Instances) -> None:
    subscribe(instances, "s", metrics="m", interval_ms="60000")
    instances.ask(ID, CLIENT, "first")
    instances.ask(UUID(int=78), CLIENT, "second")
    instances.disconnected("first")
    assert len(instances) == 1
    instances.ask(ID, CLIENT, "third")


def test_an_expression_that_would_take_for_ever_does_not(instances: Instances) -> None:
    subscribe(instances, "s", metrics="m", match="client_id=(a*)*b")
    slow = CLIENT._replace(client_id="a" * 10_000)
    assert instances.ask(None, slow, "c").metrics == []


def test_pushes_are_counted_by_their_end(instances: Instances) -> None:
    asked = instances.ask(ID, CLIENT, "c")
    assert (
        push(instances, asked, subscription_id=asked.subscription_id + 1) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    )
    instances.ask(ID, CLIENT, "c")
    assert push(instances, asked, compression=9) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert instances.errors == {
        ErrorCode.UNKNOWN_SUBSCRIPTION_ID: 1,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED: 1,
    }


@pytest.mark.parametrize("text", ["client_id=(?=a)", "client_id=" + "a{1000}" * 50])
def test_expressions_that_take_time_or_room_without_bound_are_refused(text: str) -> None:
    with pytest.raises(KafkaError, match="Illegal client matching pattern"):
        check_client_metrics("s", {"match": text})


def test_values_of_the_wrong_type() -> None:
    with pytest.raises(ConfigError, match="interval"):
        check_client_metrics("s", {"interval.ms": "often"})
