"""Requests whose bytes were changed: headers that name what is not there, bodies cut short, lengths that lie.

Only requests that look: what a changed byte makes of one that writes would outlive its script.
"""

from __future__ import annotations

from random import Random

from tests.differential.wire.families.common import create_topics, produce, weighted
from tests.differential.wire.names import NO_ID
from tests.differential.wire.script import Ask, Close, Fields, Scenario, Stage

from sharecore.protocol import ApiKey
from sharecore.protocol.schema import versions

_GROUPS = {"groups": ["~plain", "~shop"], "include_authorized_operations": False}
_KINDS = {"group_ids": ["~shop"], "include_authorized_operations": True}
_LOOKS: dict[str, Fields] = {
    "API_VERSIONS": {"client_software_name": "wire", "client_software_version": "1.0"},
    "METADATA": {"topics": [{"topic_id": NO_ID, "name": "~orders"}], "allow_auto_topic_creation": False},
    "FIND_COORDINATOR": {"key_type": 0, "key": "~plain", "coordinator_keys": ["~plain", "~shop"]},
    "DESCRIBE_GROUPS": _GROUPS,
    "SHARE_GROUP_DESCRIBE": _KINDS,
    "CONSUMER_GROUP_DESCRIBE": _KINDS,
    "OFFSET_FETCH": {
        "group_id": "~plain",
        "topics": [{"name": "~orders", "partition_indexes": [0, 1]}],
        "groups": [{"group_id": "~plain", "member_id": None, "member_epoch": -1, "topics": None}],
        "require_stable": True,
    },
    "LIST_OFFSETS": {
        "replica_id": -1,
        "isolation_level": 0,
        "timeout_ms": 1000,
        "topics": [{"name": "~orders", "partitions": [{"partition_index": 0, "timestamp": -1}]}],
    },
    "OFFSET_FOR_LEADER_EPOCH": {
        "replica_id": -1,
        "topics": [{"topic": "~orders", "partitions": [{"partition": 0, "leader_epoch": 0}]}],
    },
    "FETCH": {
        "replica_id": -1,
        "max_wait_ms": 0,
        "min_bytes": 0,
        "max_bytes": 1 << 20,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "topics": [
            {
                "topic": "~orders",
                "topic_id": "#orders",
                "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}],
            }
        ],
        "forgotten_topics_data": [],
        "rack_id": "r",
    },
    "DESCRIBE_TRANSACTIONS": {"transactional_ids": ["~ann"]},
    "DESCRIBE_PRODUCERS": {"topics": [{"name": "~orders", "partition_indexes": [0, 1]}]},
    "DESCRIBE_LOG_DIRS": {"topics": [{"topic": "~orders", "partitions": [0]}]},
    "DESCRIBE_SHARE_GROUP_OFFSETS": {"groups": [{"group_id": "~shop", "topics": None}]},
    "HEARTBEAT": {"group_id": "~plain", "generation_id": 1, "member_id": "~ann", "group_instance_id": None},
}
_HEADER_BYTES = 14
"""Of API, version, correlation id and the client's name; newer versions have one more."""
_CLIENT_AT, _CLIENT_BYTES = 8, 6
_KEYS = [-1, -32768, 4, 7, 33, 52, 53, 54, 55, 58, 59, 62, 63, 67, 70, 73, 82, 95, 96, 1000, 32767]
"""APIs that brokers or controllers have among themselves, or that nobody has."""
_ODD = ["00", "01", "02", "05", "7f", "000000", "0000000000", "7f7f7f7f"]
"""Nothing that is not ASCII: ours hangs up on names that are no UTF-8."""
_STEPS = {
    "key": 3,
    "version": 4,
    "client": 3,
    "cut": 6,
    "add": 4,
    "odd": 14,
    "tags": 5,
    "size": 2,
    "right": 2,
    "correlation": 1,
}


def scenario(random: Random, stage: Stage) -> Scenario:
    """A topic with a record that is looked at by clients that cannot write."""
    yield create_topics(orders=2)
    yield produce("orders", 0, ["first"])
    for _ in range(random.randrange(25, 60)):
        yield _ask(random, stage)
        yield Close("spoilt")


def _ask(random: Random, stage: Stage) -> Ask:
    api = random.choice(list(_LOOKS))
    offered = [each for each in versions(ApiKey[api], response=False) if stage.offers(api, each)]
    version = random.choice(offered)
    fields = _LOOKS[api]
    changes: list[Fields] = []
    match weighted(random, _STEPS):
        case "key":
            changes = [{"at": 0, "hex": _int16(random.choice(_KEYS))}]
        case "version":
            # ours has more versions than 4.3.1
            wrong = random.choice([-1, -32768, offered[-1] + 2, offered[-1] + 3, 100, 32767])
            if random.random() < 0.4:
                api = "API_VERSIONS"
                fields = _LOOKS[api]
            if api == "API_VERSIONS":
                version = 3  # with the header of newer versions
            changes = [{"at": 2, "hex": _int16(wrong)}]
        case "client":
            changes = _client(random)
        case "cut":
            changes = [{"cut": random.choice([1, 1, 2, 3, 4, 5, 8, 16, 30])}]
        case "add":
            changes = [{"add": random.choice(["00", "ff", "0000", "00" * 20, "01", "ff" * 9])}]
        case "odd":
            # after the replica id, since a request with another replica id is not served
            at = random.randrange(_HEADER_BYTES + 5, _HEADER_BYTES + 60)
            changes = [{"at": at, "hex": random.choice(_ODD)}]
        case "tags":
            # the last byte of a Fetch is its empty list of tagged fields
            api, fields = "FETCH", _LOOKS["FETCH"]
            version = random.choice([each for each in versions(ApiKey.FETCH, response=False) if each >= 12])
            changes = [{"cut": 1}, {"add": _tags(random, version)}]
        case "size":
            changes = [
                {"size": random.choice([-1, -(2**31), 0, 1, 2, 3, 4, 7, 8, 9, 2**31 - 1, 104_857_601])}
            ]
        case "correlation":
            changes = [{"at": 4, "hex": random.choice(["ffffffff", "80000000", "00000000", "7fffffff"])}]
    return Ask(api, version, fields, "spoilt", spoilt=changes)


def _tags(random: Random, version: int) -> str:
    """Tagged fields of a Fetch, with sizes that lie."""
    known = {"00": "0363657e"} | ({"01": "ffffffff" + "ff" * 8 + "00"} if version >= 15 else {})
    tags = [random.choice([*known, *known, "09"]) for _ in range(random.choice([1, 1, 2, 3]))]
    section = f"{len(tags):02x}"
    for tag in tags:
        held = known.get(tag, "7f7f")
        size = len(held) // 2 + random.choice([0, 0, -2, -1, 1, 5, 60])
        section += tag + f"{max(0, size):02x}" + held
    return section + random.choice(["", "", "00" * 8])


def _client(random: Random) -> list[Fields]:
    """Another name of the client, or none."""
    name = random.choice(["ffff", "0000", "000161", "00020000", "fffe", "8000", "7fff", "0002c3a9"])
    return [
        {"at": _CLIENT_AT, "hex": name[:4]},
        {"from": _CLIENT_AT + 2, "drop": _CLIENT_BYTES - 2},
        {"insert": _CLIENT_AT + 2, "hex": name[4:]},
    ]


def _int16(value: int) -> str:
    return value.to_bytes(2, "big", signed=True).hex()
