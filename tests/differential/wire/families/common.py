"""Requests that several families send."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from tests.differential.wire.script import Ask

TOPICS = ["~orders", "~bills", "~mail"]
GROUPS = ["~shop", "~till", "~desk"]
MEMBERS = ["~ann", "~bob", "~cid"]
UNKNOWN_ID = "00000000-0000-4000-8000-00000000abcd"
NAMES = ["", "~nobody", "~", "~" + "x" * 250, "~é", "~a b", "~with:colon"]
"""Names of groups and topics that are strange, or that nothing has."""
TOPIC_NAMES = [*NAMES, ".."]
"""The same for topics alone: a group `..` could be made, and would outlive its script."""


def weighted(random: Random, choices: Mapping[Any, float]) -> Any:
    """One of the keys, by weight."""
    return random.choices(list(choices), list(choices.values()))[0]


def some(random: Random, items: list[Any], most: int = 3) -> list[Any]:
    """Return a few different items, rarely none."""
    return random.sample(items, min(len(items), random.choice([0, 1, 1, 1, 2, 2, most])))


def create_topics(**partitions: int) -> Ask:
    return Ask(
        "CREATE_TOPICS",
        7,
        {
            "topics": [
                {"name": f"~{name}", "num_partitions": count, "replication_factor": 1}
                for name, count in partitions.items()
            ],
            "timeout_ms": 10_000,
        },
    )


def delete_topics(*names: str) -> Ask:
    return Ask("DELETE_TOPICS", 6, {"topics": [{"name": name} for name in names], "timeout_ms": 10_000})


def grow_topic(name: str, count: int) -> Ask:
    return Ask(
        "CREATE_PARTITIONS",
        3,
        {"topics": [{"name": name, "count": count, "assignments": None}], "timeout_ms": 10_000},
    )


def change_topics(random: Random) -> Ask:
    """A topic that members may want comes, goes or grows."""
    match random.randrange(4):
        case 0:
            return delete_topics(random.choice(TOPICS))
        case 1:
            return grow_topic(random.choice(TOPICS[:2]), random.randrange(1, 6))
        case _:
            return create_topics(**{random.choice(["orders", "bills", "mail"]): random.choice([1, 2, 3])})


def produce(topic: str, partition: int, values: list[str]) -> Ask:
    """`topic` without its `~`."""
    return Ask(
        "PRODUCE",
        13,
        {
            "transactional_id": None,
            "acks": -1,
            "timeout_ms": 10_000,
            "topic_data": [
                {
                    "topic_id": f"#{topic}",
                    "partition_data": [{"index": partition, "records": {"values": values}}],
                }
            ],
        },
    )


def heartbeat(
    group: str,
    member: str,
    epoch: Any,
    topics: list[str] | None = None,
    *,
    rack: str | None = None,
    on: str = "a",
) -> Ask:
    return Ask(
        "SHARE_GROUP_HEARTBEAT",
        1,
        {
            "group_id": group,
            "member_id": member,
            "member_epoch": epoch,
            "rack_id": rack,
            "subscribed_topic_names": topics,
        },
        on,
    )


def consumer_heartbeat(group: str, member: str, epoch: Any, *, version: int = 1, **fields: Any) -> Ask:
    """Return a heartbeat of a consumer group that says nothing but `fields`."""
    return Ask(
        "CONSUMER_GROUP_HEARTBEAT",
        version,
        {
            "group_id": group,
            "member_id": member,
            "member_epoch": epoch,
            "instance_id": None,
            "rack_id": None,
            "rebalance_timeout_ms": -1,
            "subscribed_topic_names": None,
            "subscribed_topic_regex": None,
            "server_assignor": None,
            "topic_partitions": None,
            **fields,
        },
    )


def epoch(group: str, member: str, plus: int = 0) -> dict[str, Any]:
    """The member's epoch as it was last answered."""
    return {"epoch": f"{group} {member}", "plus": plus}


def set_group(group: str, **settings: str) -> Ask:
    """Settings of a group; `_` in their names stands for a dot."""
    return Ask(
        "INCREMENTAL_ALTER_CONFIGS",
        1,
        {
            "resources": [
                {
                    "resource_type": 32,
                    "resource_name": group,
                    "configs": [
                        {"name": name.replace("_", "."), "config_operation": 0, "value": value}
                        for name, value in settings.items()
                    ],
                }
            ],
            "validate_only": False,
        },
    )
