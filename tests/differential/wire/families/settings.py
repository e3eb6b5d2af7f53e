"""Settings of topics, brokers and subscriptions to metrics: described and changed, well and badly."""

from __future__ import annotations

from random import Random

from tests.differential.wire.families.common import (
    TOPIC_NAMES,
    create_topics,
    delete_topics,
    some,
    weighted,
)
from tests.differential.wire.names import NODE_ID
from tests.differential.wire.script import Ask, Fields, Restart, Scenario, Stage

_TOPIC, _BROKER, _LOGGERS, _CLIENT_METRICS, _GROUP = 2, 4, 8, 16, 32
_TOPICS = ["~orders", "~orders", "~bills"]
_SUBSCRIPTIONS = ["~all", "~some"]
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)
_SIZES = ["0", "1", "14", "1000", "1048576", "2147483647", "2147483648", "-1", "-2", "1.5", "x", ""]
_TIMES = ["0", "1", "1000", "604800000", "9223372036854775807", "9223372036854775808", "-1", "-2", "x", ""]
_OF_TOPICS: dict[str, list[str]] = {
    "cleanup.policy": [
        "compact",
        "delete",
        "compact,delete",
        "delete, compact",
        "Delete",
        "none",
        "",
        "delete,delete",
    ],
    "delete.retention.ms": _TIMES,
    "max.compaction.lag.ms": _TIMES,
    "max.message.bytes": _SIZES,
    "message.timestamp.after.max.ms": _TIMES,
    "message.timestamp.before.max.ms": _TIMES,
    "message.timestamp.type": ["CreateTime", "LogAppendTime", "createtime", "Never", ""],
    "min.cleanable.dirty.ratio": ["0", "0.5", "1", "1.1", "-0.1", "x", ""],
    "min.compaction.lag.ms": _TIMES,
    "min.insync.replicas": ["1", "2", "0", "-1", "x", ""],
    "retention.bytes": _TIMES,
    "retention.ms": _TIMES,
    "segment.bytes": _SIZES,
    "segment.ms": _TIMES,
}
_OF_BROKERS: dict[str, list[str]] = {
    "log.retention.ms": _TIMES,
    "log.cleanup.policy": ["compact", "delete", "none"],
    "message.max.bytes": _SIZES,
    "log.retention.minutes": ["5"],
    "log.retention.hours": ["5"],
    "max.connections": ["1000", "0", "-1", "x"],
    "max.connections.per.ip": ["1000", "0", "x"],
    "max.connection.creation.rate": ["1000", "0", "-1"],
    "log.message.timestamp.type": ["CreateTime", "LogAppendTime", "Never"],
    "group.share.max.size": ["5"],
    "num.partitions": ["5"],
}
_OF_METRICS: dict[str, list[str]] = {
    "interval.ms": ["100", "99", "1000", "3600000", "3600001", "0", "-1", "x", "", "1.5"],
    "metrics": [
        "org.apache.kafka",
        "*",
        "",
        "org.apache.kafka.consumer.,org.apache.kafka.producer.",
        ",",
        "a b",
    ],
    "match": [
        "client_id=wire",
        "client_software_name=apache.*",
        "client_id=a.*,client_source_port=1",
        "nothing=1",
        "client_id",
        "client_id=[",
        "client_id=",
        "",
    ],
}
_OF_LOGGERS = {
    "root": ["WARN", "ERROR", "FATAL", "warn", "LOUD", "", "OFF", "ALL"],
    "no.such.logger": ["WARN"],
}
_NOT_QUITE = [f"0{NODE_ID}", f"+{NODE_ID}", f"{NODE_ID} ", f"{2**32 + NODE_ID}", "\u0664", "\u00b2"]
"""Names of brokers; Java reads some of them as the number of this one."""
_KEYS = {
    _TOPIC: _OF_TOPICS,
    _BROKER: _OF_BROKERS,
    _CLIENT_METRICS: _OF_METRICS,
    _LOGGERS: _OF_LOGGERS,
    _GROUP: {},
}
_LISTS = {"cleanup.policy", "log.cleanup.policy", "metrics", "match"}
_STEPS = {"describe": 10, "alter": 8, "replace": 3, "list": 3, "topic": 1}


_QUIETER = Ask(
    "INCREMENTAL_ALTER_CONFIGS",
    1,
    {
        "resources": [
            {
                "resource_type": _LOGGERS,
                "resource_name": str(NODE_ID),
                "configs": [{"name": "root", "config_operation": _SET, "value": "WARN"}],
            }
        ],
        "validate_only": False,
    },
)
"""Brokers start with levels of their own."""


def scenario(random: Random, stage: Stage) -> Scenario:
    """Random changes to settings, and looks at them."""
    yield create_topics(orders=1, bills=1)
    yield _QUIETER
    for _ in range(random.randrange(30, 60)):
        yield _step(random)
    if stage.restarts and random.random() < 0.02:
        yield Restart()
        yield _QUIETER
        for _ in range(10):
            yield _describe(random)


