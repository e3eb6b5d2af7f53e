"""Our compiled readers and writers compared with kio's serializers, for every message and version."""

from __future__ import annotations

import dataclasses
import datetime
import io
import random
import typing
import uuid
from importlib import import_module
from typing import Any

import pytest
from kio.schema import index
from kio.schema.errors import ErrorCode
from kio.serial import entity_writer
from kio.static.constants import EntityType

from sharecore.protocol import ApiKey, MalformedMessage, codec, read_header, schema
from sharecore.protocol.layout import compile_layout, read_message

STRINGS = ["", "a", "é" * 70, "x" * 300]


def kio_class(key: int, version: int, *, response: bool) -> Any:
    kind: Any = EntityType.response if response else EntityType.request
    module, _, name = index.schema_name_map[index.api_key_map[key]][version][kind].partition(":")
    return getattr(import_module(module), name)


def build(entity: Any, rnd: random.Random) -> Any:
    """Return a random message as a kio object, with every tagged field set."""
    return entity(**{field.name: value_of(field, rnd) for field in dataclasses.fields(entity)})


def value_of(field: Any, rnd: random.Random) -> Any:
    inner, nullable = schema._without_none(field.type)
    if typing.get_origin(inner) is tuple:
        if nullable and rnd.random() < 0.2:
            return None
        inner, _ = schema._without_none(typing.get_args(inner)[0])
        count = 130 if rnd.random() < 0.01 else rnd.randrange(4)
        return tuple(single(inner, field, rnd, nullable=False) for _ in range(count))
    return single(inner, field, rnd, nullable=nullable)


def single(inner: Any, field: Any, rnd: random.Random, *, nullable: bool) -> Any:
    kind = field.metadata.get("kafka_type", "struct")
    if nullable and kind in ("struct", "string", "bytes", "records") and rnd.random() < 0.2:
        return None
    match kind:
        case "struct":
            return build(inner, rnd)
        case "string":
            return rnd.choice(STRINGS)
        case "bytes" | "records":
            return rnd.randbytes(rnd.choice([0, 1, 200]))
        case "bool":
            return rnd.random() < 0.5
        case "uuid":
            return uuid.UUID(int=rnd.getrandbits(128) | 1)
        case "error_code":
            return rnd.choice(list(ErrorCode))
        case "float64":
            return rnd.random()
        case "timedelta_i32" | "timedelta_i64":
            return datetime.timedelta(milliseconds=rnd.randrange(10**6))
        case "datetime_i64":
            return datetime.datetime.fromtimestamp(rnd.randrange(10**9), datetime.timezone.utc)
    bits = int(kind.lstrip("uint"))
    return rnd.getrandbits(bits) - (0 if kind.startswith("u") else 1 << bits - 1)


def as_mapping(value: Any) -> Any:
    """Convert a kio message to a mapping for our writers."""
    if dataclasses.is_dataclass(value):
        out = {}
        for field in dataclasses.fields(value):
            kind = field.metadata.get("kafka_type", "")
            suffix = "_ms" if kind.startswith(("timedelta", "datetime")) else ""
            item = getattr(value, field.name)
            if kind == "int8" and isinstance(item, tuple):
                item = bytes(number & 0xFF for number in item)
            out[field.name + suffix] = as_mapping(item)
        return out
    if isinstance(value, tuple):
        return [as_mapping(item) for item in value]
    if isinstance(value, datetime.timedelta):
        return round(value.total_seconds() * 1000)
    if isinstance(value, datetime.datetime):
        return round(value.timestamp() * 1000)
    return value.value if isinstance(value, ErrorCode) else value


def as_read(value: Any, struct: schema.Struct) -> Any:
    """Convert a message read by our reader to a mapping."""
    out = {}
    for place, field in enumerate(struct.fields):
        item = value[place]
        if field.struct is not None and item is not None:
            item = (
                [as_read(one, field.struct) for one in item] if field.array else as_read(item, field.struct)
            )
        out[field.name] = list(item) if isinstance(item, tuple) else item
    return out


