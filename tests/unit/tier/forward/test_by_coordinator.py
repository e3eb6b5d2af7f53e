"""Groups and transactions: each request goes to its current upstream coordinator."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.client.virtual import in_virtual_time
from tests.unit.tier.forward.through import ALL, SHOWN, STATE, Allowing, Client, Through
from tests.unit.upstream.cluster import Cluster

from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import ApiKey
from sharecore.security.acl import Operation
from sharecore.tier.forward import by_keys


async def way(authorizer: Any = None, **coordinators: int) -> Through:
    cluster = Cluster(nodes=2, versions=ALL, coordinators=coordinators)
    cluster.create("a", 1)
    cluster.create("__state", 1)
    return await Through(cluster, authorizer).begin()


def commit(through: Through, client: Client, group: str, *topics: str) -> asyncio.Task[Any]:
    parts = [{"partition_index": 0, "committed_offset": 5, "committed_leader_epoch": 57}]
    return through.ask(
        client,
        ApiKey.OFFSET_COMMIT,
        8,
        group_id=group,
        topics=[{"name": name, "partitions": parts} for name in topics],
    )


def committed(code: int = 0) -> Any:
    """Answer OffsetCommit."""
    return lambda body: {
        "topics": [
            {
                "name": topic.name,
                "partitions": [
                    {"partition_index": part.partition_index, "error_code": code} for part in topic.partitions
                ],
            }
            for topic in body.topics
        ]
    }


def codes(answer: Any) -> list[tuple[str, int]]:
    return [(topic.name, part.error_code) for topic in answer.topics for part in topic.partitions]


@in_virtual_time
async def test_a_coordinator_is_looked_up_once() -> None:
    through = await way(g=1)
    client = through.client()
    for _ in range(3):
        assert (await through.ask(client, ApiKey.HEARTBEAT, 4, group_id="g", member_id="m")).error_code == 0
    assert [node for node, _ in through.bodies(ApiKey.HEARTBEAT)] == [1, 1, 1]
    assert len(through.bodies(ApiKey.FIND_COORDINATOR)) == 1
    await through.end()


@in_virtual_time
async def test_a_coordinator_that_moved_is_looked_up_again() -> None:
    through = await way(g=1)
    client = through.client()
    cluster = through.cluster
    cluster.says[ApiKey.OFFSET_COMMIT] += [committed(ErrorCode.NOT_COORDINATOR), committed()]
    cluster.coordinators["g"] = 1
    assert codes(await commit(through, client, "g", "a")) == [("a", ErrorCode.NOT_COORDINATOR)]
    cluster.coordinators["g"] = 0
    assert codes(await commit(through, client, "g", "a")) == [("a", 0)]
    assert [node for node, _ in through.bodies(ApiKey.OFFSET_COMMIT)] == [1, 0]
    # a consumer's own epochs are the cluster's, those of its records
    part = through.bodies(ApiKey.OFFSET_COMMIT)[0][1].topics[0].partitions[0]
    assert part.committed_leader_epoch == 57
    await through.end()


@in_virtual_time
async def test_a_coordinator_that_is_gone_is_an_error_to_try_again_after() -> None:
    through = await way(g=1)
    client = through.client()
    await through.ask(client, ApiKey.HEARTBEAT, 4, group_id="g", member_id="m")
    through.cluster.brokers[1].stop()
    with pytest.raises(KafkaError) as raised:
        await through.ask(client, ApiKey.HEARTBEAT, 4, group_id="g", member_id="m")
    assert raised.value.code is ErrorCode.NOT_COORDINATOR
    assert codes(await commit(through, client, "g", "a")) == [("a", ErrorCode.NOT_COORDINATOR)]
    await through.end()


@in_virtual_time
async def test_a_member_may_wait_for_others_as_long_as_it_says() -> None:
    through = await way()
    through.cluster.says[ApiKey.JOIN_GROUP].append(20.0)
    joined = await through.ask(
        through.client(),
        ApiKey.JOIN_GROUP,
        9,
        group_id="g",
        member_id="m",
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[{"name": "range", "metadata": b"topics"}],
    )
    assert (joined.error_code, joined.leader, joined.members[0].metadata) == (0, "m", b"topics")
    await through.end()


@in_virtual_time
async def test_topics_that_a_client_may_not_use_do_not_reach_the_cluster() -> None:
    through = await way(Allowing((Operation.READ, "secret"), (Operation.READ, "others")))
    client = through.client()
    through.cluster.says[ApiKey.OFFSET_COMMIT].append(committed())
    answer = await commit(through, client, "g", "secret", "a")
    assert codes(answer) == [("secret", ErrorCode.TOPIC_AUTHORIZATION_FAILED), ("a", 0)]
    assert [topic.name for topic in through.bodies(ApiKey.OFFSET_COMMIT)[0][1].topics] == ["a"]
    answer = await commit(through, client, "others", "a")
    assert codes(answer) == [("a", ErrorCode.GROUP_AUTHORIZATION_FAILED)]
    await through.end()


@in_virtual_time
async def test_partitions_join_a_transaction_all_or_none() -> None:
    through = await way(Allowing((Operation.WRITE, "secret")))
    answer = await through.ask(
        through.client(),
        ApiKey.ADD_PARTITIONS_TO_TXN,
        3,
        v3_and_below_transactional_id="t",
        v3_and_below_topics=[{"name": name, "partitions": [0]} for name in ("a", "secret")],
    )
    told = {
        topic.name: topic.results_by_partition[0].partition_error_code
        for topic in answer.results_by_topic_v3_and_below
    }
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert told == {"a": ErrorCode.OPERATION_NOT_ATTEMPTED, "secret": refused}
    await through.end()


@in_virtual_time
async def test_what_the_tier_needs_for_itself_is_out_of_reach() -> None:
    through = await way()
    client = through.client()
    for api, version, message in [
        (ApiKey.HEARTBEAT, 4, {"group_id": "sharecore-__state"}),
        (ApiKey.LEAVE_GROUP, 5, {"group_id": "sharecore-__state"}),
        (ApiKey.INIT_PRODUCER_ID, 4, {"transactional_id": "sharecore-__state-0"}),
        (ApiKey.END_TXN, 4, {"transactional_id": "sharecore-__state-0"}),
    ]:
        with pytest.raises(KafkaError) as raised:
            await through.ask(client, api, version, **message)
        assert raised.value.code.name.endswith("AUTHORIZATION_FAILED")
    deleted = await through.ask(client, ApiKey.DELETE_GROUPS, 2, groups_names=["sharecore-__state"])
    assert deleted.results[0].error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    await through.end()


@in_virtual_time
async def test_a_producer_that_is_only_idempotent_has_no_coordinator() -> None:
    through = await way()
    answer = await through.ask(through.client(), ApiKey.INIT_PRODUCER_ID, 4, transactional_id=None)
    assert (answer.error_code, answer.producer_id) == (0, 7)
    assert through.bodies(ApiKey.FIND_COORDINATOR) == []
    await through.end()


@in_virtual_time
async def test_groups_that_are_named_together_are_asked_of_their_coordinators() -> None:
    through = await way(Allowing((Operation.DESCRIBE, "hidden")), one=0, two=1)

    def described(body: Any) -> dict[str, Any]:
        return {
            "groups": [
                {"group_id": group, "group_state": "Stable", "authorized_operations": 99}
                for group in body.groups
            ]
        }

    through.cluster.says[ApiKey.DESCRIBE_GROUPS] += [described, described]
    answer = await through.ask(
        through.client(),
        ApiKey.DESCRIBE_GROUPS,
        5,
        groups=["two", "hidden", "one"],
        include_authorized_operations=True,
    )
    assert [(each.group_id, each.error_code, each.authorized_operations) for each in answer.groups] == [
        ("two", 0, 8),
        ("hidden", ErrorCode.GROUP_AUTHORIZATION_FAILED, -2147483648),
        ("one", 0, 8),
    ]
    asked = {node: body.groups for node, body in through.bodies(ApiKey.DESCRIBE_GROUPS)}
    assert asked == {0: ["one"], 1: ["two"]}
    await through.end()


@in_virtual_time
async def test_many_groups_are_asked_about_in_several_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A response of the cluster is decoded in one turn of the loop."""
    monkeypatch.setattr(by_keys, "_ASKED_AT_ONCE", 2)
    through = await way()

    def described(body: Any) -> dict[str, Any]:
        return {"groups": [{"group_id": group, "group_state": "Stable"} for group in body.groups]}

    through.cluster.says[ApiKey.DESCRIBE_GROUPS] += [described] * 3
    groups = ["one", "two", "three", "one", "four", "five"]
    answer = await through.ask(through.client(), ApiKey.DESCRIBE_GROUPS, 6, groups=groups)
    assert [(each.group_id, each.group_state) for each in answer.groups] == [
        (group, "Stable") for group in groups
    ]
    asked = [body.groups for _, body in through.bodies(ApiKey.DESCRIBE_GROUPS)]
    assert asked == [["one", "one", "two"], ["three", "four"], ["five"]]
    await through.end()


