"""Settings of groups: described and changed, well and badly."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.differential.wire.families.common import GROUPS, NAMES, heartbeat, some, weighted
from tests.differential.wire.script import Ask, Restart, Scenario, Stage

_SHARE = [
    "share.auto.offset.reset",
    "share.delivery.count.limit",
    "share.heartbeat.interval.ms",
    "share.isolation.level",
    "share.partition.max.record.locks",
    "share.record.lock.duration.ms",
    "share.renew.acknowledge.enable",
    "share.session.timeout.ms",
]
_CONSUMER = ["consumer.heartbeat.interval.ms", "consumer.session.timeout.ms"]
_OTHERS = [
    "",
    "retention.ms",
    "group.share.record.lock.duration.ms",
    "share.nonsense",
    "SHARE.SESSION.TIMEOUT.MS",
]
_NUMBERS = [
    *[
        "0",
        "1",
        "2",
        "5",
        "10",
        "100",
        "500",
        "999",
        "1000",
        "1500",
        "5000",
        "15000",
        "30000",
        "45000",
        "60000",
        "60001",
        "600001",
        "100000",
        "3600000",
        "3600001",
    ],
    *("2147483647", "2147483648", "-1", "1.5", "x", ""),
]
_RESETS = ["earliest", "latest", "Latest", "EARLIEST", "none", ""]
_SINCE = ["by_duration:PT1H", "by_duration:", "by_duration:x", "by_duration:-PT1H"]
_LEVELS = "read_committed read_uncommitted READ_COMMITTED READ_UNCOMMITTED wrong"
_WORDS = {
    "share.auto.offset.reset": [*_RESETS, *_SINCE],
    "share.isolation.level": [*_LEVELS.split(), ""],
    "share.renew.acknowledge.enable": ["true", "false", "TRUE", "yes", "", "1"],
}


def scenario(random: Random, stage: Stage) -> Scenario:
    """Random changes to the settings of a few groups, and looks at them."""
    for _ in range(random.randrange(30, 60)):
        match weighted(random, {"alter": 10, "describe": 10, "list": 2, "member": 2, "replace": 2}):
            case "alter":
                yield _alter(random)
            case "describe":
                yield _describe(random)
            case "list":
                yield Ask(
                    "LIST_CONFIG_RESOURCES",
                    1,
                    {"resource_types": list(weighted(random, {(32,): 6, (32, 16): 1, (1,): 1, (99,): 1}))},
                )
            case "replace":
                yield _replace(random)
            case "member":
                yield heartbeat(random.choice(GROUPS), "~ann", 0, ["~nowhere"])
    if stage.restarts and random.random() < 0.02:
        yield Restart()
        yield _describe(random)


def _name(random: Random) -> str:
    return random.choice(NAMES) if random.random() < 0.1 else random.choice(GROUPS)


def _kind(random: Random) -> int:
    kind: int = weighted(random, {32: 60, 2: 2, 4: 1, 0: 1, 99: 1})
    return kind


def _key(random: Random) -> str:
    pool = weighted(random, {"share": 10, "consumer": 3, "others": 2})
    return random.choice({"share": _SHARE, "consumer": _CONSUMER, "others": _OTHERS}[pool])


def _value(random: Random, key: str) -> str | None:
    if random.random() < 0.05:
        return None
    words = _WORDS.get(key)
    if words is not None and random.random() < 0.9:
        return random.choice(words)
    return random.choice(_NUMBERS)


def _alter(random: Random) -> Ask:
    resources: list[dict[str, Any]] = []
    for _ in range(random.choice([1, 1, 1, 2])):
        kind, name = 32 if random.random() < 0.97 else 99, _name(random)
        configs = []
        for _ in range(random.choice([0, 1, 1, 1, 2, 3])):
            key = _key(random)
            operation = weighted(random, {0: 12, 1: 5, 2: 1, 3: 1})
            configs.append({"name": key, "config_operation": operation, "value": _value(random, key)})
        if random.random() < 0.03:  # there is no such operation
            configs = [{"name": _key(random), "config_operation": 9, "value": "1"}]
        resources.append({"resource_type": kind, "resource_name": name, "configs": configs})
    return Ask(
        "INCREMENTAL_ALTER_CONFIGS",
        random.randrange(2),
        {"resources": resources, "validate_only": random.random() < 0.2},
    )


def _replace(random: Random) -> Ask:
    keys = some(random, _SHARE)
    return Ask(
        "ALTER_CONFIGS",
        2,
        {
            "resources": [
                {
                    "resource_type": 32,
                    "resource_name": _name(random),
                    "configs": [{"name": key, "value": _value(random, key)} for key in keys],
                }
            ],
            "validate_only": random.random() < 0.2,
        },
    )


def _describe(random: Random) -> Ask:
    resources: list[dict[str, Any]] = []
    for _ in range(random.choice([1, 1, 2])):
        kind = _kind(random)
        keys = [_key(random) for _ in range(random.choice([0, 1, 2]))]
        resources.append(
            {
                "resource_type": kind,
                # the brokers' own settings are not compared
                "resource_name": random.choice(["77", "x"]) if kind == 4 else _name(random),
                "configuration_keys": None if random.random() < 0.5 else keys,
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
