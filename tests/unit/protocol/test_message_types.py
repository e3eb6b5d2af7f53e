"""The message types match what the broker reads and writes, and handlers are annotated with them."""

from __future__ import annotations

import ast
import inspect
from collections import defaultdict
from functools import cache
from typing import Any
from uuid import UUID

import pytest
from tests.unit.protocol import message_types

from sharecore.broker.handlers import SERVED, TELEMETRY
from sharecore.broker.served import Served
from sharecore.protocol import ApiKey, codec, read_header, schema

SIMPLE = {"int": int, "str": str, "bytes": bytes, "bool": bool, "float": float, "UUID": UUID}
OFFERED: dict[ApiKey, Served] = SERVED | TELEMETRY


@cache
def stub() -> dict[str, dict[str, ast.expr]]:
    """Return the annotation of each field, by class."""
    classes = [
        node for node in ast.parse(message_types.TARGET.read_text()).body if isinstance(node, ast.ClassDef)
    ]
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


def filled(struct: schema.Struct, *, nulls: bool) -> dict[str, object]:
    """Return a message with a value in each field, or None if allowed."""
    return {field.name: _filled(field, nulls=nulls) for field in struct.fields}


def _filled(field: schema.FieldSpec, *, nulls: bool) -> object:
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
        "uuid": None if nulls else UUID(int=1),
    }.get(field.kind, 1)
    if field.struct is not None:
        value = filled(field.struct, nulls=nulls)
    return [value] if field.array else value


def check(value: Any, annotation: ast.expr, seen: dict[str, set[str]], where: str) -> None:
    """Compare a value with its annotation, and record the fields of the tuples in it."""
    text = ast.unparse(annotation)
    if isinstance(annotation, ast.BinOp):
        if value is not None:
            check(value, annotation.left, seen, where)
    elif isinstance(annotation, ast.Subscript) and text.startswith("Sequence["):
        # a field missing from the version is an empty tuple
        assert isinstance(value, list) or value == (), where
        for each in value:
            check(each, annotation.slice, seen, where)
    elif text == "tuple[int, int, bytes]":
        assert type(value) is tuple, where
        assert list(map(type, value)) == [int, int, bytes], where
    elif text in SIMPLE:
        assert type(value) is SIMPLE[text], f"{where}: {value!r} is no {text}"
    else:
        fields = stub()[text]
        seen[text].update(value._fields)
        assert set(value._fields) <= fields.keys(), where
        for name in fields:
            # fields of older versions only are missing
            if hasattr(value, name):
                check(getattr(value, name), fields[name], seen, f"{where}.{name}")


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
