"""Requests that mix what is allowed with what is not, in old and new versions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.differential.access.case import CONSUMERS, GROUPS, SENSELESS, SHARES, TOPICS, Case, make
from tests.harness.batches import batch

from sharecore.protocol import ApiKey as A

_NAMES = (*TOPICS, "open-missing", "shut-missing")


def edges() -> Iterator[Case]:
    """In the order in which each principal sends them."""
    yield from _records()
    yield from _topics()
    yield from _groups()
    yield from _configs()
    yield from _cluster()


def _records() -> Iterator[Case]:
    data = [
        {"name": name, "partition_data": [{"index": index, "records": batch([b"x"])} for index in (0, 9)]}
        for name in (*_NAMES, "__consumer_offsets")
    ]
    produce: dict[str, Any] = {"transactional_id": None, "timeout_ms": 5000, "topic_data": data}
    yield make("produce of old", A.PRODUCE, 3, acks=-1, **produce)
    yield make("produce with acks of 2", A.PRODUCE, 9, acks=2, **produce)
    yield make(
        "produce with an id of a transaction",
        A.PRODUCE,
        9,
        acks=1,
        **{**produce, "transactional_id": "shut-x"},
    )
    parts = [{"partition_index": index, "timestamp": -1} for index in (0, 9)]
    yield make(
        "list offsets of old",
        A.LIST_OFFSETS,
        1,
        replica_id=-1,
        topics=[{"name": name, "partitions": parts} for name in _NAMES],
    )
    for version in (2, 9):
        twice = [{"name": name, "partitions": parts * 2} for name in (*_NAMES, *_NAMES)]
        yield make(f"list offsets twice v{version}", A.LIST_OFFSETS, version, replica_id=-1, topics=twice)
    epochs = [{"partition": index, "current_leader_epoch": -1, "leader_epoch": 0} for index in (0, 9, 0)]
    yield make(
        "offset for leader epoch twice",
        A.OFFSET_FOR_LEADER_EPOCH,
        4,
        replica_id=-1,
        topics=[{"topic": name, "partitions": epochs} for name in (*_NAMES, *_NAMES)],
    )
    yield make(
        "describe producers twice",
        A.DESCRIBE_PRODUCERS,
        0,
        topics=[{"name": name, "partition_indexes": [0, 9, 0]} for name in (*_NAMES, *_NAMES)],
    )
    yield make("produce twice", A.PRODUCE, 9, acks=-1, **{**produce, "topic_data": data + data})
    by_id = [
        {"topic_id": f"#{name}", "partition_data": data[0]["partition_data"]}
        for name in (*TOPICS, "missing", TOPICS[0])
    ]
    yield make("produce twice by id", A.PRODUCE, 13, acks=-1, **{**produce, "topic_data": by_id})
    gone = [{"partition_index": index, "offset": 0} for index in (0, 9)]
    yield make(
        "delete records twice",
        A.DELETE_RECORDS,
        2,
        timeout_ms=5000,
        topics=[{"name": name, "partitions": gone * 2} for name in (*_NAMES, *_NAMES)],
    )
    yield make(
        "delete records of old",
        A.DELETE_RECORDS,
        0,
        timeout_ms=5000,
        topics=[{"name": name, "partitions": gone} for name in (*_NAMES, "__consumer_offsets")],
    )


def _topics() -> Iterator[Case]:
    for version in (0, 1, 4, 9, 11):
        asked = {} if version < 4 else {"allow_auto_topic_creation": False}
        by_name = [{"topic_id": None, "name": name} for name in (*TOPICS, "shut-missing")]
        yield make(f"metadata v{version}", A.METADATA, version, topics=by_name, **asked)
        if version:
            yield make(f"metadata of none v{version}", A.METADATA, version, topics=[], **asked)
    yield make(
        "metadata with the cluster's operations",
        A.METADATA,
        9,
        topics=[],
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=False,
    )
    yield make(
        "describe partitions from the middle",
        A.DESCRIBE_TOPIC_PARTITIONS,
        0,
        topics=[{"name": name} for name in _NAMES],
        response_partition_limit=1,
        cursor={"topic_name": "open-missing", "partition_index": 0},
    )
    bad = [
        {
            "name": name,
            "num_partitions": count,
            "replication_factor": 1,
            "assignments": [],
            "configs": configs,
        }
        for name, count, configs in (
            ("open-bad-~", 0, []),
            ("shut-bad-~", 0, []),
            ("open bad", 1, []),
            ("shut bad", 1, []),
            ("open-conf-~", 1, [{"name": "made.up", "value": "1"}]),
            ("__consumer_offsets", 1, []),
        )
    ]
    yield make("create bad topics", A.CREATE_TOPICS, 7, topics=bad, timeout_ms=5000, validate_only=True)
    yield make(
        "create a topic twice",
        A.CREATE_TOPICS,
        5,
        topics=[bad[0], bad[0]],
        timeout_ms=5000,
        validate_only=True,
    )
    more = [{"name": name, "count": count, "assignments": None} for name in _NAMES for count in (2,)]
    yield make("more partitions", A.CREATE_PARTITIONS, 2, topics=more, timeout_ms=5000, validate_only=True)
    yield make(
        "more partitions twice",
        A.CREATE_PARTITIONS,
        3,
        topics=[more[0], more[0], more[1], more[1]],
        timeout_ms=5000,
        validate_only=True,
    )
    named_both = [{"name": "open-t", "topic_id": "#open-t"}, {"name": None, "topic_id": None}]
    yield make("delete topics oddly", A.DELETE_TOPICS, 6, topics=named_both, timeout_ms=5000)
    twice = [{"name": name, "topic_id": None} for name in ("open-missing", "open-missing", "shut-missing")]
    yield make("delete a topic twice", A.DELETE_TOPICS, 6, topics=twice, timeout_ms=5000)
    gone = ("open-late-~", "shut-late-~")
    yield make(
        "delete topics by name and id",
        A.DELETE_TOPICS,
        6,
        gone,
        topics=[
            *({"name": name, "topic_id": None} for name in (gone[0], "shut-missing")),
            *({"name": None, "topic_id": f"#{name}"} for name in (*gone, "missing", "missing")),
        ],
        timeout_ms=5000,
    )
    for wait_ms in (0, -1):
        yield make(
            f"delete topics within {wait_ms} ms",
            A.DELETE_TOPICS,
            6,
            topics=[
                *({"name": name, "topic_id": None} for name in ("open-missing", "shut-missing")),
                {"name": None, "topic_id": "#missing"},
                {"name": "open-t", "topic_id": "#open-t"},
            ],
            timeout_ms=wait_ms,
        )


def _groups() -> Iterator[Case]:
    asked = [{"name": name, "partition_indexes": [0, 9]} for name in _NAMES]
    for group in (*GROUPS, "open-missing", "shut-missing"):
        for version in (1, 6):
            yield make(
                f"offsets of {group} v{version}", A.OFFSET_FETCH, version, group_id=group, topics=asked
            )
        yield make(
            f"all offsets of {group}", A.OFFSET_FETCH, 7, group_id=group, topics=None, require_stable=True
        )
    wanted = [{"group_id": group, "topics": topics} for group in GROUPS for topics in (None, asked)]
    yield make("offsets of groups", A.OFFSET_FETCH, 8, groups=wanted, require_stable=False)
    by_id = [{"topic_id": f"#{name}", "partition_indexes": [0, 9]} for name in (*TOPICS, "missing")]
    some: list[dict[str, Any]] = [
        {"group_id": group, "member_id": None, "member_epoch": -1, "topics": topics}
        for group in (*GROUPS, *CONSUMERS, "open-missing", GROUPS[0])
        for topics in (None, by_id)
    ]
    yield make("offsets of groups by id", A.OFFSET_FETCH, 10, groups=some, require_stable=True)
    offset = {"partition_index": 0, "committed_offset": 1, "committed_metadata": None}
    for group in GROUPS:
        for version in (0, 5):
            yield make(
                f"commit of {group} in a transaction v{version}",
                A.TXN_OFFSET_COMMIT,
                version,
                transactional_id="open-x",
                group_id=group,
                producer_id=12345,
                producer_epoch=0,
                topics=[
                    {"name": name, "partitions": [{**offset, "committed_leader_epoch": -1}]}
                    for name in _NAMES
                ],
            )
        yield make(
            f"commit of old to {group}",
            A.OFFSET_COMMIT,
            2,
            group_id=group,
            topics=[{"name": name, "partitions": [offset]} for name in _NAMES],
        )
        stored = {**offset, "committed_leader_epoch": -1}
        yield make(
            f"commit by id to {group}",
            A.OFFSET_COMMIT,
            10,
            group_id=group,
            generation_id_or_member_epoch=-1,
            member_id="",
            group_instance_id=None,
            topics=[
                {"topic_id": f"#{name}", "partitions": [stored, {**stored, "partition_index": 9}]}
                for name in (*TOPICS, "missing", TOPICS[0])
            ],
        )
        yield make(
            f"delete offsets of all topics of {group}",
            A.OFFSET_DELETE,
            0,
            group_id=f"{group}-x",
            topics=[{"name": name, "partitions": [{"partition_index": 0}]} for name in _NAMES],
        )
    everything = [*GROUPS, *CONSUMERS, *SHARES, "open-missing", "shut-missing"]
    yield make(
        "describe groups of all kinds",
        A.DESCRIBE_GROUPS,
        6,
        groups=everything,
        include_authorized_operations=True,
    )
    yield make(
        "describe groups twice",
        A.DESCRIBE_GROUPS,
        5,
        groups=[*everything, *everything],
        include_authorized_operations=False,
    )
    yield make("delete groups twice", A.DELETE_GROUPS, 2, groups_names=["open-missing", "shut-missing"] * 2)
    for name, api in (("consumer", A.CONSUMER_GROUP_DESCRIBE), ("share", A.SHARE_GROUP_DESCRIBE)):
        for bits in (False, True):
            yield make(
                f"describe {name} groups of all kinds, {bits}",
                api,
                1,
                group_ids=everything,
                include_authorized_operations=bits,
            )
    yield make("list share groups", A.LIST_GROUPS, 5, states_filter=[], types_filter=["share"])
    yield make("list stable groups", A.LIST_GROUPS, 4, states_filter=["Stable"])
    yield make("list groups of old", A.LIST_GROUPS, 0)
    some = [{"topic_name": name, "partitions": [0]} for name in _NAMES]
    for begins in ("open", "shut", ""):
        topics = [each for each in some if each["topic_name"].startswith(begins)]
        yield make(
            f"share offsets of topics named {begins}*",
            A.DESCRIBE_SHARE_GROUP_OFFSETS,
            1,
            groups=[{"group_id": group, "topics": topics} for group in everything],
        )
    for group in SHARES:
        yield make(
            f"delete share offsets of {group} that stays",
            A.DELETE_SHARE_GROUP_OFFSETS,
            0,
            group_id=group,
            topics=[{"topic_name": name} for name in _NAMES],
        )
        yield make(
            f"alter share offsets of {group} that stays",
            A.ALTER_SHARE_GROUP_OFFSETS,
            0,
            group_id=group,
            topics=[
                {"topic_name": name, "partitions": [{"partition_index": 0, "start_offset": 0}]}
                for name in _NAMES
            ],
        )
    yield make(
        "delete groups that stay", A.DELETE_GROUPS, 2, groups_names=[*CONSUMERS, *SHARES, "shut-missing"]
    )


def _configs() -> Iterator[Case]:
    resources = [
        *((2, name) for name in (*TOPICS, "shut-missing", "no topic", "")),
        *((4, name) for name in ("0", "", "7", "x")),
        *((8, name) for name in ("0", "7")),
        *((16, name) for name in ("metrics", "")),
        *((32, name) for name in ("open-g", "shut-g", "")),
        (64, "x"),
    ]
    for kind, name in resources:
        if kind in (2, 4, 16, 32):
            for keys in (None, ["retention.ms", "num.partitions", "made.up"]):
                if (kind, name, keys) == (4, "", None):
                    continue  # Apache Kafka sets min.insync.replicas there when it starts
                asked = {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
                yield make(f"settings of {kind} {name!r}, {keys}", A.DESCRIBE_CONFIGS, 4, resources=[asked])
    for name in ("0", "7", ""):
        # each broker has its own logger names
        asked = {"resource_type": 8, "resource_name": name, "configuration_keys": ["made.up"]}
        yield make(f"settings of loggers {name!r}", A.DESCRIBE_CONFIGS, 4, resources=[asked])
        for key, operation, value in (
            ("root", 0, "WARN"),
            ("root", 0, "LOUD"),
            ("root", 1, None),
            ("root", 2, "WARN"),
            ("made.up", 0, "WARN"),
        ):
            configs = [{"name": key, "config_operation": operation, "value": value}]
            asked = {"resource_type": 8, "resource_name": name, "configs": configs}
            title = f"alter loggers {name!r}, {key} {operation} {value}"
            yield make(title, A.INCREMENTAL_ALTER_CONFIGS, 1, resources=[asked], validate_only=True)
    mixed = [
        {
            "resource_type": kind,
            "resource_name": name,
            "configs": [{"name": key, "config_operation": 0, "value": value}],
        }
        for kind, name, key, value in (
            (2, "open-t", "retention.ms", "1000000"),
            (4, "", "log.cleaner.threads", "1"),
            (4, "0", "max.connections", "1000"),
            (16, "of-clients", "metrics", "org.apache.kafka."),
            (32, "open-g", "share.session.timeout.ms", "3600000"),
            (2, "shut-t", "made.up", "1"),
            (32, "shut-g", "made.up", "1"),
            (16, "of-clients-too", "interval.ms", "1"),
            (4, "7", "max.connections", "1000"),
        )
    ]
    yield make("alter mixed settings", A.INCREMENTAL_ALTER_CONFIGS, 1, resources=mixed, validate_only=True)
    yield make(
        "alter settings twice",
        A.INCREMENTAL_ALTER_CONFIGS,
        1,
        resources=[mixed[0], mixed[0]],
        validate_only=True,
    )
    for keys in (None, ["retention.ms"]):
        repeated = [
            {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
            for kind, name in (
                (2, "open-t"),
                (32, "open-g"),
                (2, "open-t"),
                (2, "shut-t"),
                (2, "shut-t"),
                (4, "0"),
            )
        ]
        yield make(f"settings twice, {keys}", A.DESCRIBE_CONFIGS, 4, resources=repeated)
    for kind in (2, 4, 16, 32):
        yield make(f"list settings of {kind}", A.LIST_CONFIG_RESOURCES, 1, resource_types=[kind])


def _cluster() -> Iterator[Case]:
    for version in (0, 2):
        yield make(
            f"describe cluster v{version}",
            A.DESCRIBE_CLUSTER,
            version,
            include_cluster_authorized_operations=True,
        )
    for version in (0, 1, 2):
        raised = {
            "feature": "group.version",
            "max_version_level": 1,
            "allow_downgrade": False,
            "upgrade_type": 1,
        }
        yield make(
            f"update features v{version}",
            A.UPDATE_FEATURES,
            version,
            timeout_ms=5000,
            feature_updates=[raised],
            validate_only=True,
        )
    for kind in (0, 1, 2, 3):
        keys = ["open-x", "shut-x", "open-s:AAAAAAAAAAAAAAAAAAAAAQ:0", "shut-s:AAAAAAAAAAAAAAAAAAAAAQ:0"]
        yield make(
            f"find all coordinators of {kind}", A.FIND_COORDINATOR, 6, key_type=kind, coordinator_keys=keys
        )
    yield make(
        "an id for another's transaction",
        A.INIT_PRODUCER_ID,
        2,
        transactional_id="open-x-~",
        transaction_timeout_ms=60000,
    )
    yield make(
        "list some transactions",
        A.LIST_TRANSACTIONS,
        0,
        state_filters=["Empty", "Made-up"],
        producer_id_filters=[],
    )
    users = [{"name": name} for name in ("a", "a", "b")]
    yield make("describe users twice", A.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, users=users)
    put = {"mechanism": 1, "iterations": 1, "salt": b"s", "salted_password": b"p" * 32}
    yield make(
        "alter users wrongly",
        A.ALTER_USER_SCRAM_CREDENTIALS,
        0,
        deletions=[{"name": "gone", "mechanism": 1}],
        upsertions=[{"name": "few", **put}],
    )
    yield make(
        "describe what nobody has",
        A.DESCRIBE_CLIENT_QUOTAS,
        1,
        components=[{"entity_type": "user", "match_type": 9, "match": "x"}],
        strict=False,
    )
    parts = [{"entity_type": kind, "entity_name": "x"} for kind in ("user", "made-up")]
    yield make(
        "alter quotas wrongly",
        A.ALTER_CLIENT_QUOTAS,
        1,
        entries=[{"entity": [part], "ops": []} for part in parts],
        validate_only=False,
    )
    yield make("log directories of all", A.DESCRIBE_LOG_DIRS, 4, topics=None)
    acl = {
        "resource_type": 2,
        "resource_name": "x",
        "resource_pattern_type": 1,
        "principal": "User:x",
        "host": "*",
        "operation": 1,
        "permission_type": 1,
    }
    yield make(SENSELESS, A.CREATE_ACLS, 3, creations=[acl])
