"""CreateTopics and DeleteTopics through a node: authorized by the tier, and executed by the cluster."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from tests.unit.client.virtual import in_virtual_time
from tests.unit.tier.forward.through import ALL, SHOWN, STATE, Allowing, Through
from tests.unit.upstream.cluster import Cluster

from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey
from sharecore.security.acl import CLUSTER_NAME, Operation

NO_CLUSTER = (Operation.DELETE, CLUSTER_NAME)


async def way(*denied: tuple[int, str]) -> Through:
    cluster = Cluster(versions=ALL)
    for name in ("a", "b", STATE):
        cluster.create(name)
    return await Through(cluster, Allowing(*denied)).begin()


def deleted(body: Any) -> dict[str, Any]:
    """Answer DeleteTopics like a cluster whose user may delete everything."""
    return {"responses": [{"name": topic.name, "topic_id": topic.topic_id} for topic in body.topics]}


def created(body: Any) -> dict[str, Any]:
    """Answers CreateTopics as a cluster that creates everything."""
    return {"topics": [{"name": topic.name, "error_message": None} for topic in body.topics]}


async def ask(through: Through, *keys: str | UUID) -> dict[str | UUID | None, tuple[str | None, int]]:
    """Delete topics by name or ID; return the name and the code of each response, by requested key."""
    through.cluster.says[ApiKey.DELETE_TOPICS].append(deleted)
    topics = [
        {"name": None, "topic_id": key} if isinstance(key, UUID) else {"name": key, "topic_id": None}
        for key in keys
    ]
    answer = await through.ask(through.client(), ApiKey.DELETE_TOPICS, 6, topics=topics, timeout_ms=1000)
    return {each.topic_id or each.name: (each.name, each.error_code) for each in answer.responses}


def sent(through: Through) -> list[str | UUID]:
    bodies = through.bodies(ApiKey.DELETE_TOPICS)
    return [topic.name or topic.topic_id for _, body in bodies for topic in body.topics]


@in_virtual_time
async def test_who_may_delete_on_the_cluster_needs_no_right_to_the_topic() -> None:
    denied = [(operation, "a") for operation in (Operation.DELETE, Operation.DESCRIBE)]
    through = await way(*denied)
    assert await ask(through, "a", "none") == {
        "a": ("a", ErrorCode.NONE),
        "none": ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    }
    assert sent(through) == ["a"]
    await through.end()


@pytest.mark.parametrize("operation", [Operation.DESCRIBE, Operation.DELETE])
@in_virtual_time
async def test_who_may_not_know_a_topic_is_not_told_its_name(operation: Operation) -> None:
    through = await way(NO_CLUSTER, (operation, "a"))
    topic_id = through.cluster.ids["a"]
    named = "a" if operation == Operation.DELETE else None
    assert await ask(through, topic_id, "b") == {
        topic_id: (named, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        "b": ("b", ErrorCode.NONE),
    }
    assert sent(through) == ["b"]
    await through.end()


@in_virtual_time
async def test_a_topic_that_is_named_and_meant_by_its_id_stays() -> None:
    through = await way()
    topic_id = through.cluster.ids["a"]
    answers = await ask(through, "a", topic_id, "b", SHOWN)
    assert [code for _, code in answers.values()] == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NONE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ]
    assert sent(through) == ["b"]
    await through.end()


@in_virtual_time
async def test_a_setting_of_the_tier_without_a_value_refuses_its_topic_alone() -> None:
    through = await way()
    through.cluster.says[ApiKey.CREATE_TOPICS].append(created)
    config = {"name": "errors.deadletterqueue.group.enable", "value": None}
    topics = [
        {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": configs}
        for name, configs in (("null", [config]), ("plain", []))
    ]
    answer = await through.ask(
        through.client(), ApiKey.CREATE_TOPICS, 7, topics=topics, timeout_ms=1000, validate_only=True
    )
    assert [(each.name, each.error_code, each.error_message) for each in answer.topics] == [
        (
            "null",
            ErrorCode.INVALID_CONFIG,
            "Null value not supported for topic configs: errors.deadletterqueue.group.enable",
        ),
        ("plain", ErrorCode.NONE, None),
    ]
    await through.end()