def without_default_structs(value: Any, struct: schema.Struct) -> Any:
    """kio omits a tagged struct that equals its default; we read that as None."""
    for field in struct.fields:
        item = value[field.name]
        if field.struct is None or item is None:
            continue
        for one in item if field.array else [item]:
            without_default_structs(one, field.struct)
        if (
            field.tag is not None
            and not field.array
            and item == {f.name: f.default for f in field.struct.fields}
        ):
            value[field.name] = None
    return value


@pytest.mark.heavy
@pytest.mark.parametrize("key", sorted(index.api_key_map), ids=lambda key: index.api_key_map[key])
def test_every_version_reads_and_writes_what_kio_does(key: int) -> None:
    rnd = random.Random(key)
    for version, kinds in index.schema_name_map[index.api_key_map[key]].items():
        for response in (False, True):
            if (EntityType.response if response else EntityType.request) not in kinds:
                continue
            entity = kio_class(key, version, response=response)
            struct = schema.load(key, version, response=response).struct
            newest = schema.load(key, schema.newest_version(key, response=response), response=response).struct
            layout = compile_layout(struct, newest)
            for _ in range(8):
                message = build(entity, rnd)
                buffer = io.BytesIO()
                entity_writer(entity)(buffer, message)
                raw = buffer.getvalue()
                value, end = layout.read(raw, 0)
                assert end == len(raw)
                # fields unknown to kio are missing from its messages
                own = {} if response else {f.name: f.default for f in schema.OF_OUR_OWN.get(key, ())}
                expected = without_default_structs(as_mapping(message) | own, struct)
                assert as_read(value, struct) == expected
                given = {name: item for name, item in expected.items() if item is not None}
                again, _ = layout.read(layout.write(given), 0)
                nulls = {f.name for f in struct.fields if f.nullable and f.default is not None}
                if not nulls & {name for name, item in expected.items() if item is None}:
                    assert as_read(again, struct) == expected


@pytest.mark.parametrize("api", schema.OF_OUR_OWN)
def test_fields_of_our_own_are_passed_over_by_who_does_not_know_them(api: ApiKey) -> None:
    messages = codec(api, 0)
    told = {"group_id": "g", "topics": [], "coordinator_epoch": 5}
    frame = messages.write_request(1, None, told)[4:]
    assert messages.read_request(frame, read_header(frame)).coordinator_epoch == 5
    frame = messages.write_request(1, None, {"group_id": "g", "topics": []})[4:]
    assert messages.read_request(frame, read_header(frame)).coordinator_epoch == -1
    struct = messages.request.struct
    kafkas = dataclasses.replace(struct, fields=struct.fields[: -len(schema.OF_OUR_OWN[api])])
    written = messages.request_layout.write(told)
    assert compile_layout(kafkas).read(written, 0) == (("g", []), len(written))


def test_no_bytes_do_more_than_be_refused() -> None:
    rnd = random.Random(7)
    for key, version in [
        (ApiKey.PRODUCE, 13),
        (ApiKey.PRODUCE, 3),
        (ApiKey.METADATA, 4),
        (ApiKey.SHARE_FETCH, 2),
    ]:
        layout = codec(key, version).request_layout
        for _ in range(3000):
            raw = rnd.randbytes(rnd.randrange(80))
            try:
                read_message(layout, raw, 0)
            except MalformedMessage:
                continue


@pytest.mark.parametrize("count", [2**31 - 1, 10**6, 11])
def test_an_array_cannot_claim_more_elements_than_there_are_bytes(count: int) -> None:
    layout = codec(ApiKey.METADATA, 4).request_layout
    with pytest.raises(MalformedMessage):
        read_message(layout, count.to_bytes(4, "big") + b"\x00\x01a" * 3, 0)