@pytest.mark.parametrize("version", [0, 6])
@in_virtual_time
async def test_a_group_that_is_named_twice_is_told_of_twice(version: int) -> None:
    """Also in the oldest version, whose response has no throttle time."""
    through = await way()
    groups = [{"group_id": "one", "group_state": "Stable"}]
    through.cluster.says[ApiKey.DESCRIBE_GROUPS].append({"groups": groups})
    answer = await through.ask(through.client(), ApiKey.DESCRIBE_GROUPS, version, groups=["one", "one"])
    assert [(each.group_id, each.group_state) for each in answer.groups] == [("one", "Stable")] * 2
    await through.end()


@in_virtual_time
async def test_a_group_that_is_to_be_deleted_twice_is_told_of_once() -> None:
    through = await way()
    through.cluster.says[ApiKey.DELETE_GROUPS].append({"results": [{"group_id": "one", "error_code": 69}]})
    answer = await through.ask(through.client(), ApiKey.DELETE_GROUPS, 2, groups_names=["one", "one"])
    assert [(each.group_id, each.error_code) for each in answer.results] == [("one", 69)]
    await through.end()


@in_virtual_time
async def test_offsets_of_a_group_that_is_named_twice_are_those_of_each_time() -> None:
    through = await way()
    parts = [{"partition_index": 0, "committed_offset": 5, "committed_leader_epoch": 57}]

    def offsets(body: Any) -> Any:
        names = [["a", "b"] if each.topics is None else [each.topics[0].name] for each in body.groups]
        return {
            "groups": [
                {"group_id": "g", "topics": [{"name": name, "partitions": parts} for name in some]}
                for some in names
            ]
        }

    through.cluster.says[ApiKey.OFFSET_FETCH].append(offsets)
    some = [{"name": "b", "partition_indexes": [0]}]
    groups: list[dict[str, Any]] = [{"group_id": "g", "topics": each} for each in (some, None, some)]
    answer = await through.ask(through.client(), ApiKey.OFFSET_FETCH, 8, groups=groups)
    assert [[topic.name for topic in group.topics] for group in answer.groups] == [["b"], ["a", "b"], ["b"]]
    await through.end()


