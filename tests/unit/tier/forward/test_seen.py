"""Clients only learn of topics visible to them, and of none that belongs to the tier."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.client.virtual import in_virtual_time
from tests.unit.tier.forward.through import (
    ALL,
    COORDINATED,
    SETTINGS,
    SHOWN,
    STATE,
    Allowing,
    Client,
    Through,
)
from tests.unit.upstream.cluster import Cluster

from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import ApiKey
from sharecore.security.acl import Operation

NO_SECRET = Allowing((Operation.DESCRIBE, "secret"))


async def way(authorizer: Any = None) -> Through:
    cluster = Cluster(versions=ALL)
    for name in ("open", "secret", STATE, SETTINGS, "__transaction_state"):
        cluster.create(name, 1)
    return await Through(cluster, authorizer).begin()


# descriptions of groups and transactions


def _member(subscribed: list[str], assigned: list[str], target: list[str]) -> dict[str, Any]:
    def assignment(names: list[str]) -> dict[str, Any]:
        return {"topic_partitions": [{"topic_name": name, "partitions": [0]} for name in names]}

    return {
        "member_id": "m",
        "subscribed_topic_names": subscribed,
        "assignment": assignment(assigned),
        "target_assignment": assignment(target),
    }


async def _describe(through: Through, *members: dict[str, Any]) -> Any:
    group = {"group_id": "g", "group_state": "Stable", "members": members}
    through.cluster.says[ApiKey.CONSUMER_GROUP_DESCRIBE].append({"groups": [group]})
    asked = {"group_ids": ["g"], "include_authorized_operations": False}
    answer = await through.ask(through.client(), ApiKey.CONSUMER_GROUP_DESCRIBE, 1, **asked)
    return answer.groups[0]


@pytest.mark.parametrize(("assigned", "target"), [(["secret"], []), ([], ["secret"])])
@in_virtual_time
async def test_a_group_is_described_to_those_who_may_see_its_topics(
    assigned: list[str], target: list[str]
) -> None:
    through = await way(NO_SECRET)
    told = await _describe(through, _member(["open"], ["open"], []), _member(["secret"], assigned, target))
    assert (told.error_code, list(told.members)) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, [])
    told = await _describe(through, _member(["open"], ["open"], ["open"]))
    assert (told.error_code, len(told.members)) == (0, 1)
    await through.end()


@in_virtual_time
async def test_what_members_have_of_the_tiers_topics_is_told_under_the_name_that_clients_know() -> None:
    through = await way()
    names = ["open", STATE, SETTINGS, "__transaction_state", SHOWN]
    (member,) = (await _describe(through, _member(names, names, names))).members
    assert list(member.subscribed_topic_names) == ["open", SHOWN]
    for assignment in (member.assignment, member.target_assignment):
        assert [topic.topic_name for topic in assignment.topic_partitions] == ["open", SHOWN]
    await through.end()


@in_virtual_time
async def test_a_transaction_is_described_with_the_topics_that_the_client_may_see() -> None:
    through = await way(NO_SECRET)
    topics = [{"topic": name, "partitions": [0]} for name in ("open", "secret", SETTINGS, STATE, COORDINATED)]
    states = [{"transactional_id": "t", "transaction_state": "Ongoing", "topics": topics}]
    through.cluster.says[ApiKey.DESCRIBE_TRANSACTIONS].append({"transaction_states": states})
    answer = await through.ask(through.client(), ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=["t"])
    assert [topic.topic for topic in answer.transaction_states[0].topics] == ["open", SHOWN, COORDINATED]
    await through.end()


# committed offsets


@pytest.mark.parametrize("everything", [True, False])
@in_virtual_time
async def test_offsets_of_topics_that_clients_must_not_reach_are_none(everything: bool) -> None:
    through = await way()
    part = {"partition_index": 0, "committed_offset": 5, "metadata": "told"}
    names = ("open", SETTINGS, "__transaction_state")
    topics = [{"name": name, "partitions": [part]} for name in names]
    through.cluster.says[ApiKey.OFFSET_FETCH].append({"groups": [{"group_id": "g", "topics": topics}]})
    asked = None if everything else [{"name": name, "partition_indexes": [0]} for name in names]
    answer = await through.ask(
        through.client(), ApiKey.OFFSET_FETCH, 8, groups=[{"group_id": "g", "topics": asked}]
    )
    told = {
        topic.name: (part.committed_offset, part.metadata, part.error_code)
        for topic in answer.groups[0].topics
        for part in topic.partitions
    }
    hidden = {} if everything else dict.fromkeys(names[1:], (-1, "", 0))
    assert told == {"open": (5, "told", 0)} | hidden
    await through.end()


@in_virtual_time
async def test_rights_on_a_topic_are_asked_for_by_its_id_as_by_its_name() -> None:
    """An ID unknown to the node may be of a topic that the client may not read."""
    through = await way(Allowing((Operation.READ, "secret")))
    ids = through.cluster.ids
    through.cluster.create("new", 1)
    asked = [ids["open"], ids["secret"], ids[SETTINGS], ids["new"]]
    part = {"partition_index": 0, "committed_offset": 5}

    def committed(body: Any) -> Any:
        parts = [{"partition_index": 0, "error_code": 0}]
        return {"topics": [{"topic_id": topic.topic_id, "partitions": parts} for topic in body.topics]}

    through.cluster.says[ApiKey.OFFSET_COMMIT].append(committed)
    answer = await through.ask(
        through.client(),
        ApiKey.OFFSET_COMMIT,
        10,
        group_id="g",
        topics=[{"topic_id": topic_id, "partitions": [part]} for topic_id in asked],
    )
    codes = {topic.topic_id: topic.partitions[0].error_code for topic in answer.topics}
    assert [codes[topic_id] for topic_id in asked] == [
        0,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ]
    await through.end()


# subscriptions by regular expression


class Member:
    """A member of a consumer group that sends heartbeats through a node."""

    def __init__(self, through: Through, client: Client | None = None) -> None:
        self.through = through
        self._client = client or through.client()
        self._epoch = 0

    async def beat(self, code: int = 0, **fields: Any) -> Any:
        """Send a heartbeat; return the names and the expression sent to the cluster."""
        self.through.cluster.asked.clear()
        answer = {"error_code": code, "member_id": "m", "member_epoch": 1, "heartbeat_interval_ms": 5}
        self.through.cluster.says[ApiKey.CONSUMER_GROUP_HEARTBEAT].append(answer)
        message = {"group_id": "g", "member_id": "m", "member_epoch": self._epoch} | fields
        await self.through.ask(self._client, ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, **message)
        self._epoch = 1
        ((_, body),) = self.through.bodies(ApiKey.CONSUMER_GROUP_HEARTBEAT)
        names = body.subscribed_topic_names
        return None if names is None else list(names), body.subscribed_topic_regex


JOINS: dict[str, Any] = {"rebalance_timeout_ms": 1000, "topic_partitions": []}


@in_virtual_time
async def test_an_expression_subscribes_to_what_its_member_may_describe() -> None:
    through = await way(NO_SECRET)
    member = Member(through)
    assert await member.beat(subscribed_topic_regex=".*", **JOINS) == (sorted(["open", STATE]), "")
    assert await member.beat() == (None, None), "nothing has changed"
    await through.end()


@in_virtual_time
async def test_an_expression_finds_new_topics() -> None:
    through = await way()
    member = Member(through)
    assert await member.beat(subscribed_topic_regex="(open|new).*", **JOINS) == (["open"], "")
    through.cluster.create("new-one", 1)
    await through.upstream.refreshed()
    await asyncio.sleep(1)
    assert await member.beat() == (["new-one", "open"], None)
    assert await member.beat(subscribed_topic_names=["secret"]) == (["new-one", "open", "secret"], None)
    assert await member.beat(subscribed_topic_regex="") == (["secret"], "")
    assert await member.beat() == (None, None)
    await through.end()


@in_virtual_time
async def test_names_are_sent_again_where_the_cluster_has_refused_a_heartbeat() -> None:
    through = await way()
    member = Member(through)
    await member.beat(subscribed_topic_regex="open", **JOINS)
    assert await member.beat(code=ErrorCode.UNKNOWN_SERVER_ERROR) == (None, None)
    assert await member.beat() == (["open"], None)
    assert await member.beat() == (None, None)
    await through.end()


@in_virtual_time
async def test_a_member_is_described_with_its_expression() -> None:
    through = await way()
    await Member(through).beat(subscribed_topic_regex="op.*", **JOINS)
    (member,) = (await _describe(through, _member(["open"], ["open"], []))).members
    assert (list(member.subscribed_topic_names), member.subscribed_topic_regex) == ([], "op.*")
    await through.end()


@in_virtual_time
async def test_what_is_no_expression_is_refused() -> None:
    through = await way()
    with pytest.raises(KafkaError) as raised:
        await Member(through).beat(subscribed_topic_regex="(", **JOINS)
    assert raised.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    await through.end()


@in_virtual_time
async def test_a_topic_that_a_member_names_must_be_one_that_it_may_describe() -> None:
    through = await way(NO_SECRET)
    with pytest.raises(KafkaError) as raised:
        await Member(through).beat(subscribed_topic_names=["open", "secret"], **JOINS)
    assert raised.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    await through.end()
