"""Deletion of the broker's own topics: it continues without their content, as Apache Kafka does."""

from __future__ import annotations

from typing import Any

import pytest
from tests.harness.running import RunningBroker
from tests.unit.broker.share_member import Member, acquired, produce

from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey

OFFSETS, TRANSACTIONS, STATE = "__consumer_offsets", "__transaction_state", "__share_group_state"


def delete(broker: RunningBroker, name: str) -> None:
    """Delete a topic, and wait until it is recreated."""
    before = broker.look(lambda running: running.topics.get(name))
    assert before is not None
    topics = [{"name": name, "topic_id": None}]
    answer = broker.ask(ApiKey.DELETE_TOPICS, 6, topics=topics, timeout_ms=5000)
    assert answer.responses[0].error_code == 0
    broker.until(lambda running: running.topics.get(name) not in (None, before))


def commit(broker: RunningBroker, topic: str, offset: int) -> int:
    """Commit an offset; retry while the coordinator loads its topic, as clients do."""
    partition = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
    code: int = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    while code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        answer = broker.ask(
            ApiKey.OFFSET_COMMIT,
            8,
            group_id="plain",
            generation_id_or_member_epoch=-1,
            topics=[{"name": topic, "partitions": [partition]}],
        )
        code = answer.topics[0].partitions[0].error_code
    return code


def committed(broker: RunningBroker, topic: str) -> int:
    topics = [{"name": topic, "partition_indexes": [0]}]
    answer = broker.ask(ApiKey.OFFSET_FETCH, 7, group_id="plain", topics=topics, require_stable=True)
    offset: int = answer.topics[0].partitions[0].committed_offset
    return offset


def test_groups_begin_anew_without_their_offsets(broker: RunningBroker, topic: str) -> None:
    assert commit(broker, topic, 5) == 0
    assert committed(broker, topic) == 5
    delete(broker, OFFSETS)
    assert committed(broker, topic) == -1
    assert commit(broker, topic, 7) == 0
    assert committed(broker, topic) == 7
    details = broker.look(lambda running: running.configs.get(2, OFFSETS))
    assert details == {"cleanup.policy": "compact"}


def test_members_of_share_groups_join_again(broker: RunningBroker, topic: str, member: Member) -> None:
    produce(broker, topic, 3)
    assert acquired(member.fetch(0)) == {0: [(0, 2, 1)]}
    delete(broker, OFFSETS)
    fields: dict[str, Any] = {"group_id": member.group, "member_id": "m", "rack_id": None}
    answer = broker.ask(
        ApiKey.SHARE_GROUP_HEARTBEAT, 1, **fields, member_epoch=2, subscribed_topic_names=None
    )
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    again = Member(broker, member.group, topic)
    assert acquired(again.fetch(0)) == {}, "the state of its share partitions is still there"
    again.client.close()


def test_transactions_begin_anew(broker: RunningBroker) -> None:
    def begin() -> Any:
        return broker.ask(
            ApiKey.INIT_PRODUCER_ID,
            4,
            transactional_id="t",
            transaction_timeout_ms=60_000,
            producer_id=-1,
            producer_epoch=-1,
        )

    first = begin()
    assert first.error_code == 0
    delete(broker, TRANSACTIONS)
    second = begin()
    assert second.error_code == 0
    assert second.producer_id != first.producer_id
    end = broker.ask(
        ApiKey.END_TXN,
        4,
        transactional_id="t",
        producer_id=first.producer_id,
        producer_epoch=first.producer_epoch,
        committed=True,
    )
    assert end.error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_share_partitions_begin_anew_where_their_state_is_gone(
    broker: RunningBroker, topic: str, member: Member
) -> None:
    produce(broker, topic, 3)
    assert acquired(member.fetch(0)) == {0: [(0, 2, 1)]}
    member.acknowledge({0: [(0, 2, b"\1")]})
    delete(broker, STATE)
    for _ in range(100):
        Member(broker, member.group, topic).client.close()
        found = acquired(member.fetch(0, epoch=0))
        if found:
            break
    assert found == {0: [(0, 2, 1)]}, "as the group's reset policy says"


@pytest.mark.parametrize("name", [OFFSETS, TRANSACTIONS, STATE])
def test_what_is_under_way_is_answered(broker: RunningBroker, topic: str, name: str) -> None:
    client = broker.connect()
    partition = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
    for _ in range(20):
        client.send(
            ApiKey.OFFSET_COMMIT,
            8,
            group_id="plain",
            generation_id_or_member_epoch=-1,
            topics=[{"name": topic, "partitions": [partition]}],
        )
    delete(broker, name)
    codes = {client.receive(ApiKey.OFFSET_COMMIT, 8).topics[0].partitions[0].error_code for _ in range(20)}
    # a request during the reload is told to retry
    assert codes <= {
        0,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
    client.close()
    assert commit(broker, topic, 9) == 0
