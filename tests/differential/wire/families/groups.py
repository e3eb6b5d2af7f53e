"""Groups of every kind, listed, described, found, deleted; their settings; topics by Metadata."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from tests.differential.wire.families.common import (
    GROUPS,
    MEMBERS,
    NAMES,
    TOPIC_NAMES,
    TOPICS,
    UNKNOWN_ID,
    consumer_heartbeat,
    create_topics,
    delete_topics,
    grow_topic,
    heartbeat,
    some,
    weighted,
)
from tests.differential.wire.names import NO_ID
from tests.differential.wire.script import Ask, Restart, Scenario, Stage

_STATES = ["Stable", "Empty", "Dead", "stable", "PreparingRebalance", "Assigning", "Reconciling", "Wrong", ""]
_TYPES = ["share", "Share", "consumer", "classic", "streams", "CLASSIC", "wrong", ""]
_ALL_GROUPS = [*GROUPS, "~plain", "~new", "~commits"]
_NEW_GROUPS = ["~new"] * 6 + ["~plain", "~plain", "~commits", "~shop"]
_CLASSIC_GROUPS = ["~plain"] * 6 + ["~new", "~new", "~commits", "~shop"]
"""Of another protocol at times, which they take over where nobody is in them."""


def scenario(random: Random, stage: Stage) -> Scenario:
    """A random life of a few groups."""
    yield create_topics(orders=2, bills=1)
    steps: dict[Callable[[Random], Ask], int] = {
        _join_share: 10,
        _leave_share: 4,
        _join_new: 4,
        _leave_new: 2,
        _commit: 4,
        _list: 12,
        _describe_classic: 10,
        _describe_share: 6,
        _describe_new: 3,
        _find: 10,
        _find_old: 3,
        _delete: 6,
        _metadata: 10,
        _topics: 3,
        _offset_fetch: 3,
    }
    if stage.newest:
        steps[_delete_newest] = 4
    for _ in range(random.randrange(40, 90)):
        if random.random() < 0.08:
            yield from _classic(random)
        yield weighted(random, steps)(random)
    if stage.restarts and random.random() < 0.02:
        yield Restart()
        for _ in range(20):
            yield weighted(random, steps)(random)


def _group(random: Random, names: list[str] = _ALL_GROUPS) -> str:
    return random.choice(NAMES) if random.random() < 0.12 else random.choice(names)


def _groups(random: Random) -> list[str]:
    return [_group(random) for _ in range(random.choice([0, 1, 1, 2, 3]))]


def _join_share(random: Random) -> Ask:
    group, member = _group(random, GROUPS), random.choice(MEMBERS)
    return heartbeat(group, member, 0, some(random, TOPICS) or ["~orders"])


def _leave_share(random: Random) -> Ask:
    return heartbeat(random.choice(GROUPS), random.choice(MEMBERS), -1)


def _join_new(random: Random) -> Ask:
    return consumer_heartbeat(
        random.choice(_NEW_GROUPS),
        random.choice(MEMBERS),
        0,
        rebalance_timeout_ms=5000,
        subscribed_topic_names=["~orders"],
        server_assignor="range",
        topic_partitions=[],
    )


def _leave_new(random: Random) -> Ask:
    return consumer_heartbeat(random.choice(_NEW_GROUPS), random.choice(MEMBERS), -1)


def _classic(random: Random) -> Scenario:
    """A member of a classic group joins, gets what it gave itself, and stays or leaves."""
    group = random.choice(_CLASSIC_GROUPS)
    join: dict[str, Any] = {
        "group_id": group,
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 30_000,
        "member_id": "",
        "group_instance_id": None,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": {"hex": "00010000000100066f7264657273ffffffff00000000"}}],
        "reason": "because",
    }
    answer = yield Ask("JOIN_GROUP", 9, join, "classic")
    if not isinstance(answer, dict) or answer["error_code"] != 79:
        return
    member = answer["member_id"]
    answer = yield Ask("JOIN_GROUP", 9, join | {"member_id": member}, "classic")
    if not isinstance(answer, dict) or answer["error_code"] != 0:
        return
    if random.random() < 0.2:
        yield _join_new(random)
    yield _describe_classic(random)
    yield Ask(
        "SYNC_GROUP",
        5,
        {
            "group_id": group,
            "generation_id": answer["generation_id"],
            "member_id": member,
            "group_instance_id": None,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": [{"member_id": member, "assignment": {"hex": "00010203"}}],
        },
        "classic",
    )
    yield Ask("DESCRIBE_GROUPS", random.randrange(7), {"groups": [group]})
    yield _list(random)
    yield Ask(
        "LEAVE_GROUP",
        5,
        {"group_id": group, "members": [{"member_id": member, "group_instance_id": None, "reason": "done"}]},
        "classic",
    )


def _commit(random: Random) -> Ask:
    return Ask(
        "OFFSET_COMMIT",
        9,
        {
            # the group with the empty name would outlive its script
            "group_id": (_group(random) if random.random() < 0.3 else "") or "~commits",
            "generation_id_or_member_epoch": -1,
            "member_id": "",
            "group_instance_id": None,
            "topics": [
                {
                    "name": random.choice(["~orders", "~bills", "~orders", "~nowhere"]),
                    "partitions": [
                        {
                            "partition_index": random.choice([0, 0, 1, 9]),
                            "committed_offset": random.randrange(5),
                            "committed_leader_epoch": -1,
                            "committed_metadata": random.choice([None, "", "note"]),
                        }
                    ],
                }
            ],
        },
    )


def _offset_fetch(random: Random) -> Ask:
    return Ask(
        "OFFSET_FETCH",
        9,
        {
            "groups": [
                {"group_id": group, "member_id": None, "member_epoch": -1, "topics": None}
                for group in dict.fromkeys(_groups(random))
            ],
            "require_stable": random.random() < 0.5,
        },
    )


def _list(random: Random) -> Ask:
    return Ask(
        "LIST_GROUPS",
        random.randrange(3, 6),
        {
            "states_filter": some(random, _STATES) if random.random() < 0.5 else [],
            "types_filter": some(random, _TYPES) if random.random() < 0.5 else [],
        },
    )


def _describe_classic(random: Random) -> Ask:
    return Ask(
        "DESCRIBE_GROUPS",
        weighted(random, {0: 1, 3: 1, 5: 2, 6: 6}),
        {"groups": _groups(random), "include_authorized_operations": random.random() < 0.4},
    )


def _describe_share(random: Random) -> Ask:
    return Ask(
        "SHARE_GROUP_DESCRIBE",
        1,
        {"group_ids": _groups(random), "include_authorized_operations": random.random() < 0.4},
    )


def _describe_new(random: Random) -> Ask:
    return Ask(
        "CONSUMER_GROUP_DESCRIBE",
        random.randrange(2),
        {"group_ids": _groups(random), "include_authorized_operations": random.random() < 0.4},
    )


def _share_key(random: Random) -> str:
    return random.choice(
        [
            "~shop:{#orders}:0",
            "~shop:{#orders}:1",
            "~shop:{#nowhere}:7",
            "~with:colon:{#orders}:0",
            "~shop:{#orders}:-1",
            "~shop:{#orders}:x",
            "~shop:{#orders}:",
            "~shop:{#orders}",
            ":{#orders}:0",
            "~shop::0",
            "~shop:nonsense:0",
            "~shop:AAAAAAAAAAAAAAAAAAAAAA:0",
            "~shop:AAAAAAAAAAAAAAAAAAAAAQ:0",
            "~shop:{#orders}:99999999999",
            "~shop",
            "",
            ":",
            "::",
            " :{#orders}:0",
            "~shop: {#orders} : 0",
        ]
    )


def _find(random: Random) -> Ask:
    kind = weighted(random, {0: 3, 1: 2, 2: 6, 3: 1, -1: 1, 127: 1})
    one = _share_key if kind == 2 or random.random() < 0.2 else _group
    return Ask(
        "FIND_COORDINATOR",
        weighted(random, {4: 1, 5: 2, 6: 6}),
        {"key_type": kind, "coordinator_keys": [one(random) for _ in range(random.choice([0, 1, 1, 2]))]},
    )


def _find_old(random: Random) -> Ask:
    return Ask(
        "FIND_COORDINATOR",
        random.randrange(4),
        {"key_type": weighted(random, {0: 3, 1: 2, 2: 2, 9: 1}), "key": _group(random)},
    )


def _delete(random: Random) -> Ask:
    names = _groups(random)
    if random.random() < 0.05:
        names += names
    return Ask("DELETE_GROUPS", weighted(random, {0: 1, 1: 1, 2: 5}), {"groups_names": names})


def _delete_newest(random: Random) -> Ask:
    return Ask("DELETE_GROUPS", 3, {"groups_names": _groups(random)})


def _metadata(random: Random) -> Ask:
    version = weighted(random, {1: 1, 4: 1, 8: 1, 9: 1, 11: 1, 12: 5, 13: 5})
    flags = {
        "allow_auto_topic_creation": random.random() < 0.5,
        "include_topic_authorized_operations": random.random() < 0.3,
        "include_cluster_authorized_operations": random.random() < 0.3,
    }
    if random.random() < 0.2:
        return Ask("METADATA", version, {"topics": random.choice([None, []]), **flags})
    topics: list[dict[str, Any]] = []
    for _ in range(random.choice([1, 1, 2, 3])):
        name = random.choice([*TOPICS, "~nowhere", *TOPIC_NAMES, "__consumer_offsets", "__share_group_state"])
        topics.append({"topic_id": NO_ID, "name": name})
        if version >= 12 and random.random() < 0.4:
            ids = ["#orders", "#bills", "#orders/1", UNKNOWN_ID, NO_ID]
            topics[-1] = {"topic_id": random.choice(ids), "name": None}
    return Ask("METADATA", version, {"topics": topics, **flags})


def _topics(random: Random) -> Ask:
    match random.randrange(5):
        case 0:
            return delete_topics(random.choice(TOPICS))
        case 1:
            return grow_topic(random.choice(TOPICS), random.randrange(5))
        case _:
            return create_topics(**{random.choice(["orders", "bills", "mail"]): random.choice([1, 2, 3])})
