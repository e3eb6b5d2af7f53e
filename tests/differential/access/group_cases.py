"""Requests about groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.differential.access.case import CONSUMERS, GROUPS, SHARES, TOPICS, Case, make

from sharecore.protocol import ApiKey as A


def groups() -> Iterator[Case]:
    """In the order in which each principal sends them."""
    for group in GROUPS:
        for key in (group, f"{group}-missing"):
            yield make(
                f"find coordinator of group {key}", A.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=[key]
            )
    yield make("find coordinators", A.FIND_COORDINATOR, 6, key_type=0, coordinator_keys=list(GROUPS))
    yield make("find coordinator of old", A.FIND_COORDINATOR, 3, key_type=0, key="open-g")
    yield make(
        "find transaction coordinators",
        A.FIND_COORDINATOR,
        4,
        key_type=1,
        coordinator_keys=["open-x", "shut-x"],
    )
    yield make(
        "find share coordinators",
        A.FIND_COORDINATOR,
        6,
        key_type=2,
        coordinator_keys=["open-s:AAAAAAAAAAAAAAAAAAAAAQ:0"],
    )
    offsets = [
        {
            "partition_index": 0,
            "committed_offset": 1,
            "committed_leader_epoch": -1,
            "committed_metadata": None,
        }
    ]
    names = (*TOPICS, "open-missing", "shut-missing")
    for group in GROUPS:
        commit: dict[str, Any] = {
            "group_id": group,
            "generation_id_or_member_epoch": -1,
            "member_id": "",
            "group_instance_id": None,
        }
        yield make(
            f"commit to {group}",
            A.OFFSET_COMMIT,
            9,
            topics=[{"name": name, "partitions": offsets} for name in names],
            **commit,
        )
        yield make(
            f"commit by id to {group}",
            A.OFFSET_COMMIT,
            10,
            topics=[{"topic_id": f"#{name}", "partitions": offsets} for name in (*TOPICS, "missing")],
            **commit,
        )
        yield make(
            f"join {group}",
            A.JOIN_GROUP,
            9,
            group_id=f"{group}-~",
            session_timeout_ms=10000,
            rebalance_timeout_ms=10000,
            member_id="",
            group_instance_id=None,
            protocol_type="consumer",
            protocols=[{"name": "range", "metadata": b""}],
            reason=None,
        )
        yield make(
            f"sync {group}",
            A.SYNC_GROUP,
            5,
            group_id=group,
            generation_id=5,
            member_id="m",
            group_instance_id=None,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[],
        )
        yield make(
            f"heartbeat of {group}",
            A.HEARTBEAT,
            4,
            group_id=group,
            generation_id=5,
            member_id="m",
            group_instance_id=None,
        )
        yield make(
            f"leave {group}",
            A.LEAVE_GROUP,
            5,
            group_id=group,
            members=[{"member_id": "m", "group_instance_id": None, "reason": None}],
        )
        yield make(
            f"delete offsets of {group}",
            A.OFFSET_DELETE,
            0,
            group_id=group,
            topics=[
                {"name": name, "partitions": [{"partition_index": 0}]}
                for name in ("open-missing", "shut-missing")
            ],
        )
        yield make(
            f"fetch offsets of {group} of old",
            A.OFFSET_FETCH,
            7,
            group_id=group,
            topics=[{"name": name, "partition_indexes": [0]} for name in names],
            require_stable=False,
        )
        yield make(
            f"heartbeat of consumer group {group}",
            A.CONSUMER_GROUP_HEARTBEAT,
            1,
            group_id=f"{group}-c-~",
            member_id="m",
            member_epoch=0,
            instance_id=None,
            rack_id=None,
            rebalance_timeout_ms=10000,
            subscribed_topic_names=["open-t"],
            subscribed_topic_regex=None,
            server_assignor=None,
            topic_partitions=[],
        )
        yield make(
            f"heartbeat of consumer group {group} with a topic that is shut",
            A.CONSUMER_GROUP_HEARTBEAT,
            1,
            group_id=f"{group}-d-~",
            member_id="m",
            member_epoch=0,
            instance_id=None,
            rack_id=None,
            rebalance_timeout_ms=10000,
            subscribed_topic_names=["open-t", "shut-t"],
            subscribed_topic_regex=None,
            server_assignor=None,
            topic_partitions=[],
        )
    some = [{"name": name, "partition_indexes": [0]} for name in names]
    yield make(
        "fetch offsets",
        A.OFFSET_FETCH,
        9,
        groups=[
            {"group_id": group, "member_id": None, "member_epoch": -1, "topics": some} for group in GROUPS
        ],
        require_stable=False,
    )
    yield make(
        "fetch offsets by id",
        A.OFFSET_FETCH,
        10,
        groups=[
            {
                "group_id": group,
                "member_id": None,
                "member_epoch": -1,
                "topics": [
                    {"topic_id": f"#{name}", "partition_indexes": [0]} for name in (*TOPICS, "missing")
                ],
            }
            for group in GROUPS
        ],
        require_stable=False,
    )
    yield make(
        "fetch all offsets",
        A.OFFSET_FETCH,
        9,
        groups=[
            {"group_id": group, "member_id": None, "member_epoch": -1, "topics": None} for group in GROUPS
        ],
        require_stable=False,
    )
    yield make(
        "describe groups",
        A.DESCRIBE_GROUPS,
        6,
        groups=[*GROUPS, "open-missing", "shut-missing"],
        include_authorized_operations=True,
    )
    yield make(
        "describe groups of old",
        A.DESCRIBE_GROUPS,
        5,
        groups=list(GROUPS),
        include_authorized_operations=True,
    )
    yield make(
        "describe consumer groups",
        A.CONSUMER_GROUP_DESCRIBE,
        1,
        group_ids=[*CONSUMERS, "open-missing", "shut-missing"],
        include_authorized_operations=True,
    )
    yield make("list groups", A.LIST_GROUPS, 5, states_filter=[], types_filter=[])
    yield make("delete groups", A.DELETE_GROUPS, 2, groups_names=["open-missing", "shut-missing"])


def share_groups() -> Iterator[Case]:
    """In the order in which each principal sends them."""
    for group in SHARES:
        beat: dict[str, Any] = {"member_id": "m", "member_epoch": 0, "rack_id": None}
        yield make(
            f"share heartbeat of {group}",
            A.SHARE_GROUP_HEARTBEAT,
            1,
            group_id=f"{group}-~",
            subscribed_topic_names=["open-t"],
            **beat,
        )
        yield make(
            f"share heartbeat of {group} with a topic that is shut",
            A.SHARE_GROUP_HEARTBEAT,
            1,
            group_id=f"{group}-d-~",
            subscribed_topic_names=["open-t", "shut-t"],
            **beat,
        )
        topics = [
            {"topic_id": f"#{name}", "partitions": [{"partition_index": 0, "acknowledgement_batches": []}]}
            for name in TOPICS
        ]
        yield make(
            f"share fetch of {group}",
            A.SHARE_FETCH,
            2,
            group_id=group,
            member_id="AAAAAAAAAAAAAAAAAAAAAQ",
            share_session_epoch=0,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1000,
            max_records=0,
            batch_size=1,
            share_acquire_mode=0,
            is_renew_ack=False,
            topics=topics,
            forgotten_topics_data=[],
        )
        done = [
            {
                "topic_id": f"#{name}",
                "partitions": [
                    {
                        "partition_index": 0,
                        "acknowledgement_batches": [
                            {"first_offset": 9000, "last_offset": 9000, "acknowledge_types": [1]}
                        ],
                    }
                ],
            }
            for name in TOPICS
        ]
        yield make(
            f"share acknowledge of {group}",
            A.SHARE_ACKNOWLEDGE,
            2,
            group_id=group,
            member_id="AAAAAAAAAAAAAAAAAAAAAQ",
            share_session_epoch=1,
            is_renew_ack=False,
            topics=done,
        )
        yield make(
            f"end of the share session of {group}",
            A.SHARE_FETCH,
            2,
            group_id=group,
            member_id="AAAAAAAAAAAAAAAAAAAAAQ",
            share_session_epoch=-1,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1000,
            max_records=0,
            batch_size=1,
            share_acquire_mode=0,
            is_renew_ack=False,
            topics=[],
            forgotten_topics_data=[],
        )
        names = (*TOPICS, "open-missing", "shut-missing")
        yield make(
            f"alter share offsets of {group}",
            A.ALTER_SHARE_GROUP_OFFSETS,
            0,
            group_id=f"{group}-e",
            topics=[
                {"topic_name": name, "partitions": [{"partition_index": 0, "start_offset": 0}]}
                for name in names
            ],
        )
        yield make(
            f"delete share offsets of {group}",
            A.DELETE_SHARE_GROUP_OFFSETS,
            0,
            group_id=f"{group}-e",
            topics=[{"topic_name": name} for name in ("open-missing", "shut-missing", "shut-t")],
        )
    asked = [{"topic_name": name, "partitions": [0]} for name in (*TOPICS, "open-missing", "shut-missing")]
    yield make(
        "describe share offsets",
        A.DESCRIBE_SHARE_GROUP_OFFSETS,
        1,
        groups=[{"group_id": group, "topics": asked} for group in SHARES],
    )
    yield make(
        "describe all share offsets",
        A.DESCRIBE_SHARE_GROUP_OFFSETS,
        1,
        groups=[{"group_id": group, "topics": None} for group in SHARES],
    )
    yield make(
        "describe share groups",
        A.SHARE_GROUP_DESCRIBE,
        1,
        group_ids=[*SHARES, "open-missing", "shut-missing"],
        include_authorized_operations=True,
    )
