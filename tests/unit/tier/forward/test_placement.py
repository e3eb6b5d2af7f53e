"""Elections and reassignments through a node: authorized by the tier, and executed by the cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.client.virtual import in_virtual_time
from tests.unit.tier.forward.through import ALL, STATE, Allowing, Through
from tests.unit.upstream.cluster import Cluster

from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey
from sharecore.security.acl import CLUSTER_NAME, Operation

UNKNOWN, NOT_NEEDED = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.ELECTION_NOT_NEEDED


async def way(*denied: tuple[int, str]) -> Through:
    cluster = Cluster(versions=ALL)
    for name in ("a", "b", STATE):
        cluster.create(name)
    return await Through(cluster, Allowing(*denied)).begin()


def elected(*codes: int) -> Callable[[Any], dict[str, Any]]:
    """Return the cluster's response, with the codes of all partitions in order."""

    def answer(body: Any) -> dict[str, Any]:
        left = iter(codes)
        results = [
            {
                "topic": topic.topic,
                "partition_result": [
                    {"partition_id": index, "error_code": next(left)} for index in topic.partitions
                ],
            }
            for topic in body.topic_partitions
        ]
        return {"error_code": 0, "replica_election_results": results}

    return answer


async def elect(through: Through, topics: list[tuple[str, list[int]]] | None) -> list[tuple[str, int, int]]:
    asked = None
    if topics is not None:
        asked = [{"topic": name, "partitions": indexes} for name, indexes in topics]
    answer = await through.ask(
        through.client(),
        ApiKey.ELECT_LEADERS,
        2,
        election_type=0,
        topic_partitions=asked,
        timeout_ms=1000,
    )
    return [
        (topic.topic, part.partition_id, part.error_code)
        for topic in answer.replica_election_results
        for part in topic.partition_result
    ]


@in_virtual_time
async def test_leaders_of_topics_are_elected_in_the_order_of_the_request() -> None:
    through = await way()
    through.cluster.says[ApiKey.ELECT_LEADERS].append(elected(0, NOT_NEEDED, 0))
    asked = [("b", [0]), (STATE, [0]), ("a", [0]), ("b", [0])]
    assert await elect(through, asked) == [
        ("b", 0, 0), (STATE, 0, UNKNOWN), ("a", 0, NOT_NEEDED), ("b", 0, 0),
    ]  # fmt: skip
    await through.end()


@in_virtual_time
async def test_all_leaders_are_elected_but_those_of_the_tier() -> None:
    through = await way()
    partitions = {name: len(parts) for name, parts in through.cluster.topics.items() if name != STATE}
    codes = [NOT_NEEDED] * (sum(partitions.values()) - 1) + [0]
    through.cluster.says[ApiKey.ELECT_LEADERS].append(elected(*codes))
    assert [code for _, _, code in await elect(through, None)] == [0], "only what was needed is told of"
    ((_, body),) = through.bodies(ApiKey.ELECT_LEADERS)
    assert {each.topic: len(each.partitions) for each in body.topic_partitions} == partitions
    await through.end()


@in_virtual_time
async def test_a_controller_that_cannot_be_reached_is_told_of_for_each_partition() -> None:
    through = await way()
    for broker in through.cluster.brokers:
        broker.stop()
    assert await elect(through, [("a", [0, 1])]) == [
        ("a", 0, ErrorCode.NOT_CONTROLLER),
        ("a", 1, ErrorCode.NOT_CONTROLLER),
    ]
    await through.end()


@in_virtual_time
async def test_each_of_a_partitions_reassignments_has_its_own_answer() -> None:
    through = await way()
    codes = [ErrorCode.NONE, ErrorCode.INVALID_REPLICA_ASSIGNMENT]

    def moved(body: Any) -> dict[str, Any]:
        (topic,) = body.topics
        parts = [
            {"partition_index": each.partition_index, "error_code": code}
            for each, code in zip(topic.partitions, codes, strict=True)
        ]
        return {"error_code": 0, "responses": [{"name": topic.name, "partitions": parts}]}

    through.cluster.says[ApiKey.ALTER_PARTITION_REASSIGNMENTS].append(moved)
    parts = [{"partition_index": 0, "replicas": [broker]} for broker in (1, 9)]
    answer = await through.ask(
        through.client(),
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        0,
        topics=[{"name": name, "partitions": parts} for name in (STATE, "a")],
        timeout_ms=1000,
    )
    assert [[part.error_code for part in topic.partitions] for topic in answer.responses] == [
        [UNKNOWN, UNKNOWN],
        codes,
    ]
    await through.end()


@in_virtual_time
async def test_what_moves_is_listed_but_for_topics_of_the_tier() -> None:
    through = await way()
    moving = [{"partition_index": 0, "replicas": [1, 2], "adding_replicas": [2], "removing_replicas": []}]
    listed = {"error_code": 0, "topics": [{"name": name, "partitions": moving} for name in (STATE, "a")]}
    through.cluster.says[ApiKey.LIST_PARTITION_REASSIGNMENTS].append(lambda _: listed)
    answer = await through.ask(
        through.client(), ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, topics=None, timeout_ms=1000
    )
    assert [topic.name for topic in answer.topics] == ["a"]
    await through.end()


@pytest.mark.parametrize("operation", [Operation.ALTER, Operation.DESCRIBE])
@in_virtual_time
async def test_rights_on_the_cluster_are_those_of_the_tier(operation: Operation) -> None:
    through = await way((operation, CLUSTER_NAME))
    through.cluster.says[ApiKey.ELECT_LEADERS].append(elected(0))
    refused = operation == Operation.ALTER
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED if refused else 0
    assert await elect(through, [("a", [0])]) == [("a", 0, code)]
    assert len(through.bodies(ApiKey.ELECT_LEADERS)) == (not refused)
    await through.end()
