"""Values around every bound, and keys that bound each other, at random."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from tests.differential.configs.case import Case

from sharecore.config import ConfigKey, Kind, Status, broker_keys, group_keys, topic_keys
from sharecore.errors import ConfigError

SCOPES = {"broker": broker_keys, "topic": topic_keys, "group": group_keys}
_ENDS = {Kind.INT: 2**31, Kind.SHORT: 2**15, Kind.LONG: 2**63}
_NUMBERS = (*_ENDS, Kind.DOUBLE)
_ODD = (
    "",
    " ",
    "x",
    "1.5",
    "1e3",
    "0x10",
    "1_000",
    "1,000",
    "--1",
    "+5",
    "-0",
    " 7 ",
    "NaN",
    "Infinity",
    "null",
    "1d",
    "inf",
)
_NOT_BOOLEAN = ("true", "TRUE", " false ", "yes", "1", "", "null")
_ONE_SERVER = ("listeners", "advertised.listeners", "node.id", "broker.id")
"""What both sides are told alike, so that either could start."""


def _judged(scope: str) -> dict[str, ConfigKey]:
    """Keys whose values have bounds."""
    return {
        name: key
        for name, (_, key) in SCOPES[scope]().items()
        if key.status is Status.WORKS
        and not (key.own or name.startswith("sharecore."))
        and name not in _ONE_SERVER
        and (key.kind in _NUMBERS or key.kind is Kind.BOOLEAN or key.choices)
    }


def _numbers(key: ConfigKey) -> set[str]:
    """Numbers below, at and above each bound."""
    found = {-3, -2, -1, 0, 1, 2}
    if key.kind is Kind.DOUBLE:
        edges = [key.low, key.high, key.default]
        steps = (-0.5, 0, 0.5)
        return {str(edge + step) for edge in edges if isinstance(edge, float | int) for step in steps} | {
            "0",
            "1",
            "-1",
        }
    end = _ENDS[key.kind]
    for edge in (key.low, key.high, key.default, end - 1, -end):
        if isinstance(edge, float | int):
            found |= {int(edge) - 1, int(edge), int(edge) + 1}
    return set(map(str, found))


def _texts(key: ConfigKey) -> list[str]:
    if key.kind in _NUMBERS:
        return [*sorted(_numbers(key)), *_ODD]
    if key.kind is Kind.BOOLEAN:
        return list(_NOT_BOOLEAN)
    words = list(key.choices)
    return [
        *words,
        ",".join(words),
        words[0].upper(),
        f" {words[0]} ",
        f"{words[0]},{words[0]}",
        "",
        " ",
        ",",
        "x",
    ]


def single() -> Iterator[Case]:
    """Every key with every odd value, alone."""
    for scope in SCOPES:
        for name, key in _judged(scope).items():
            for text in _texts(key):
                yield Case(scope, {name: text}, {})


FAMILIES = (
    "group.share.",
    "group.consumer.",
    "group.m",
    "log.retention.",
    "log.cleaner.",
    "share.coordinator.",
    "offset",
    "transaction",
    "message.max|log.segment|log.message|fetch.max|max.request|socket.request|replica.",
    "connection|max.connections|socket.|queued.|num.",
)


def several(seed: int) -> Case:
    """Return a few related keys with values that are allowed one by one."""
    random = Random(seed)
    scope = random.choices(("broker", "topic", "group"), (6, 2, 4))[0]
    settings = _related(random, scope, random.choice(FAMILIES) if scope == "broker" else "")
    around = {"topic": "log.cleaner.m|log.re|message.", "group": "group."}
    broker = _related(random, "broker", around[scope]) if scope in around and random.random() < 0.5 else {}
    return Case(scope, settings, broker)


def _related(random: Random, scope: str, family: str) -> dict[str, str]:
    keys = {
        name: key
        for name, key in _judged(scope).items()
        if any(name.startswith(start) for start in family.split("|"))
    }
    chosen = random.sample(sorted(keys), min(len(keys), random.randint(1, 4)))
    return {name: random.choice(_allowed(keys[name], random)) for name in chosen}


def _allowed(key: ConfigKey, random: Random) -> list[str]:
    found = []
    for text in _texts(key):
        try:
            key.parse(text)
        except ConfigError:
            continue
        found.append(text)
    if key.kind in _ENDS and isinstance(key.default, int):
        low = max(key.low or 0, key.default // 4)
        high = min(key.default * 4 + 4, int(key.high or 2**31 - 1))
        found += [str(random.randint(int(low), max(int(low), high)))] * 6
    return found
