"""Members of share groups: they join, stay, change what they want, leave, come back and are thrown out."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.differential.wire.families.common import (
    NAMES,
    change_topics,
    create_topics,
    epoch,
    heartbeat,
    set_group,
    some,
    weighted,
)
from tests.differential.wire.script import Ask, Restart, Scenario, Sleep, Stage

_GROUPS = ["~shop", "~shop", "~till"]
_MEMBERS = ["~ann", "~bob", "~cid", "~dan", "~eve"]
_TOPICS = ["~orders", "~bills", "~mail", "~nowhere"]
_MANY = ["~orders", *(f"~nowhere-{number}" for number in range(400)), "~bills"]


def scenario(random: Random, stage: Stage) -> Scenario:
    """A random life of two groups with as many members as they may have, and one more."""
    yield create_topics(orders=random.choice([1, 2, 4]), bills=1)
    members = random.choice([1, 1, 2, 3, 5])
    expiry = random.random() < 0.05
    if expiry:
        yield set_group("~shop", share_session_timeout_ms="2000", share_heartbeat_interval_ms="500")
    for _ in range(random.randrange(30, 70)):
        match weighted(
            random,
            {"beat": 16, "join": 6, "leave": 4, "wrong": 4, "want": 4, "look": 10, "topic": 2, "bad": 2},
        ):
            case "beat":
                group, member = _who(random, members)
                yield heartbeat(group, member, epoch(group, member))
            case "join":
                group, member = _who(random, members)
                yield heartbeat(group, member, 0, some(random, _TOPICS) or ["~orders"], rack=_rack(random))
            case "leave":
                group, member = _who(random, members)
                yield heartbeat(group, member, -1, random.choice([None, None, ["~orders"]]))
            case "wrong":
                group, member = _who(random, members)
                wrong = random.choice([1, 1, 2, -1, -1, -2, 100])
                topics = random.choice([None, None, ["~orders"]])
                yield heartbeat(group, member, epoch(group, member, wrong), topics)
            case "want":
                group, member = _who(random, members)
                yield heartbeat(
                    group, member, epoch(group, member), some(random, _TOPICS), rack=_rack(random)
                )
            case "look":
                yield _look(random)
            case "topic":
                yield change_topics(random)
            case "bad":
                yield _bad(random)
    if expiry:
        yield Sleep(3500)
        yield _look(random)
        for member in _MEMBERS[:members]:
            yield heartbeat("~shop", member, epoch("~shop", member))
    if stage.restarts and random.random() < 0.03:
        yield Restart()
        for _ in range(15):
            group, member = _who(random, members)
            yield heartbeat(group, member, epoch(group, member))
            yield _look(random)


def _who(random: Random, members: int) -> tuple[str, str]:
    return random.choice(_GROUPS), random.choice(_MEMBERS[:members])


def _rack(random: Random) -> str | None:
    return random.choice([None, None, None, "r1", "r2"])


def _look(random: Random) -> Ask:
    group = random.choice(_GROUPS)
    match random.randrange(4):
        case 0:
            return Ask("LIST_GROUPS", 5, {"states_filter": [], "types_filter": ["share"]})
        case 1:
            return Ask("DESCRIBE_SHARE_GROUP_OFFSETS", 1, {"groups": [{"group_id": group, "topics": None}]})
        case _:
            return Ask(
                "SHARE_GROUP_DESCRIBE", 1, {"group_ids": [group], "include_authorized_operations": True}
            )


def _bad(random: Random) -> Ask:
    """Return a heartbeat that no client would send."""
    fields: dict[str, Any] = {
        "group_id": "~shop",
        "member_id": "~ann",
        "member_epoch": random.choice([0, epoch("~shop", "~ann"), -1]),
        "rack_id": None,
        "subscribed_topic_names": ["~orders"],
    }
    choices: list[tuple[str, list[Any]]] = [
        ("group_id", ["", " ", *NAMES]),
        ("member_id", ["", " ", "~" + "m" * 300]),
        ("member_epoch", [-2, -3, -100, 2**31 - 1]),
        ("rack_id", ["", " ", "r" * 300, "é", "\n"]),
        (
            "subscribed_topic_names",
            [[], None, [""], [" "], ["~orders", "~orders"], ["~a b"], [".."], _MANY, ["~" + "x" * 250]],
        ),
    ]
    name, values = random.choice(choices)
    fields[name] = random.choice(values)
    return Ask("SHARE_GROUP_HEARTBEAT", 1, fields)