@in_virtual_time
async def test_partitions_that_do_not_exist_are_told_of_beside_those_that_are_refused() -> None:
    through = await way(Allowing((Operation.WRITE, "secret")))
    topics = [{"name": name, "partitions": [0, 7, 0]} for name in ("a", "secret", "none", "a")]
    answer = await through.ask(
        through.client(),
        ApiKey.ADD_PARTITIONS_TO_TXN,
        3,
        v3_and_below_transactional_id="t",
        v3_and_below_topics=topics,
    )
    told = {
        topic.name: [(part.partition_index, part.partition_error_code) for part in topic.results_by_partition]
        for topic in answer.results_by_topic_v3_and_below
    }
    denied, unknown = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert told == {
        "a": [(0, ErrorCode.OPERATION_NOT_ATTEMPTED), (7, unknown)],
        "secret": [(0, denied), (7, denied)],
        "none": [(0, unknown), (7, unknown)],
    }
    assert through.bodies(ApiKey.ADD_PARTITIONS_TO_TXN) == []
    await through.end()


@pytest.mark.parametrize("version", [5, 8])
@in_virtual_time
async def test_committed_offsets_come_without_the_epochs_of_another_cluster(version: int) -> None:
    through = await way(Allowing((Operation.DESCRIBE, "secret")))
    topics = [
        {
            "name": name,
            "partitions": [{"partition_index": 0, "committed_offset": 5, "committed_leader_epoch": 57}],
        }
        for name in ("a", "secret")
    ]
    one = {"group_id": "g", "topics": topics}
    through.cluster.says[ApiKey.OFFSET_FETCH].append({"groups": [one]} if version >= 8 else one)
    asked: dict[str, Any] = {"group_id": "g", "topics": None}
    message = {"groups": [asked]} if version >= 8 else asked
    answer = await through.ask(through.client(), ApiKey.OFFSET_FETCH, version, **message)
    told = answer.groups[0] if version >= 8 else answer
    (topic,) = told.topics
    part = topic.partitions[0]
    assert (topic.name, part.committed_offset, part.committed_leader_epoch) == ("a", 5, -1)
    await through.end()