def test_every_truncation_of_a_request_is_refused() -> None:
    messages = codec(ApiKey.SHARE_FETCH, 2)
    topic = {
        "topic_id": uuid.UUID(int=5),
        "partitions": [{"partition_index": 1, "acknowledgement_batches": [{}]}],
    }
    frame = messages.write_request(3, "client", {"group_id": "g", "member_id": "m", "topics": [topic]})[4:]
    request = messages.read_request(frame, read_header(frame))
    assert request.topics[0].topic_id == uuid.UUID(int=5)
    for size in range(len(frame)):
        with pytest.raises(MalformedMessage):
            messages.read_request(frame[:size], read_header(frame[:size]))


def test_an_acknowledgement_batch_is_the_tuple_that_the_engine_takes() -> None:
    messages = codec(ApiKey.SHARE_ACKNOWLEDGE, 2)
    batch = {"first_offset": 5, "last_offset": 7, "acknowledge_types": b"\x01\x02\x03"}
    partition = {"partition_index": 0, "acknowledgement_batches": [batch]}
    frame = messages.write_request(1, None, {"topics": [{"partitions": [partition]}]})[4:]
    request = messages.read_request(frame, read_header(frame))
    assert request.topics[0].partitions[0].acknowledgement_batches == [(5, 7, b"\x01\x02\x03")]


def test_older_versions_show_newer_fields_with_their_defaults() -> None:
    messages = codec(ApiKey.FETCH, 4)
    frame = messages.write_request(1, "c", {"max_wait_ms": 500, "topics": [{"topic": "t"}]})[4:]
    request = messages.read_request(frame, read_header(frame))
    assert (request.max_wait_ms, request.session_id, request.session_epoch, request.rack_id) == (
        500,
        0,
        -1,
        "",
    )


def test_a_name_that_no_version_has_is_found() -> None:
    messages = codec(ApiKey.METADATA, 1)
    assert messages.misspelt(
        {"cluster_id": "x", "brokers": [{"hots": "h"}], "topics": [{"topic_id": None}]}
    ) == ["brokers.hots"]


def test_large_parts_of_an_answer_are_not_copied() -> None:
    records = bytes(200_000)
    partition = {"records": records, "aborted_transactions": None}
    parts = codec(ApiKey.FETCH, 12).write_response(
        9, {"responses": [{"topic": "t", "partitions": [partition]}]}
    )
    assert any(part is records for part in parts)
    frame = b"".join(parts)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    correlation_id, response = codec(ApiKey.FETCH, 12).read_response(frame[4:])
    assert correlation_id == 9
    assert response.responses[0].partitions[0].records == records


def test_a_struct_may_be_a_tuple_of_its_fields() -> None:
    messages = codec(ApiKey.SHARE_FETCH, 2)
    partition = {"partition_index": 3, "records": b"r", "current_leader": {"leader_id": 7, "leader_epoch": 1}}
    named = {"first_offset": 5, "last_offset": 8, "delivery_count": 2}
    as_dicts = [{"topic_id": uuid.UUID(int=9), "partitions": [partition | {"acquired_records": [named]}]}]
    as_tuples = [
        (uuid.UUID(int=9), [partition | {"acquired_records": [(5, 8, 2)], "current_leader": (7, 1)}])
    ]
    written = messages.write_response(1, {"responses": as_dicts})
    assert messages.write_response(1, {"responses": as_tuples}) == written
    assert messages.misspelt({"responses": as_tuples}) == []
    as_tuples[0][1][0]["record"] = b""
    assert messages.misspelt({"responses": as_tuples}) == ["responses.partitions.record"]
    # the message read, with a value for each tagged field
    read = messages.read_response(b"".join(written)[4:])[1]
    assert messages.write_response(1, {"responses": read.responses}) == written
    for wrong in [(5, 8), (5, 8, 2, 0), ()]:
        with pytest.raises(TypeError, match=f"a tuple of {len(wrong)} values for a struct of 3 fields"):
            messages.write_response(
                1, {"responses": [{"partitions": [{"acquired_records": [wrong], "records": b""}]}]}
            )
