"""Requests about topics and their records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.differential.access.case import CREATES, TOPICS, Case, make
from tests.harness.batches import batch

from sharecore.protocol import ApiKey as A


def records() -> Iterator[Case]:
    """In the order in which each principal sends them."""
    records = batch([b"x"])
    data = [
        {"name": name, "partition_data": [{"index": 0, "records": records}]}
        for name in (*TOPICS, "open-missing", "shut-missing")
    ]
    by_id = [
        {"topic_id": f"#{name}", "partition_data": each["partition_data"]}
        for name, each in zip((*TOPICS, "missing"), data, strict=False)
    ]
    produce: dict[str, Any] = {"transactional_id": None, "acks": 1, "timeout_ms": 5000}
    yield make("produce", A.PRODUCE, 9, topic_data=data, **produce)
    yield make("produce by id", A.PRODUCE, 13, topic_data=by_id, **produce)
    yield make(
        "produce of a transaction",
        A.PRODUCE,
        9,
        topic_data=data[:1],
        **{**produce, "transactional_id": "shut-x"},
    )
    asked = [
        {
            "partition": 0,
            "fetch_offset": 0,
            "partition_max_bytes": 1000,
            "current_leader_epoch": -1,
            "last_fetched_epoch": -1,
            "log_start_offset": -1,
        }
    ]
    fetch: dict[str, Any] = {
        "max_wait_ms": 0,
        "min_bytes": 0,
        "max_bytes": 1000,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "forgotten_topics_data": [],
        "rack_id": "",
    }
    names = (*TOPICS, "open-missing", "shut-missing")
    yield make("fetch", A.FETCH, 12, topics=[{"topic": name, "partitions": asked} for name in names], **fetch)
    yield make(
        "fetch by id",
        A.FETCH,
        16,
        topics=[{"topic_id": f"#{name}", "partitions": asked} for name in (*TOPICS, "missing")],
        **fetch,
    )
    wanted = [{"partition_index": 0, "timestamp": -2, "current_leader_epoch": -1}]
    yield make(
        "list offsets",
        A.LIST_OFFSETS,
        9,
        replica_id=-1,
        isolation_level=0,
        timeout_ms=5000,
        topics=[{"name": name, "partitions": wanted} for name in names],
    )
    epochs = [{"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}]
    yield make(
        "offset for leader epoch",
        A.OFFSET_FOR_LEADER_EPOCH,
        4,
        replica_id=-1,
        topics=[{"topic": name, "partitions": epochs} for name in names],
    )
    yield make(
        "offset for leader epoch of a replica",
        A.OFFSET_FOR_LEADER_EPOCH,
        4,
        replica_id=5,
        topics=[{"topic": name, "partitions": epochs} for name in TOPICS],
    )
    deleted = [{"partition_index": 0, "offset": 0}]
    yield make(
        "delete records",
        A.DELETE_RECORDS,
        2,
        timeout_ms=5000,
        topics=[{"name": name, "partitions": deleted} for name in names],
    )
    yield make(
        "describe producers",
        A.DESCRIBE_PRODUCERS,
        0,
        topics=[{"name": name, "partition_indexes": [0]} for name in names],
    )


def topics() -> Iterator[Case]:
    """In the order in which each principal sends them."""
    asked: dict[str, Any] = {"allow_auto_topic_creation": False, "include_topic_authorized_operations": True}
    names = (*TOPICS, "open-missing", "shut-missing")
    by_name = [{"topic_id": None, "name": name} for name in names]
    yield make("metadata", A.METADATA, 12, topics=by_name, **asked)
    yield make(
        "metadata of old", A.METADATA, 8, topics=by_name, include_cluster_authorized_operations=True, **asked
    )
    yield make(
        "metadata by id",
        A.METADATA,
        12,
        topics=[{"topic_id": f"#{name}", "name": None} for name in (*TOPICS, "missing")],
        **asked,
    )
    yield make("metadata of all", A.METADATA, 12, topics=None, **asked)
    yield make(
        CREATES,
        A.METADATA,
        12,
        topics=[{"topic_id": None, "name": name} for name in ("open-auto-~-x", "shut-auto-~-x")],
        **{**asked, "allow_auto_topic_creation": True},
    )
    yield make(
        "describe partitions",
        A.DESCRIBE_TOPIC_PARTITIONS,
        0,
        topics=[{"name": name} for name in names],
        response_partition_limit=100,
        cursor=None,
    )
    yield make(
        "describe partitions of all",
        A.DESCRIBE_TOPIC_PARTITIONS,
        0,
        topics=[],
        response_partition_limit=2000,
        cursor=None,
    )
    new = [
        {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
        for name in ("open-new-~", "shut-new-~", *TOPICS)
    ]
    yield make("create topics", A.CREATE_TOPICS, 7, topics=new, timeout_ms=5000, validate_only=False)
    yield make(
        "create topics validated",
        A.CREATE_TOPICS,
        7,
        topics=[{**each, "name": f"{each['name']}-v"} for each in new[:2]],
        timeout_ms=5000,
        validate_only=True,
    )
    more = [{"name": name, "count": 1, "assignments": None} for name in names]
    yield make("create partitions", A.CREATE_PARTITIONS, 3, topics=more, timeout_ms=5000, validate_only=True)
    gone = ("open-gone-~", "shut-gone-~")
    yield make(
        "delete topics",
        A.DELETE_TOPICS,
        6,
        gone,
        topics=[{"name": name, "topic_id": None} for name in (*gone, "open-missing", "shut-missing")],
        timeout_ms=5000,
    )
    gone = ("open-lost-~", "shut-lost-~")
    yield make(
        "delete topics by id",
        A.DELETE_TOPICS,
        6,
        gone,
        topics=[{"name": None, "topic_id": f"#{name}"} for name in (*gone, "missing")],
        timeout_ms=5000,
    )
    yield make(
        "delete topics of old",
        A.DELETE_TOPICS,
        5,
        topic_names=["open-missing", "shut-missing"],
        timeout_ms=5000,
    )
