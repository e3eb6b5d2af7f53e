"""Requests about transactions, the cluster, settings and share state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from tests.differential.access.case import GROUPS, TOPICS, Case, make

from sharecore.protocol import ApiKey as A

_CLIENT = UUID(int=0xC11E << 64 | 1)


def transactions() -> Iterator[Case]:
    """In the order in which each principal sends them."""
    for name in ("open-x", "shut-x"):
        yield make(
            f"producer id of {name}",
            A.INIT_PRODUCER_ID,
            5,
            transactional_id=f"{name}-~",
            transaction_timeout_ms=60000,
            producer_id=-1,
            producer_epoch=-1,
        )
        begun: dict[str, Any] = {"producer_id": 12345, "producer_epoch": 0}
        yield make(
            f"partitions to {name}",
            A.ADD_PARTITIONS_TO_TXN,
            3,
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=12345,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=[
                {"name": each, "partitions": [0]} for each in (*TOPICS, "open-missing", "shut-missing")
            ],
        )
        yield make(
            f"partitions to {name}, some there",
            A.ADD_PARTITIONS_TO_TXN,
            3,
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=12345,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=[
                {"name": each, "partitions": [0, 9, 0]}
                for each in ("open-t", "shut-missing", "__consumer_offsets", "open-t")
            ],
        )
        for group in GROUPS:
            yield make(
                f"offsets of {group} to {name}",
                A.ADD_OFFSETS_TO_TXN,
                4,
                transactional_id=name,
                group_id=group,
                **begun,
            )
            yield make(
                f"commit of {group} in {name}",
                A.TXN_OFFSET_COMMIT,
                3,
                transactional_id=name,
                group_id=group,
                generation_id=-1,
                member_id="",
                group_instance_id=None,
                topics=[
                    {
                        "name": each,
                        "partitions": [
                            {
                                "partition_index": 0,
                                "committed_offset": 1,
                                "committed_leader_epoch": -1,
                                "committed_metadata": None,
                            }
                        ],
                    }
                    for each in (*TOPICS, "open-missing", "shut-missing")
                ],
                **begun,
            )
        yield make(f"end of {name}", A.END_TXN, 4, transactional_id=name, committed=True, **begun)
    yield make(
        "producer id",
        A.INIT_PRODUCER_ID,
        5,
        transactional_id=None,
        transaction_timeout_ms=60000,
        producer_id=-1,
        producer_epoch=-1,
    )
    for times in (1, 2):
        yield make(
            f"describe transactions {times} times",
            A.DESCRIBE_TRANSACTIONS,
            0,
            transactional_ids=["open-x", "shut-x", "open-missing", "shut-missing"] * times,
        )
    yield make(
        "list transactions",
        A.LIST_TRANSACTIONS,
        1,
        state_filters=[],
        producer_id_filters=[],
        duration_filter=-1,
    )


def cluster() -> Iterator[Case]:
    """In the order in which each principal sends them."""
    yield make(
        "describe cluster", A.DESCRIBE_CLUSTER, 1, include_cluster_authorized_operations=True, endpoint_type=1
    )
    yield make(
        "describe log directories", A.DESCRIBE_LOG_DIRS, 4, topics=[{"topic": "open-t", "partitions": [0]}]
    )
    yield make(
        "describe log directories of old",
        A.DESCRIBE_LOG_DIRS,
        2,
        topics=[{"topic": "open-t", "partitions": [0]}],
    )
    yield make("list reassignments", A.LIST_PARTITION_REASSIGNMENTS, 0, timeout_ms=5000, topics=None)
    yield make("describe users", A.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, users=[{"name": "nobody-at-all"}])
    yield make(
        "alter users",
        A.ALTER_USER_SCRAM_CREDENTIALS,
        0,
        deletions=[{"name": "nobody-at-all", "mechanism": 1}],
        upsertions=[],
    )
    some: dict[str, Any] = {
        "resource_type_filter": 2,
        "resource_name_filter": "acls-of-~",
        "pattern_type_filter": 3,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
    yield make(
        "create entries",
        A.CREATE_ACLS,
        3,
        creations=[
            {
                "resource_type": 2,
                "resource_name": "acls-of-~",
                "resource_pattern_type": 3,
                "principal": "User:x",
                "host": "*",
                "operation": 3,
                "permission_type": 3,
            }
        ],
    )
    yield make("describe entries", A.DESCRIBE_ACLS, 3, **some)
    yield make("delete entries", A.DELETE_ACLS, 3, filters=[some])
    yield make("describe quotas", A.DESCRIBE_CLIENT_QUOTAS, 1, components=[], strict=False)
    yield make(
        "alter quotas",
        A.ALTER_CLIENT_QUOTAS,
        1,
        entries=[
            {
                "entity": [{"entity_type": "user", "entity_name": "x"}],
                "ops": [{"key": "producer_byte_rate", "value": 1000.0, "remove": False}],
            }
        ],
        validate_only=True,
    )
    yield make(
        "update features", A.UPDATE_FEATURES, 1, timeout_ms=5000, feature_updates=[], validate_only=True
    )
    yield make(
        "reassign partitions",
        A.ALTER_PARTITION_REASSIGNMENTS,
        1,
        timeout_ms=5000,
        allow_replication_factor_change=True,
        topics=[{"name": "open-t", "partitions": [{"partition_index": 0, "replicas": None}]}],
    )
    yield make(
        "describe the quorum",
        A.DESCRIBE_QUORUM,
        2,
        topics=[{"topic_name": "open-t", "partitions": [{"partition_index": 0}]}],
    )
    yield make(
        "elect leaders",
        A.ELECT_LEADERS,
        2,
        election_type=0,
        topic_partitions=[{"topic": "open-t", "partitions": [0]}],
        timeout_ms=5000,
    )


def configs() -> Iterator[Case]:
    """In the order in which each principal sends them."""
    resources = [(2, name) for name in (*TOPICS, "open-missing", "shut-missing")] + [
        (4, "0"),
        (32, "open-g"),
        (32, "shut-g"),
    ]
    asked = [
        {"resource_type": kind, "resource_name": name, "configuration_keys": None} for kind, name in resources
    ]
    yield make(
        "describe settings",
        A.DESCRIBE_CONFIGS,
        4,
        resources=asked,
        include_synonyms=False,
        include_documentation=False,
    )
    keys = {
        2: ("retention.ms", "1000000"),
        4: ("log.cleaner.threads", "1"),
        32: ("share.session.timeout.ms", "3600000"),
    }
    changed = [
        {
            "resource_type": kind,
            "resource_name": name,
            "configs": [{"name": keys[kind][0], "config_operation": 0, "value": keys[kind][1]}],
        }
        for kind, name in resources
        if kind != 4
    ]
    yield make("alter settings", A.INCREMENTAL_ALTER_CONFIGS, 1, resources=changed, validate_only=True)
    whole = [
        {
            "resource_type": kind,
            "resource_name": name,
            "configs": [{"name": keys[kind][0], "value": keys[kind][1]}],
        }
        for kind, name in resources
        if kind == 2
    ]
    yield make("replace settings", A.ALTER_CONFIGS, 2, resources=whole, validate_only=True)
    yield make("list settings", A.LIST_CONFIG_RESOURCES, 1, resource_types=[2])
    yield make("list settings of old", A.LIST_CONFIG_RESOURCES, 0)


def telemetry() -> Iterator[Case]:
    """Anybody may push metrics; who is asked for which is a matter of the cluster's settings."""
    for name, changes in (
        ("ask clients", {"metrics": "org.apache.kafka.", "interval.ms": "60000"}),
        ("ask clients badly", {"interval.ms": "1"}),
    ):
        configs = [{"name": key, "config_operation": 0, "value": value} for key, value in changes.items()]
        asked = {"resource_type": 16, "resource_name": "of-~", "configs": configs}
        yield make(name, A.INCREMENTAL_ALTER_CONFIGS, 1, resources=[asked], validate_only=True)
    replaced = {
        "resource_type": 16,
        "resource_name": "of-~",
        "configs": [{"name": "interval.ms", "value": "60000"}],
    }
    yield make("ask clients the old way", A.ALTER_CONFIGS, 2, resources=[replaced], validate_only=True)
    described = {"resource_type": 16, "resource_name": "of-~", "configuration_keys": None}
    yield make("what clients are asked", A.DESCRIBE_CONFIGS, 4, resources=[described])
    yield make("who is asked", A.LIST_CONFIG_RESOURCES, 1, resource_types=[16])
    yield make("what to push", A.GET_TELEMETRY_SUBSCRIPTIONS, 0, client_instance_id=None)
    push: dict[str, Any] = {"terminating": True, "compression_type": 0, "metrics": b""}
    yield make("push", A.PUSH_TELEMETRY, 0, client_instance_id=_CLIENT, subscription_id=1, **push)
    yield make("push by nobody", A.PUSH_TELEMETRY, 0, client_instance_id=None, subscription_id=1, **push)


def state() -> Iterator[Case]:
    """In the order in which each principal sends them."""

    def topics(**fields: Any) -> list[dict[str, Any]]:
        return [{"topic_id": "#open-t", "partitions": [{"partition": 0, **fields}]}]

    group = "open-state-~"
    yield make(
        "initialize state",
        A.INITIALIZE_SHARE_GROUP_STATE,
        0,
        group_id=group,
        topics=topics(state_epoch=1, start_offset=0),
    )
    yield make("read state", A.READ_SHARE_GROUP_STATE, 0, group_id=group, topics=topics(leader_epoch=0))
    yield make(
        "write state",
        A.WRITE_SHARE_GROUP_STATE,
        1,
        group_id=group,
        topics=topics(
            state_epoch=1, leader_epoch=0, start_offset=0, delivery_complete_count=0, state_batches=[]
        ),
    )
    yield make(
        "read the summary of state",
        A.READ_SHARE_GROUP_STATE_SUMMARY,
        1,
        group_id=group,
        topics=topics(leader_epoch=0),
    )
    yield make("delete state", A.DELETE_SHARE_GROUP_STATE, 0, group_id=group, topics=topics())
