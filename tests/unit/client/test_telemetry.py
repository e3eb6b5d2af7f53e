"""When a client asks which metrics to push, when it pushes them, and how it handles errors."""

from __future__ import annotations

import gzip
from itertools import pairwise
from uuid import UUID

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from tests.unit.client.scripted import INSTANCE_ID, ScriptedBroker, member
from tests.unit.client.virtual import in_virtual_time

from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import ApiKey

ASK, PUSH = ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY


def asking(*metrics: str) -> ScriptedBroker:
    """Return a broker that collects client metrics."""
    return ScriptedBroker(metrics=list(metrics))


@in_virtual_time
async def test_pushes_come_each_interval_and_a_last_one() -> None:
    broker = asking("*")
    async with member() as consumer:
        await consumer.poll(timeout=5)
        assert await consumer.client_instance_id() == INSTANCE_ID
    asked, pushes = broker.times(ASK), broker.times(PUSH)
    assert len(asked) == 1
    assert 0.5 <= pushes[0] - asked[0] <= 1.5
    assert {round(after - before, 3) for before, after in pairwise(pushes[:-1])} == {1.0}
    bodies = broker.bodies(PUSH)
    assert [body.terminating for body in bodies] == [False] * (len(bodies) - 1) + [True]
    assert {(body.client_instance_id, body.subscription_id) for body in bodies} == {(INSTANCE_ID, 1)}
    for body in bodies:
        assert body.compression_type == 1
        (resource,) = MetricsData.FromString(gzip.decompress(body.metrics)).resource_metrics
        told = {each.key: each.value.string_value for each in resource.resource.attributes}
        assert told["group_member_id"] == consumer.member_id
        assert resource.scope_metrics[0].metrics


@in_virtual_time
async def test_who_is_asked_for_nothing_pushes_nothing_and_asks_again() -> None:
    broker = asking()
    async with member() as consumer:
        await consumer.poll(timeout=3.5)
        broker.metrics = ["*"]
        await consumer.poll(timeout=3)
    assert broker.bodies(ASK)[0].client_instance_id is None
    assert {body.client_instance_id for body in broker.bodies(ASK)[1:]} == {INSTANCE_ID}
    assert len(broker.times(ASK)) == 5
    assert broker.times(PUSH)


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE])
def test_who_was_told_what_is_no_longer_true_asks_anew(code: ErrorCode) -> None:
    @in_virtual_time
    async def run() -> None:
        broker = asking("*")
        broker.says[PUSH].append({"error_code": code})
        async with member() as consumer:
            await consumer.poll(timeout=6)
        refused = broker.times(PUSH)[0]
        assert len(broker.times(ASK)) == 2
        assert broker.times(ASK)[1] - refused < 0.1
        assert len(broker.times(PUSH)) > 3

    run()


@pytest.mark.parametrize("code", [ErrorCode.THROTTLING_QUOTA_EXCEEDED, ErrorCode.TELEMETRY_TOO_LARGE])
def test_what_is_refused_for_now_is_tried_the_next_time(code: ErrorCode) -> None:
    @in_virtual_time
    async def run() -> None:
        broker = asking("*")
        broker.says[PUSH].append({"error_code": code})
        async with member() as consumer:
            await consumer.poll(timeout=6)
        assert len(broker.times(ASK)) == 1
        first, second = broker.times(PUSH)[:2]
        assert second - first == pytest.approx(1.0, abs=0.01)

    run()


@in_virtual_time
async def test_who_is_refused_for_good_says_no_more() -> None:
    broker = asking("*")
    broker.says[PUSH].append({"error_code": ErrorCode.INVALID_RECORD})
    async with member() as consumer:
        await consumer.poll(timeout=6)
        assert await consumer.client_instance_id() == INSTANCE_ID
    assert len(broker.times(PUSH)) == 1


@in_virtual_time
async def test_an_id_that_does_not_come() -> None:
    broker = asking("*")
    broker.says[ASK].append(None)
    async with member() as consumer:
        with pytest.raises(KafkaError) as late:
            await consumer.client_instance_id(0.5)
        assert late.value.code is ErrorCode.REQUEST_TIMED_OUT


@in_virtual_time
async def test_a_broker_that_asks_nobody() -> None:
    ScriptedBroker()
    async with member() as consumer:
        with pytest.raises(KafkaError) as refused:
            await consumer.client_instance_id()
        assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION


@in_virtual_time
async def test_a_client_that_is_not_to_push() -> None:
    broker = asking("*")
    async with member(enable_metrics_push=False) as consumer:
        await consumer.poll(timeout=3)
        with pytest.raises(RuntimeError, match=r"enable\.metrics\.push"):
            await consumer.client_instance_id()
    assert broker.times(ASK) == []


@in_virtual_time
async def test_an_id_of_before_is_kept_when_the_broker_is_another() -> None:
    broker = asking("*")
    broker.says[PUSH].append({"error_code": ErrorCode.UNKNOWN_SUBSCRIPTION_ID})
    async with member() as consumer:
        await consumer.poll(timeout=4)
        assert await consumer.client_instance_id() == INSTANCE_ID
    assert {body.client_instance_id or UUID(int=0) for body in broker.bodies(ASK)} == {
        UUID(int=0),
        INSTANCE_ID,
    }