def _step(random: Random) -> Ask:
    match weighted(random, _STEPS):
        case "describe":
            return _describe(random)
        case "alter":
            return _alter(random)
        case "replace":
            return _replace(random)
        case "list":
            kinds = random.choice(
                [
                    [],
                    [_TOPIC],
                    [_BROKER],
                    [_CLIENT_METRICS],
                    [_GROUP, _TOPIC],
                    [_CLIENT_METRICS] * 2,
                    [0],
                    [1],
                ]
            )
            return Ask("LIST_CONFIG_RESOURCES", random.randrange(2), {"resource_types": kinds})
        case _:
            return random.choice([delete_topics("~bills"), create_topics(bills=1)])


def _kind(random: Random) -> int:
    kind: int = weighted(
        random, {_TOPIC: 10, _BROKER: 3, _CLIENT_METRICS: 5, _LOGGERS: 2, 0: 0.3, 3: 0.1, -1: 0.1}
    )
    return kind


def _name(random: Random, kind: int) -> str:
    names = {
        _TOPIC: [*_TOPICS, *_TOPICS, "~nowhere", random.choice(TOPIC_NAMES)],
        _BROKER: [str(NODE_ID)] * 4 + ["", "", random.choice(["77", "x", "-1", *_NOT_QUITE])],
        _LOGGERS: [str(NODE_ID)] * 4 + random.choice([["77", "x", ""], _NOT_QUITE]),
        _CLIENT_METRICS: [*_SUBSCRIPTIONS, *_SUBSCRIPTIONS, ""],
    }
    return random.choice(names.get(kind, ["~what"]))


def _key(random: Random, kind: int) -> str:
    """Mostly one that there is; brokers of Apache Kafka may be set anything."""
    keys = list(_KEYS.get(kind, ())) or ["what"]
    return (
        random.choice(["nonsense", "", keys[0].upper()])
        if kind != _BROKER and random.random() < 0.06
        else random.choice(keys)
    )


def _value(random: Random, kind: int, key: str) -> str | None:
    if random.random() < 0.05:
        return None
    return random.choice(_KEYS.get(kind, {}).get(key, ["1", "x", ""]))


def _resources(random: Random) -> list[tuple[int, str]]:
    """Return a few, rarely one of them twice."""
    named = []
    for _ in range(random.choice([1, 1, 1, 1, 2, 3])):
        kind = _kind(random)
        named.append((kind, _name(random, kind)))
    return named if random.random() < 0.3 else list(dict.fromkeys(named))


def _describe(random: Random) -> Ask:
    resources: list[Fields] = []
    for kind, name in _resources(random):
        keys = [_key(random, kind) for _ in range(random.choice([1, 2, 3]))]
        # a broker's settings are not compared as a whole, and its loggers have their own names
        everything = kind not in (_BROKER, _LOGGERS) and random.random() < 0.3
        resources.append(
            {
                "resource_type": kind,
                "resource_name": name,
                "configuration_keys": random.choice([None, []]) if everything else keys,
            }
        )
    return Ask(
        "DESCRIBE_CONFIGS",
        random.randrange(1, 5),
        {
            "resources": resources,
            "include_synonyms": random.random() < 0.5,
            "include_documentation": random.random() < 0.2,
        },
    )


def _alter(random: Random) -> Ask:
    named = _resources(random)
    resources: list[Fields] = []
    for kind, name in named:
        configs = []
        for _ in range(random.choice([0, 1, 1, 1, 2, 3])):
            key = _key(random, kind)
            operations = {_SET: 8, _DELETE: 4, _APPEND: 1, _SUBTRACT: 1}
            if key in _LISTS:
                operations |= {_APPEND: 8, _SUBTRACT: 8}
            configs.append(
                {
                    "name": key,
                    "config_operation": weighted(random, operations),
                    "value": _value(random, kind, key),
                }
            )
        resources.append({"resource_type": kind, "resource_name": name, "configs": configs})
    fields = {"resources": resources, "validate_only": _only_looks(random, named)}
    return Ask("INCREMENTAL_ALTER_CONFIGS", random.randrange(2), fields)


def _replace(random: Random) -> Ask:
    # Apache Kafka never answers if a resource repeats; and cluster-wide settings cannot be replaced while
    # there are eligible leader replicas. Kinds that cannot be replaced count as one
    found = {
        (kind if kind in _KEYS.keys() - {_LOGGERS} else 0, name): (kind, name)
        for kind, name in _resources(random)
    }
    named = [each for each in found.values() if each != (_BROKER, "")]
    resources = [
        {
            "resource_type": kind,
            "resource_name": name,
            "configs": [
                {"name": key, "value": _value(random, kind, key)}
                for key in some(random, list(_KEYS.get(kind, ())) or ["what"])
            ],
        }
        for kind, name in named
    ]
    fields = {"resources": resources, "validate_only": _only_looks(random, named)}
    return Ask("ALTER_CONFIGS", random.randrange(3), fields)


def _only_looks(random: Random, named: list[tuple[int, str]]) -> bool:
    """What brokers are set to is there for later scripts."""
    return any(kind == _BROKER for kind, _ in named) or random.random() < 0.15
