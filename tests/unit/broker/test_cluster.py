"""Client requests about the cluster itself."""

from __future__ import annotations

import pytest
from tests.harness.running import RunningBroker

from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey

TOPIC_ID = "zmuiC42EQB6I8KOPUexdvQ"


@pytest.mark.parametrize("version", range(3))
def test_a_cluster_of_one(broker: RunningBroker, version: int) -> None:
    answer = broker.ask(ApiKey.DESCRIBE_CLUSTER, version, include_cluster_authorized_operations=True)
    assert (answer.error_code, answer.controller_id, answer.cluster_authorized_operations) == (0, 1, 8096)
    assert len(answer.cluster_id) == 22
    assert [(node.broker_id, node.host, node.port) for node in answer.brokers] == [
        (1, "127.0.0.1", broker.port)
    ]
    if version >= 1:
        controllers = broker.ask(ApiKey.DESCRIBE_CLUSTER, version, endpoint_type=2)
        assert controllers.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
        nobody = broker.ask(ApiKey.DESCRIBE_CLUSTER, version, endpoint_type=9)
        assert nobody.error_code == ErrorCode.UNSUPPORTED_ENDPOINT_TYPE


@pytest.mark.parametrize("version", range(7))
def test_every_coordinator_is_here(broker: RunningBroker, version: int) -> None:
    for key_type in range(1 if version == 0 else 2):
        if version < 4:
            found = broker.ask(ApiKey.FIND_COORDINATOR, version, key_type=key_type, key="g")
        else:
            (found,) = broker.ask(
                ApiKey.FIND_COORDINATOR, version, key_type=key_type, coordinator_keys=["g"]
            ).coordinators
        assert (found.error_code, found.node_id, found.port) == (0, 1, broker.port)


@pytest.mark.parametrize(
    ("key", "code"),
    [
        (f"g:{TOPIC_ID}:0", 0),
        (f"a:b:{TOPIC_ID}:7", 0),
        ("g", ErrorCode.INVALID_REQUEST),
        (f":{TOPIC_ID}:0", ErrorCode.INVALID_REQUEST),
        ("g:nothing:0", ErrorCode.INVALID_REQUEST),
        (f"g:{TOPIC_ID}:x", ErrorCode.INVALID_REQUEST),
        (f"g:{TOPIC_ID}:{'1' * 10_000}", ErrorCode.INVALID_REQUEST),
    ],
)
def test_coordinators_of_share_partitions(broker: RunningBroker, key: str, code: int) -> None:
    (found,) = broker.ask(ApiKey.FIND_COORDINATOR, 6, key_type=2, coordinator_keys=[key]).coordinators
    assert (found.key, found.error_code) == (key, code)
    (old,) = broker.ask(ApiKey.FIND_COORDINATOR, 5, key_type=2, coordinator_keys=[key]).coordinators
    assert old.error_code == ErrorCode.INVALID_REQUEST


def test_nothing_moves(broker: RunningBroker) -> None:
    answer = broker.ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, topics=None, timeout_ms=1000)
    assert (answer.error_code, answer.topics) == (0, [])
