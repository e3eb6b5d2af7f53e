"""Topics: made, grown, emptied and deleted in every version, rightly and wrongly; what is told of them."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.differential.wire.families.common import (
    TOPIC_NAMES,
    TOPICS,
    UNKNOWN_ID,
    create_topics,
    produce,
    some,
    weighted,
)
from tests.differential.wire.names import NO_ID, NODE_ID
from tests.differential.wire.script import Ask, Fields, Restart, Scenario, Stage

_STEPS = {
    "create": 8,
    "delete": 4,
    "grow": 5,
    "records": 5,
    "produce": 4,
    "describe": 6,
    "metadata": 6,
    "offsets": 8,
    "epochs": 4,
    "cluster": 2,
    "elect": 2,
    "moves": 1,
    "reassign": 3,
    "quorum": 1,
}
_CONFIGS: dict[str, list[str | None]] = {
    "retention.ms": ["60000", "-1", "-2", "x"],
    "cleanup.policy": ["compact", "delete", "compact,delete", "none"],
    "max.message.bytes": ["1000", "-1"],
    "min.insync.replicas": ["1", "0"],
    "message.timestamp.type": ["LogAppendTime", "Never"],
    "nonsense": ["1"],
}
_INDEXES = [0, 0, 0, 0, 1, 2, 9, -1]


def scenario(random: Random, stage: Stage) -> Scenario:
    """A random life of a few topics."""
    yield create_topics(orders=2, bills=1)
    for _ in range(random.randrange(35, 70)):
        yield _step(random, _STEPS)
    if stage.restarts and random.random() < 0.02:
        yield Restart()
        # elections raise the leader epochs of Apache Kafka's partitions
        steps = {name: weight for name, weight in _STEPS.items() if name != "epochs"}
        for _ in range(15):
            yield _step(random, steps)


def _step(random: Random, steps: dict[str, int]) -> Ask:
    match weighted(random, steps):
        case "create":
            return _create(random)
        case "delete":
            return _delete(random)
        case "grow":
            return _grow(random)
        case "records":
            return _delete_records(random)
        case "produce":
            return produce(random.choice(["orders", "orders", "bills"]), 0, ["a"] * random.choice([1, 2, 5]))
        case "describe":
            return _describe(random)
        case "metadata":
            return _metadata(random)
        case "offsets":
            return _list_offsets(random)
        case "epochs":
            return _epochs(random)
        case "cluster":
            fields = {
                "include_cluster_authorized_operations": random.random() < 0.5,
                "endpoint_type": random.choice([1, 1, 1, 2, 9]),
                "include_fenced_brokers": random.random() < 0.3,
            }
            return Ask("DESCRIBE_CLUSTER", random.randrange(3), fields)
        case "elect":
            return _elect(random)
        case "reassign":
            return _reassign(random)
        case "quorum":
            return _quorum(random)
        case _:
            named = [{"name": _topic(random), "partition_indexes": [random.choice(_INDEXES)]}]
            topics = random.choice([None, [], named])
            return Ask("LIST_PARTITION_REASSIGNMENTS", 0, {"timeout_ms": 5000, "topics": topics})


def _topic(random: Random) -> str:
    strange = [*TOPIC_NAMES, "~nowhere", "~nowhere"]
    return random.choice(strange) if random.random() < 0.12 else random.choice(TOPICS)


def _indexes(random: Random) -> list[int]:
    return random.choices(_INDEXES, k=random.choice([0, 1, 1, 1, 2]))


def _topics(random: Random) -> list[str]:
    """Return a few, rarely one of them twice."""
    topics = [_topic(random) for _ in range(random.choice([1, 1, 1, 2, 3]))]
    return topics if random.random() < 0.2 else list(dict.fromkeys(topics))


def _timeout(random: Random) -> int:
    """Enough, or none; behind a millisecond it is chance what is done."""
    return random.choices([10_000, 0, -1], [12, 1, 1])[0]


def _assignment(random: Random) -> list[int]:
    wrong: list[list[int]] = [[], [0], [NODE_ID, NODE_ID], [NODE_ID, 0], [-1]]
    return [NODE_ID] if random.random() < 0.6 else random.choice(wrong)


def _create(random: Random) -> Ask:
    return Ask(
        "CREATE_TOPICS",
        random.randrange(2, 8),
        {
            "topics": [_new(random, name) for name in _topics(random)],
            "timeout_ms": _timeout(random),
            "validate_only": random.random() < 0.15,
        },
    )


def _new(random: Random, name: str) -> Fields:
    new: Fields = {
        "name": name,
        "num_partitions": weighted(random, {1: 4, 2: 4, 3: 2, -1: 2, 0: 1, -2: 1}),
        "replication_factor": weighted(random, {1: 10, -1: 3, 0: 1, 2: 1, -2: 1}),
        "assignments": [],
        "configs": [
            {"name": key, "value": random.choice([*_CONFIGS[key], None])}
            for key in (some(random, list(_CONFIGS)) if random.random() < 0.3 else ())
        ],
    }
    if random.random() < 0.15:
        if random.random() < 0.7:
            new |= {"num_partitions": -1, "replication_factor": -1}
        indexes = random.choice([[0], [0, 1], [1, 0], [1], [0, 0], [0, 2], [-1]])
        new["assignments"] = [
            {"partition_index": index, "broker_ids": _assignment(random)} for index in indexes
        ]
    return new


def _delete(random: Random) -> Ask:
    names = _topics(random)
    ids = [*(f"#{name[1:]}" for name in TOPICS), UNKNOWN_ID, "#orders/1", NO_ID]
    topics: list[dict[str, Any]] = []
    for name in names:
        kind = weighted(random, {"name": 5, "id": 4, "both": 1, "none": 0.5})
        topics.append(
            {
                "name": name if kind in ("name", "both") else None,
                "topic_id": random.choice(ids) if kind in ("id", "both") else NO_ID,
            }
        )
    return Ask(
        "DELETE_TOPICS",
        random.randrange(1, 7),
        {"topic_names": names, "topics": topics, "timeout_ms": _timeout(random)},
    )


def _grow(random: Random) -> Ask:
    topics = [
        {
            "name": name,
            "count": random.choice([1, 2, 2, 3, 3, 4, 0, -1]),
            "assignments": (
                [{"broker_ids": _assignment(random)} for _ in range(random.choice([0, 1, 1, 2]))]
                if random.random() < 0.2
                else None
            ),
        }
        for name in _topics(random)
    ]
    return Ask(
        "CREATE_PARTITIONS",
        random.randrange(4),
        {"topics": topics, "timeout_ms": _timeout(random), "validate_only": random.random() < 0.15},
    )


def _delete_records(random: Random) -> Ask:
    topics = [
        {
            "name": name,
            "partitions": [
                {"partition_index": index, "offset": random.choice([0, 1, 2, 5, -1, -1, -2, 99])}
                for index in dict.fromkeys(_indexes(random))
            ],
        }
        for name in dict.fromkeys(_topics(random))
    ]
    return Ask("DELETE_RECORDS", random.randrange(3), {"topics": topics, "timeout_ms": 5000})


def _describe(random: Random) -> Ask:
    cursor = {"topic_name": _topic(random), "partition_index": random.choice([0, 0, 1, 2, 9, -1])}
    return Ask(
        "DESCRIBE_TOPIC_PARTITIONS",
        0,
        {
            "topics": [{"name": name} for name in _topics(random)],
            "response_partition_limit": random.choice([2000, 2000, 1, 2, 3, 0, -1]),
            "cursor": cursor if random.random() < 0.3 else None,
        },
    )


def _metadata(random: Random) -> Ask:
    return Ask(
        "METADATA",
        random.randrange(14),
        {
            "topics": [{"topic_id": NO_ID, "name": name} for name in _topics(random)],
            "allow_auto_topic_creation": random.random() < 0.5,
            "include_topic_authorized_operations": random.random() < 0.3,
            "include_cluster_authorized_operations": random.random() < 0.3,
        },
    )


def _list_offsets(random: Random) -> Ask:
    topics = [
        {
            "name": name,
            "partitions": [
                {
                    "partition_index": index,
                    "current_leader_epoch": -1,
                    "timestamp": random.choice(
                        [-1, -1, -2, -2, -3, -4, -5, -6, -7, 0, 1_000_000, 1_000_001, 1 << 50]
                    ),
                }
                for index in _indexes(random)
            ],
        }
        for name in dict.fromkeys(_topics(random))
    ]
    return Ask(
        "LIST_OFFSETS",
        random.randrange(1, 12),
        {
            "replica_id": -1,
            "isolation_level": random.choice([0, 1]),
            "topics": topics,
            "timeout_ms": 5000,
        },
    )


def _epochs(random: Random) -> Ask:
    topics = [
        {
            "topic": name,
            "partitions": [
                {
                    "partition": index,
                    "current_leader_epoch": random.choice([-1, -1, 0, 99]),
                    "leader_epoch": random.choice([0, 0, -1, 1, 99]),
                }
                for index in dict.fromkeys(_indexes(random))
            ],
        }
        for name in dict.fromkeys(_topics(random))
    ]
    return Ask("OFFSET_FOR_LEADER_EPOCH", random.randrange(2, 5), {"replica_id": -1, "topics": topics})


def _elect(random: Random) -> Ask:
    named = [{"topic": name, "partitions": _indexes(random)} for name in dict.fromkeys(_topics(random))]
    return Ask(
        "ELECT_LEADERS",
        random.randrange(3),
        {
            "topic_partitions": named,
            "timeout_ms": _timeout(random),
            "election_type": random.choice([0, 0, 1, 9]),
        },
    )


def _reassign(random: Random) -> Ask:
    version = random.randrange(2)
    topics = [
        {
            "name": name,
            "partitions": [
                {"partition_index": index, "replicas": None if random.random() < 0.2 else _assignment(random)}
                for index in _indexes(random)
            ],
        }
        for name in (_topics(random) if random.random() < 0.95 else [])
    ]
    fields: Fields = {"timeout_ms": _timeout(random), "topics": topics}
    if version:
        fields["allow_replication_factor_change"] = random.random() < 0.5
    return Ask("ALTER_PARTITION_REASSIGNMENTS", version, fields)


def _quorum(random: Random) -> Ask:
    names = random.choice([["~metadata"], ["~metadata"], ["~metadata", "~metadata"], [_topic(random)], []])
    topics = [
        {
            "topic_name": "__cluster_metadata" if name == "~metadata" else name,
            "partitions": [
                {"partition_index": index} for index in random.choice([[0], [0], [1], [0, 0], [], [-1]])
            ],
        }
        for name in names
    ]
    return Ask("DESCRIBE_QUORUM", random.randrange(3), {"topics": topics})
