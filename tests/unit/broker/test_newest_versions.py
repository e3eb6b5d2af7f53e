"""Request versions that are new in Apache Kafka 4.4.0."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from tests.harness.running import RunningBroker

from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey

NOBODY = -1


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    running = RunningBroker(tmp_path_factory.mktemp("data")).start()
    yield running
    running.stop()


def told(broker: RunningBroker, cluster_id: str | None, node_id: int) -> int:
    """Return the error code for a client that meant to reach a broker."""
    software = {"client_software_name": "a", "client_software_version": "1"}
    answer = broker.ask(ApiKey.API_VERSIONS, 5, **software, cluster_id=cluster_id, node_id=node_id)
    code: int = answer.error_code
    assert bool(answer.api_keys) is (code == ErrorCode.NONE)
    return code


def test_a_client_that_means_another_broker_is_sent_back_to_its_bootstrap_servers(
    broker: RunningBroker,
) -> None:
    asked = {"include_cluster_authorized_operations": False, "endpoint_type": 1}
    here = broker.ask(ApiKey.DESCRIBE_CLUSTER, 1, **asked)
    cluster_id, node_id = here.cluster_id, here.brokers[0].broker_id
    assert told(broker, cluster_id, node_id) == ErrorCode.NONE
    assert told(broker, None, NOBODY) == ErrorCode.NONE
    for other in (("other", node_id), ("", node_id), (cluster_id, node_id + 1), (cluster_id, -2)):
        assert told(broker, *other) == ErrorCode.REBOOTSTRAP_REQUIRED, other
    for half in ((cluster_id, NOBODY), (None, node_id), ("other", NOBODY), (None, -2)):
        assert told(broker, *half) == ErrorCode.INVALID_REQUEST, half


def test_offsets_of_a_transaction_are_committed_by_topic_id(broker: RunningBroker) -> None:
    asked = {"name": "a", "num_partitions": 1, "replication_factor": 1}
    created = broker.ask(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=5000)
    topic_id: UUID = created.topics[0].topic_id
    producer = broker.ask(
        ApiKey.INIT_PRODUCER_ID,
        5,
        transactional_id="t",
        transaction_timeout_ms=60_000,
        producer_id=-1,
        producer_epoch=-1,
    )
    own = {
        "transactional_id": "t",
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
    }

    def commit(key: UUID, group: str = "g", generation: int = -1) -> tuple[UUID, int]:
        part = {"partition_index": 0, "committed_offset": 7, "committed_metadata": ""}
        answer: Any = broker.ask(
            ApiKey.TXN_OFFSET_COMMIT,
            6,
            **own,
            group_id=group,
            generation_id=generation,
            member_id="m" if generation >= 0 else "",
            topics=[{"topic_id": key, "partitions": [part]}],
        )
        (topic,) = answer.topics
        return topic.topic_id, topic.partitions[0].error_code

    assert commit(topic_id) == (topic_id, ErrorCode.NONE)
    assert commit(UUID(int=77)) == (UUID(int=77), ErrorCode.UNKNOWN_TOPIC_ID)
    assert commit(topic_id, "none", 4) == (topic_id, ErrorCode.GROUP_ID_NOT_FOUND)
    assert commit(topic_id, "g", 4) == (topic_id, ErrorCode.UNKNOWN_MEMBER_ID)
    ended = broker.ask(ApiKey.END_TXN, 5, **own, committed=True)
    assert ended.error_code == ErrorCode.NONE
    wanted = [{"group_id": "g", "member_id": None, "member_epoch": -1, "topics": None}]
    (group,) = broker.ask(ApiKey.OFFSET_FETCH, 10, groups=wanted, require_stable=True).groups
    assert [(topic.topic_id, topic.partitions[0].committed_offset) for topic in group.topics] == [
        (topic_id, 7)
    ]


def test_a_group_that_is_not_deleted_has_a_place_for_the_reason(broker: RunningBroker) -> None:
    (result,) = broker.ask(ApiKey.DELETE_GROUPS, 3, groups_names=["none"]).results
    assert result == ("none", ErrorCode.GROUP_ID_NOT_FOUND, None)
