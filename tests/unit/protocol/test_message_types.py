"""The message types match what the broker reads and writes, and handlers are annotated with them."""

from __future__ import annotations

import ast
import inspect
from collections import defaultdict
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.unit.protocol import message_types

from sharecore.broker.handlers import SERVED, TELEMETRY
from sharecore.broker.served import Served
from sharecore.coordinator.consumer.group import _REPLAYS as consumer_replays
from sharecore.coordinator.share.group import _REPLAYS as share_replays
from sharecore.protocol import ApiKey, codec, read_header, schema

SIMPLE = {"int": int, "str": str, "bytes": bytes, "bool": bool, "float": float, "UUID": UUID}
OFFERED: dict[ApiKey, Served] = SERVED | TELEMETRY


@cache
def stub(path: Path = message_types.TARGET) -> dict[str, dict[str, ast.expr]]:
    """Return the annotation of each field, by class."""
    classes = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)]
    return {
        each.name: {
            line.target.id: line.annotation
            for line in each.body
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
        }
        for each in classes
    }


def test_the_checked_in_file_is_written_from_the_schemas() -> None:
    assert message_types.TARGET.read_text() == message_types.write(), (
        "python -m tests.unit.protocol.message_types"
    )


def test_the_types_of_answers_of_other_brokers_are_written_from_the_schemas() -> None:
    assert message_types.RECEIVED.read_text() == message_types.write_received(), (
        "python -m tests.unit.protocol.message_types"
    )


def test_the_types_of_records_are_written_from_their_schemas() -> None:
    assert message_types.RECORDS.read_text() == message_types.write_records(), (
        "python -m tests.unit.protocol.message_types"
    )


def filled(struct: schema.Struct, *, nulls: bool, ids: bool = False) -> dict[str, object]:
    """Return a message with a value in each field, or None where that is allowed.

    Args:
        ids: ids are never zero, which is read as None.
    """
    return {field.name: _filled(field, nulls=nulls, ids=ids) for field in struct.fields}


def _filled(field: schema.FieldSpec, *, nulls: bool, ids: bool) -> object:
    if nulls and field.nullable:
        return None
    if field.array and field.kind == "int8":
        return b"\x01"
    value: object = {
        "string": "a",
        "bytes": b"a",
        "records": b"a",
        "bool": True,
        "float64": 1.5,
        "uuid": None if nulls and not ids else UUID(int=1),
    }.get(field.kind, 1)
    if field.struct is not None:
        value = filled(field.struct, nulls=nulls, ids=ids)
    return [value] if field.array else value


def check(
    value: Any,
    annotation: ast.expr,
    seen: dict[str, set[str]],
    where: str,
    path: Path = message_types.TARGET,
) -> None:
    """Compare a value with its annotation in a stub, and note the fields of the tuples in it."""
    text = ast.unparse(annotation)
    if isinstance(annotation, ast.BinOp):
        if value is not None:
            check(value, annotation.left, seen, where, path)
    elif isinstance(annotation, ast.Subscript) and text.startswith("Sequence["):
        # a field missing from the version is an empty tuple
        assert isinstance(value, list) or value == (), where
        for each in value:
            check(each, annotation.slice, seen, where, path)
    elif text == "tuple[int, int, bytes]":
        assert type(value) is tuple, where
        assert list(map(type, value)) == [int, int, bytes], where
    elif text in SIMPLE:
        assert type(value) is SIMPLE[text], f"{where}: {value!r} is no {text}"
    else:
        fields = stub(path)[text]
        seen[text].update(value._fields)
        assert set(value._fields) <= fields.keys(), where
        for name in fields:
            # fields of older versions only are missing
            if hasattr(value, name):
                check(getattr(value, name), fields[name], seen, f"{where}.{name}", path)


@pytest.mark.heavy
@pytest.mark.parametrize("api", OFFERED)
def test_requests_have_the_fields_of_their_type(api: ApiKey) -> None:
    name = message_types.messages()[api][0].unique_name
    seen: dict[str, set[str]] = defaultdict(set)
    for version in message_types.served()[api]:
        messages = codec(api, version)
        for nulls in (False, True):
            frame = messages.write_request(1, None, filled(messages.request.struct, nulls=nulls))[4:]
            request = messages.read_request(frame, read_header(frame))
            check(request, ast.Name(name), seen, f"{name} v{version}")
    assert seen, api
    for each, fields in seen.items():
        assert fields == stub()[each].keys(), each


@pytest.mark.parametrize("api", OFFERED)
def test_answers_have_the_fields_of_their_type(api: ApiKey) -> None:
    seen: dict[str, set[str]] = defaultdict(set)
    response = message_types.messages()[api][1]
    for version in message_types.served()[api]:
        collect(codec(api, version).response.struct, response, seen)
    for name, fields in seen.items():
        assert fields == stub()[name].keys(), name


@pytest.mark.heavy
@pytest.mark.parametrize("api", OFFERED)
def test_answers_of_other_brokers_have_the_fields_of_their_type(api: ApiKey) -> None:
    name = message_types.messages()[api][1].unique_name
    seen: dict[str, set[str]] = defaultdict(set)
    for version in message_types.served()[api]:
        messages = codec(api, version)
        for nulls in (False, True):
            answer = filled(messages.response.struct, nulls=nulls)
            frame = b"".join(messages.write_response(1, answer))[4:]
            _, read = messages.read_response(frame)
            check(read, ast.Name(name), seen, f"{name} v{version}", message_types.RECEIVED)
    for each, fields in seen.items():
        assert fields == stub(message_types.RECEIVED)[each].keys(), each


def collect(struct: schema.Struct, made: message_types.Made, seen: dict[str, set[str]]) -> None:
    for field in struct.fields:
        seen[made.unique_name].add(field.name)
        inner = made.fields[field.name][0][1]
        if field.struct is not None and inner is not None:
            collect(field.struct, inner, seen)


@pytest.mark.parametrize("api", [api for api, served in OFFERED.items() if not served.is_factory])
def test_handlers_have_the_types_of_their_api(api: ApiKey) -> None:
    request, response = (f"messages.{each.unique_name}" for each in message_types.messages()[api])
    signature = inspect.signature(OFFERED[api].load())
    assert signature.parameters["request"].annotation == request
    assert signature.return_annotation in (response, f"Result[{response}]")


@pytest.mark.parametrize("name", message_types.records())
def test_values_of_records_have_the_fields_of_their_type(name: str) -> None:
    schemas = message_types.records()[name]
    seen: dict[str, set[str]] = defaultdict(set)
    for each in schemas:
        for nulls in (False, True):
            value = each.read(each.pack(filled(each.struct, nulls=nulls, ids=True)))
            where = f"{name} v{each.number}"
            check(
                value, ast.Name(message_types.record(schemas).unique_name), seen, where, message_types.RECORDS
            )
    assert seen
    for struct, fields in seen.items():
        assert fields == stub(message_types.RECORDS)[struct].keys(), struct


@pytest.mark.parametrize(
    ("group", "replays"),
    [("Consumer", consumer_replays), ("Share", share_replays)],
    ids=["consumer", "share"],
)
def test_groups_replay_the_values_of_their_types(group: str, replays: dict[IntEnum, Any]) -> None:
    schemas = message_types.records()
    for kind, replay in replays.items():
        made = message_types.record(schemas[f"{group}Group{kind.name}Value"])
        annotation = list(inspect.signature(replay).parameters.values())[-1].annotation
        assert annotation == f"values.{made.unique_name} | None"
