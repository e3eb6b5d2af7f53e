"""Trigger metadata and the reported lag."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

import pytest

from sharecore.admin.model import PartitionOffset
from sharecore.admin.pausing import Pause
from sharecore.admin.waiting import Waiting
from sharecore.client.wire.cluster import TopicPartition
from sharecore.errors import ErrorCode, KafkaError
from sharecore.keda.scaler import Scaler, Trigger, TriggerError


class Cluster:
    """Returns the given responses in turn; counts the requests."""

    def __init__(self, *answers: Sequence[PartitionOffset] | KafkaError) -> None:
        self._answers = list(answers)
        self.asked = 0
        self.waiting = Waiting()

    async def waiting_of(self, group_id: str, partitions: Iterable[TopicPartition]) -> Waiting:
        del partitions
        return self.waiting

    async def offsets(self, group_id: str) -> list[PartitionOffset]:
        self.asked += 1
        answer = self._answers[min(self.asked, len(self._answers)) - 1]
        if isinstance(answer, KafkaError):
            raise answer
        return list(answer)


def at(topic: str, partition: int, lag: int | None, error: KafkaError | None = None) -> PartitionOffset:
    return PartitionOffset(TopicPartition(topic, partition), None if lag is None else 7, lag=lag, error=error)


def records(cluster: Cluster, trigger: Trigger) -> float:
    return asyncio.run(Scaler(cluster).records(trigger))


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, "metadata.group is missing: the name of the share group"),
        ({"group": ""}, "metadata.group is missing: the name of the share group"),
        (
            {"group": "g", "lagThreshold": "many"},
            "metadata.lagThreshold: invalid number of records 'many'; allowed: 0.001 or more",
        ),
        (
            {"group": "g", "lagThreshold": "0"},
            "metadata.lagThreshold: invalid number of records '0'; allowed: 0.001 or more",
        ),
        (
            {"group": "g", "activationLagThreshold": "nan"},
            "metadata.activationLagThreshold: invalid number of records 'nan'; allowed: 0 or more",
        ),
        (
            {"group": "g", "consumerGroup": "g"},
            "metadata.consumerGroup: unknown; allowed: activationLagThreshold, group, lagThreshold, topics",
        ),
    ],
)
def test_invalid_metadata_is_rejected_by_name(metadata: dict[str, str], expected: str) -> None:
    with pytest.raises(TriggerError) as refused:
        Trigger.read(metadata)
    assert str(refused.value) == expected


def test_metadata_is_read() -> None:
    metadata = {"scalerAddress": "keda:9466", "group": "g", "topics": "a, b,", "lagThreshold": "2.5"}
    trigger = Trigger.read(metadata)
    assert trigger == Trigger("g", frozenset({"a", "b"}), 2.5)
    assert Trigger.read({"group": "g"}) == Trigger("g", lag_threshold=10, activation_lag_threshold=0)


@pytest.mark.parametrize(
    ("topics", "lags", "expected"),
    [
        ("", [("a", 3), ("a", 4), ("b", 50)], 57),
        ("a", [("a", 3), ("a", 4), ("b", 50)], 7),
        ("a", [("a", 0)], 0),
        # only a worker can create an unknown position
        ("a", [("a", 0), ("a", None)], 10),
        ("a", [("a", 60), ("a", None)], 60),
        ("a,b", [("a", 0)], 10),
        ("", [], 10),
    ],
)
def test_lags_of_the_chosen_topics_are_summed(
    topics: str, lags: list[tuple[str, int | None]], expected: float
) -> None:
    offsets = [at(topic, number, lag) for number, (topic, lag) in enumerate(lags)]
    trigger = Trigger.read({"group": "g", "topics": topics})
    assert records(Cluster(offsets), trigger) == expected


def test_a_group_that_does_not_exist_yet_gets_its_first_worker() -> None:
    missing = KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, "no such group")
    trigger = Trigger("g", lag_threshold=25)
    assert records(Cluster(missing), trigger) == 25
    assert asyncio.run(Scaler(Cluster(missing)).is_active(trigger))


def test_a_missing_right_is_an_error_and_not_a_lag() -> None:
    denied = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "the right DESCRIBE on topic b is missing")
    with pytest.raises(KafkaError, match="DESCRIBE on topic b"):
        records(Cluster([at("a", 0, 5), at("b", 0, None, denied)]), Trigger("g"))
    # an excluded topic cannot fail the trigger
    assert records(Cluster([at("a", 0, 5), at("b", 0, None, denied)]), Trigger("g", frozenset("a"))) == 5
    refused = KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED, "the right DESCRIBE on group g is missing")
    with pytest.raises(KafkaError, match="DESCRIBE on group g"):
        records(Cluster(refused), Trigger("g"))


def test_a_group_is_active_above_the_activation_threshold() -> None:
    trigger = Trigger.read({"group": "g", "activationLagThreshold": "5"})
    for lag, active in ((5, False), (6, True)):
        assert asyncio.run(Scaler(Cluster([at("a", 0, lag)])).is_active(trigger)) is active


def test_triggers_of_one_group_share_a_request() -> None:
    now = [0.0]
    cluster = Cluster([at("a", 0, 1), at("b", 0, 2)], [at("a", 0, 3)])
    scaler = Scaler(cluster, fresh_s=1.0, now_s=lambda: now[0])

    async def ask() -> list[float]:
        triggers = [Trigger("g"), Trigger("g", frozenset("a"))]
        return list(await asyncio.gather(*map(scaler.records, triggers)))

    async def work() -> None:
        assert await ask() == [3, 1]
        assert cluster.asked == 1
        now[0] = 1.5
        assert await ask() == [3, 3]
        assert cluster.asked == 2

    asyncio.run(work())


def test_a_failed_request_is_tried_again() -> None:
    now = [0.0]
    cluster = Cluster(KafkaError(ErrorCode.REQUEST_TIMED_OUT, "nobody answered"), [at("a", 0, 3)])
    scaler = Scaler(cluster, fresh_s=1.0, now_s=lambda: now[0])

    async def work() -> None:
        with pytest.raises(KafkaError):
            await scaler.records(Trigger("g"))
        now[0] = 1.5
        assert await scaler.records(Trigger("g")) == 3

    asyncio.run(work())


def test_records_whose_time_has_not_come_do_not_count() -> None:
    cluster = Cluster([at("a", 0, 12), at("a", 1, 5), at("b", 0, 3)])
    cluster.waiting.partitions[TopicPartition("a", 0)] = [
        {"reason": "backoff", "records": 4, "dueMs": 7},
        {"reason": "delivery", "records": 3, "dueMs": None},
        {"reason": "order", "records": 2},
        {"reason": "a later version's"},
    ]
    cluster.waiting.partitions[TopicPartition("a", 1)] = [{"reason": "delivery", "records": 9}]
    assert records(cluster, Trigger("g")) == 12 - 7 + 0 + 3
    assert records(cluster, Trigger("g", frozenset({"b"}))) == 3
    assert records(cluster, Trigger("g", frozenset({"missing"}))) == 10


def test_a_paused_group_needs_no_worker() -> None:
    cluster = Cluster([at("a", 0, 12)])
    trigger = Trigger("g")
    assert asyncio.run(Scaler(cluster).is_active(trigger))
    cluster.waiting.pause = Pause(lasting=True)
    assert not asyncio.run(Scaler(cluster).is_active(trigger))
    cluster.waiting.pause = Pause(until_ms=1)
    assert asyncio.run(Scaler(cluster).is_active(trigger)), "its end is in the past"


def test_a_paused_group_without_positions_needs_no_worker() -> None:
    cluster = Cluster([at("a", 0, None)])
    trigger = Trigger("g")
    assert records(cluster, trigger) == 10
    cluster.waiting.pause = Pause(lasting=True)
    assert records(cluster, trigger) == 0
