"""Random messages that fit a schema."""

from __future__ import annotations

import random
import uuid
from collections.abc import Sequence
from typing import Any

from sharecore.protocol.schema import FieldSpec, Struct

STRINGS = ["", "a", "topic-0", "g", "é", "__consumer_offsets", "x" * 300, "1"]
_EDGES = [-1, 0, 1, 2, -2, 2**31 - 1]


def random_message(
    struct: Struct,
    rnd: random.Random,
    *,
    strings: Sequence[str] = STRINGS,
    topic_ids: Sequence[uuid.UUID] = (),
) -> dict[str, Any]:
    """Return a message for the writer of `struct`: fields in any combination, numbers near their edges."""
    return {
        field.name: _value(field, rnd, strings, topic_ids)
        for field in struct.fields
        if field.tag is None or rnd.random() < 0.5
    }


def _value(
    field: FieldSpec, rnd: random.Random, strings: Sequence[str], topic_ids: Sequence[uuid.UUID]
) -> Any:
    if field.nullable and rnd.random() < 0.15:
        return None
    if not field.array:
        return _single(field, rnd, strings, topic_ids)
    if field.kind == "int8":
        return rnd.randbytes(rnd.randrange(3))
    return [_single(field, rnd, strings, topic_ids) for _ in range(rnd.choice([0, 1, 1, 2]))]


def _single(
    field: FieldSpec, rnd: random.Random, strings: Sequence[str], topic_ids: Sequence[uuid.UUID]
) -> Any:
    if field.struct is not None:
        return random_message(field.struct, rnd, strings=strings, topic_ids=topic_ids)
    match field.kind:
        case "string":
            return rnd.choice(strings)
        case "bytes" | "records":
            return rnd.randbytes(rnd.choice([0, 1, 61, 100]))
        case "bool":
            return rnd.random() < 0.5
        case "uuid":
            return rnd.choice([None, uuid.UUID(int=rnd.getrandbits(128) | 1), *topic_ids])
        case "float64":
            return rnd.random()
    bits = {
        "int8": 8,
        "uint8": 8,
        "int16": 16,
        "uint16": 16,
        "error_code": 16,
        "int64": 64,
        "uint64": 64,
    }.get(field.kind, 32)
    low, high = (0, 2**bits - 1) if field.kind.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    number = rnd.choice([*_EDGES, low, high, rnd.randint(low, high), rnd.randrange(100)])
    return min(max(number, low), high)
