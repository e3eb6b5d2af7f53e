"""Offsets of share groups: described, altered, deleted, while members come and go and topics change."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.differential.wire.families.common import (
    GROUPS,
    MEMBERS,
    NAMES,
    TOPIC_NAMES,
    create_topics,
    delete_topics,
    epoch,
    grow_topic,
    heartbeat,
    produce,
    set_group,
    some,
    weighted,
)
from tests.differential.wire.script import Ask, Restart, Scenario, Stage

_TOPICS = ["~orders", "~bills", "~orders", "~bills", "~mail", "~nowhere"]


_STEPS = {
    "describe": 14,
    "alter": 8,
    "delete": 5,
    "join": 5,
    "beat": 4,
    "leave": 6,
    "topic": 2,
    "produce": 2,
    "group": 2,
    "look": 4,
    "state": 4,
    "records": 1,
}


def scenario(random: Random, stage: Stage) -> Scenario:
    """A random life of a few share groups."""
    yield create_topics(orders=3, bills=1)
    yield produce("orders", 0, ["a", "b", "c"])
    yield produce("bills", 0, ["d"])
    if random.random() < 0.7:
        yield set_group("~shop", share_auto_offset_reset=random.choice(["earliest", "latest"]))
    for _ in range(random.randrange(30, 70)):
        match weighted(
            random,
            _STEPS,
        ):
            case "describe":
                yield _describe(random)
            case "alter":
                yield _alter(random)
            case "delete":
                yield _delete(random)
            case "join":
                group, member = random.choice(GROUPS), random.choice(MEMBERS)
                yield heartbeat(group, member, 0, some(random, _TOPICS[:4]) or ["~orders"])
            case "beat":
                group, member = random.choice(GROUPS), random.choice(MEMBERS)
                yield heartbeat(group, member, epoch(group, member))
            case "leave":
                yield heartbeat(random.choice(GROUPS), random.choice(MEMBERS), -1)
            case "topic":
                yield _change(random)
            case "produce":
                yield produce("orders", random.randrange(3), ["e", "f"])
            case "group":
                yield Ask("DELETE_GROUPS", 2, {"groups_names": [_group(random)]})
            case "state":
                yield _state(random)
            case "records":
                yield _delete_records(random)
            case "look":
                yield Ask("SHARE_GROUP_DESCRIBE", 1, {"group_ids": [_group(random)]})
    if stage.restarts and random.random() < 0.02:
        yield Restart()
        for _ in range(10):
            yield _describe(random)


def _group(random: Random) -> str:
    return random.choice(NAMES) if random.random() < 0.06 else random.choice(GROUPS)


def _topic(random: Random) -> str:
    return random.choice(TOPIC_NAMES) if random.random() < 0.06 else random.choice(_TOPICS)


def _partitions(random: Random) -> list[int]:
    partitions = [random.choice([0, 1, 2, 3, 9]) for _ in range(random.choice([0, 1, 1, 2, 3]))]
    return partitions if random.random() < 0.2 else [each for each in dict.fromkeys(partitions) if each]


def _existing(random: Random) -> list[int]:
    """Apache Kafka does not answer about partitions that there are not, nor about none."""
    return random.choice([[0], [0], [0], [-1]])


def _topics(random: Random, most: int) -> list[str]:
    """Rarely one of them twice."""
    topics = [_topic(random) for _ in range(random.choice([0, 1, 1, 2, most]))]
    return topics if random.random() < 0.1 else list(dict.fromkeys(topics))


def _describe(random: Random) -> Ask:
    groups: list[dict[str, Any]] = []
    for group in dict.fromkeys(_group(random) for _ in range(random.choice([1, 1, 2]))):
        topics = [{"topic_name": topic, "partitions": _existing(random)} for topic in _topics(random, 3)]
        groups.append({"group_id": group, "topics": None if random.random() < 0.4 else topics})
    return Ask("DESCRIBE_SHARE_GROUP_OFFSETS", random.randrange(2), {"groups": groups})


def _alter(random: Random) -> Ask:
    topics = [
        {
            "topic_name": topic,
            "partitions": [
                {"partition_index": index, "start_offset": random.choice([0, 0, 1, 2, 3, 99, -1])}
                # Apache Kafka can no longer delete a group once a topic was reset without any partition
                for index in [0, *_partitions(random)]
            ],
        }
        for topic in _topics(random, 3)
    ]
    return Ask("ALTER_SHARE_GROUP_OFFSETS", 0, {"group_id": _group(random), "topics": topics})


def _state(random: Random) -> Ask:
    """Which epoch the state has, besides its start offset."""
    partitions = [{"partition": index, "leader_epoch": 0} for index in random.choice([[0], [0], [0, 1]])]
    topics = [{"topic_id": random.choice(["#orders", "#orders", "#bills"]), "partitions": partitions}]
    return Ask(
        "READ_SHARE_GROUP_STATE_SUMMARY",
        random.randrange(2),
        {"group_id": random.choice(GROUPS), "topics": topics},
    )


def _delete(random: Random) -> Ask:
    topics = [{"topic_name": topic} for topic in _topics(random, 3)]
    return Ask("DELETE_SHARE_GROUP_OFFSETS", 0, {"group_id": _group(random), "topics": topics})


def _delete_records(random: Random) -> Ask:
    partitions = [{"partition_index": 0, "offset": random.choice([0, 1, 2])}]
    return Ask(
        "DELETE_RECORDS", 2, {"topics": [{"name": "~orders", "partitions": partitions}], "timeout_ms": 5000}
    )


def _change(random: Random) -> Ask:
    match random.randrange(4):
        case 0:
            return delete_topics(random.choice(["~orders", "~bills", "~mail"]))
        case 1:
            return grow_topic("~bills", random.randrange(1, 4))
        case _:
            return create_topics(**{random.choice(["orders", "bills", "mail"]): 3})
