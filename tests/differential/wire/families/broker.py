"""What a broker tells of itself, and levels of features; records of plain producers in every version."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.differential.wire.families.common import TOPIC_NAMES, create_topics, some, weighted
from tests.differential.wire.script import Ask, Fields, Scenario, Stage

_FEATURES = ["group.version", "transaction.version"]
_TOPICS = ["~orders", "~bills", "~nowhere"]
_STEPS = {"logs": 6, "features": 6, "produce": 8, "versions": 3}


def scenario(random: Random, stage: Stage) -> Scenario:
    """Two topics that are written to and looked at."""
    yield create_topics(orders=2, bills=1)
    for _ in range(random.randrange(20, 40)):
        match weighted(random, _STEPS):
            case "logs":
                yield _logs(random)
            case "features":
                yield _features(random, stage)
            case "produce":
                yield _produce(random)
            case "versions":
                yield _versions(random, stage)


def _logs(random: Random) -> Ask:
    topics: list[Fields] | None = [
        {"topic": name, "partitions": random.choices([0, 0, 1, 9, -1], k=random.choice([0, 1, 1, 2, 3]))}
        for name in some(random, [*_TOPICS, random.choice(TOPIC_NAMES)])
    ]
    return Ask("DESCRIBE_LOG_DIRS", random.randrange(1, 5), {"topics": topics})


def _features(random: Random, stage: Stage) -> Ask:
    """Nothing that takes effect: later scripts need what there is."""
    features = [*_FEATURES, *(["share.version"] if stage.newest else [])]  # 4.3.1 begins with 1
    names = random.choices([*features, *features, "nonsense", ""], k=random.choice([0, 1, 1, 1, 2, 2]))
    updates = [
        {
            "feature": name,
            "max_version_level": weighted(random, {0: 2, 1: 4, 2: 3, 3: 1, 100: 1, -1: 1}),
            "allow_downgrade": random.random() < 0.5,
            "upgrade_type": weighted(random, {1: 5, 2: 3, 3: 3, 0: 1, 9: 1}),
        }
        for name in (names if random.random() < 0.2 else dict.fromkeys(names))
    ]
    fields = {"timeout_ms": 10_000, "feature_updates": updates, "validate_only": True}
    return Ask("UPDATE_FEATURES", random.randrange(1, 3), fields)


def _produce(random: Random) -> Ask:
    """Records without a producer's id, to places good and bad."""
    data: dict[str, list[Fields]] = {}
    for _ in range(random.choice([0, 1, 1, 1, 2, 3])):
        name = random.choice(["orders", "orders", "bills", "nowhere"])
        records: Any = {"values": ["x" * random.choice([1, 5, 50])] * random.choice([1, 1, 2, 3])}
        data.setdefault(name, []).append({"index": random.choice([0, 0, 0, 1, 9, -1]), "records": records})
    topics = [
        {
            "name": f"~{name}",
            "topic_id": f"#{name}",
            "partition_data": list({each["index"]: each for each in partitions}.values()),
        }
        for name, partitions in data.items()
    ]
    return Ask(
        "PRODUCE",
        random.randrange(3, 14),
        {
            "transactional_id": weighted(random, {None: 12, "~ann": 1}),
            "acks": weighted(random, {-1: 8, 1: 4, 2: 0.5, -2: 0.3}),
            "timeout_ms": random.choice([10_000, 1000, 0]),
            "topic_data": topics,
        },
    )


def _versions(random: Random, stage: Stage) -> Ask:
    good, bad = [("wire", "1.0"), ("x.y-z", "1.0-rc")], [("", ""), ("-x", "1"), ("x", "1_0"), ("a b", "1")]
    name, version = random.choice(good + bad)
    fields: dict[str, Any] = {"client_software_name": name, "client_software_version": version}
    if stage.newest and random.random() < 0.5:
        meant = random.choice(
            [(None, -1), ("other", 0), ("other", -1), (None, 0), (None, 7), ("", 0), ("", -2)]
        )
        fields |= dict(zip(("cluster_id", "node_id"), meant, strict=True))
        return Ask("API_VERSIONS", 5, fields)
    return Ask("API_VERSIONS", random.randrange(5), fields)
