"""Produce of bytes that are no batch, or one that lies about itself; Fetch shows what was appended."""

from __future__ import annotations

import struct
from random import Random

from tests.differential.wire.families.common import create_topics, weighted
from tests.differential.wire.families.producing import write
from tests.differential.wire.script import Ask, Fields, Scenario, Stage

_HEADER_BYTES = 61
_RECORD_BYTES = 7
"""A record of a value of one byte, without a key and headers."""
_FIELDS: dict[str, tuple[int, str, list[int]]] = {
    "base offset": (0, ">q", [1, 5, -1, 2**62]),
    "length": (8, ">i", [-1, 0, 1, 13, 14, 48, 49, 50, 2**31 - 1]),
    "leader epoch": (12, ">i", [-1, 0, 7, -5]),
    "magic": (16, ">b", [0, 1, 3, 127, -1]),
    "checksum": (17, ">i", [0, 1, -1]),
    "attributes": (21, ">h", [5, 7, 8, 0x10, 0x20, 0x30, 0x40, 0x80, 0x100, -1]),
    "last offset": (23, ">i", [0, 1, 2, 3, -1, 2**31 - 1]),
    "base timestamp": (27, ">q", [0, -1, -2, 2**62]),
    "max timestamp": (35, ">q", [0, -1, -2, 2**62]),
    "producer id": (43, ">q", [0, -2, 2**40]),
    "producer epoch": (51, ">h", [0, -2]),
    "sequence": (53, ">i", [0, -2, 7]),
    "count": (57, ">i", [0, 1, 2, 3, -1, 2**31 - 1]),
    "record length": (61, ">b", [0, 1, 2, 10, 12, 14, 16, -2, -128, 127]),
    "record attributes": (62, ">b", [1, -1]),
    "record timestamp": (63, ">b", [1, 2, -128]),
    "record offset": (64, ">b", [1, 2, 4, -128]),
    "record key": (65, ">b", [0, 2, 3, 127, -128]),
    "record value": (66, ">b", [0, 1, 4, 127, -128]),
    "record headers": (68, ">b", [1, 2, 127, -128]),
}


def scenario(random: Random, stage: Stage) -> Scenario:
    """A partition that strange things are sent to."""
    yield create_topics(orders=2)
    for _ in range(random.randrange(15, 40)):
        if random.random() < 0.25:
            yield _look(random)
        else:
            yield _write(random)
    yield _look(random)


def _write(random: Random) -> Ask:
    return write([("orders", 0, _records(random))], version=random.choice([3, 7, 9, 12, 13, 13]))


def _records(random: Random) -> Fields:
    values = ["x"] * random.choice([1, 1, 2, 3])
    changes: list[Fields] = []
    match weighted(random, {"field": 12, "bytes": 3, "cut": 3, "add": 3, "nothing": 1, "zeros": 1}):
        case "field":
            names = random.sample(list(_FIELDS), random.choice([1, 1, 1, 2]))
            for name in names if "length" not in names else ["length"]:
                at, form, choices = _FIELDS[name]
                changes.append({"at": at, "hex": struct.pack(form, random.choice(choices)).hex()})
                if name != "checksum" and random.random() < 0.9:
                    changes.append({"sum": True})
        case "bytes":
            at = random.randrange(_HEADER_BYTES + _RECORD_BYTES)
            changes.append({"at": at, "hex": random.randbytes(1).hex()})
            if random.random() < 0.7:
                changes.append({"sum": True})
        case "cut":
            size = _HEADER_BYTES + len(values) * _RECORD_BYTES
            changes.append({"cut": random.choice([1, 2, 8, 20, size - 17, size - 16, size - 12, size - 5])})
        case "add":
            changes.append({"add": random.choice(["00", "ff" * 5, "00" * 12, "00" * 61, "00" * 100])})
        case "zeros":
            return {"hex": "00" * random.choice([1, 8, 11, 12, 16, 17, 18, 61, 70, 200])}
    return {"values": values, "spoilt": changes}


def _look(random: Random) -> Ask:
    partitions = [
        {"partition": index, "fetch_offset": 0, "partition_max_bytes": 1 << 20, "log_start_offset": -1}
        for index in (0, 1)
    ]
    fields = {
        "replica_id": -1,
        "max_wait_ms": 0,
        "min_bytes": 0,
        "max_bytes": 1 << 22,
        "isolation_level": random.choice([0, 1]),
        "topics": [{"topic": "~orders", "topic_id": "#orders", "partitions": partitions}],
        "forgotten_topics_data": [],
    }
    return Ask("FETCH", random.choice([4, 11, 12, 13, 17]), fields)