@in_virtual_time
async def test_groups_are_listed_from_all_brokers_but_not_the_tiers_own() -> None:
    through = await way()

    through.cluster.says[ApiKey.LIST_TRANSACTIONS] += [
        {"transaction_states": [{"transactional_id": "sharecore-__state-1"}, {"transactional_id": "mine"}]},
        {"transaction_states": [{"transactional_id": "other"}]},
    ]
    answer = await through.ask(through.client(), ApiKey.LIST_TRANSACTIONS, 0)
    assert sorted(each.transactional_id for each in answer.transaction_states) == ["mine", "other"]
    await through.end()


@pytest.mark.parametrize("version", [0, 5])
@in_virtual_time
async def test_groups_are_listed_in_every_version(version: int) -> None:
    through = await way()
    through.cluster.says[ApiKey.LIST_GROUPS] += [{"groups": [{"group_id": "one"}]}, {"groups": []}]
    answer = await through.ask(through.client(), ApiKey.LIST_GROUPS, version)
    assert [each.group_id for each in answer.groups] == ["one"]
    await through.end()


@in_virtual_time
async def test_offsets_in_a_topic_that_has_another_name_on_the_cluster_are_kept_under_that() -> None:
    """`__share_group_state` is the tier's own topic there; a group that reads it commits as in any other."""
    through = await way()
    client, cluster = through.client(), through.cluster
    cluster.says[ApiKey.OFFSET_COMMIT] += [committed()]
    assert codes(await commit(through, client, "g", "a", SHOWN)) == [("a", 0), (SHOWN, 0)]
    sent = through.bodies(ApiKey.OFFSET_COMMIT)[0][1]
    assert [topic.name for topic in sent.topics] == ["a", STATE]

    part = {"partition_index": 0, "committed_offset": 5, "committed_leader_epoch": 3, "metadata": ""}
    known = [{"name": STATE, "partitions": [part | {"error_code": 0}]}]
    cluster.says[ApiKey.OFFSET_FETCH] += [{"topics": known}, {"groups": [{"group_id": "g", "topics": known}]}]
    asked = [{"name": SHOWN, "partition_indexes": [0]}]
    one = await through.ask(client, ApiKey.OFFSET_FETCH, 7, group_id="g", topics=asked)
    assert [(topic.name, topic.partitions[0].committed_offset) for topic in one.topics] == [(SHOWN, 5)]
    groups = [{"group_id": "g", "topics": asked}]
    many = await through.ask(client, ApiKey.OFFSET_FETCH, 8, groups=groups)
    assert [topic.name for topic in many.groups[0].topics] == [SHOWN]
    sent_names = [
        [topic.name for topic in getattr(body, "topics", None) or body.groups[0].topics]
        for _, body in through.bodies(ApiKey.OFFSET_FETCH)
    ]
    assert sent_names == [[STATE], [STATE]]
    await through.end()


@pytest.mark.parametrize("version", [1, 2, 7])
@in_virtual_time
async def test_offsets_of_a_group_that_a_client_may_not_describe_are_refused_as_a_version_can(
    version: int,
) -> None:
    """The oldest versions have no field for a group error."""
    through = await way(Allowing((Operation.DESCRIBE, "g")))
    topics = [{"name": "a", "partition_indexes": [0, 1]}]
    answer = await through.ask(through.client(), ApiKey.OFFSET_FETCH, version, group_id="g", topics=topics)
    refused = ErrorCode.GROUP_AUTHORIZATION_FAILED
    found = [part.error_code for topic in answer.topics for part in topic.partitions]
    assert (found, getattr(answer, "error_code", None)) == (
        ([refused] * 2, None) if version == 1 else ([], refused)
    )
    await through.end()


@in_virtual_time
async def test_a_join_that_is_refused_names_no_protocol() -> None:
    through = await way(Allowing((Operation.READ, "g")))
    for version, protocol in ((6, ""), (7, None)):
        answer = await through.ask(
            through.client(), ApiKey.JOIN_GROUP, version, group_id="g", member_id="m", protocols=[]
        )
        assert (answer.error_code, answer.member_id) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, "m")
        assert answer.protocol_name == protocol
    await through.end()


@in_virtual_time
async def test_an_error_of_a_whole_group_leaves_its_partitions_out() -> None:
    through = await way(Allowing((Operation.READ, "secret")))
    gone = {"error_code": ErrorCode.GROUP_ID_NOT_FOUND, "topics": []}
    through.cluster.says[ApiKey.OFFSET_DELETE].append(gone)
    topics = [{"name": name, "partitions": [{"partition_index": 0}]} for name in ("a", "secret")]
    answer = await through.ask(through.client(), ApiKey.OFFSET_DELETE, 0, group_id="g", topics=topics)
    assert (answer.error_code, list(answer.topics)) == (ErrorCode.GROUP_ID_NOT_FOUND, [])
    await through.end()
