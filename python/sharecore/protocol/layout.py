"""The layout of a message, compiled from its schema, which decodes and encodes the message.

What is read is a named tuple a struct. kio's own readers give objects that cost more, and reserve memory for
as many elements as an array claims to have, so that a dozen hostile bytes end the process; here every length
is held against the bytes that are there.
"""

from __future__ import annotations

from collections import namedtuple
from functools import cache
from typing import Any

from sharecore._core import Layout
from sharecore._core import skip_tagged_fields as _skip_tagged_fields
from sharecore.protocol.malformed import MalformedMessage
from sharecore.protocol.schema import Struct

_ACKNOWLEDGEMENT_BATCH = [
    ("first_offset", "int64", False),
    ("last_offset", "int64", False),
    ("acknowledge_types", "int8", True),
]


def read_message(layout: Layout, data: bytes, offset: int) -> Any:
    """Read a message that takes the rest of `data`; bytes after it are left alone, as Kafka does.

    Raises:
        MalformedMessage: the bytes end too early, or a length or a string in them is impossible.
    """
    try:
        return layout.read(data, offset)[0]
    except ValueError as error:
        raise MalformedMessage(str(error)) from error


def skip_tagged_fields(data: bytes, offset: int) -> int:
    """Skips a section of tagged fields; returns the offset behind it.

    Raises:
        MalformedMessage: they reach past the end.
    """
    try:
        return _skip_tagged_fields(data, offset)
    except ValueError as error:
        raise MalformedMessage(str(error)) from error


def is_acknowledgement_batch(struct: Struct) -> bool:
    """Return whether a struct is read as a plain tuple."""
    return [(each.name, each.kind, each.array) for each in struct.fields] == _ACKNOWLEDGEMENT_BATCH


@cache
def compile_layout(struct: Struct, newest: Struct | None = None) -> Layout:
    """Compiles the layout of `struct`; fields that only `newest` has are readable with their defaults."""
    return Layout(_spec(struct, newest), struct.name, struct.version)


def _spec(
    struct: Struct, newest: Struct | None
) -> tuple[type[tuple[object, ...]] | None, bool, tuple[object, ...]]:
    fields = []
    for field in struct.fields:
        newer = newest.field(field.name) if newest is not None else None
        inner = (
            None if field.struct is None else _spec(field.struct, newer.struct if newer is not None else None)
        )
        fields.append((field.name, field.kind, field.array, field.nullable, field.tag, field.default, inner))
    return _record_class(struct, newest), struct.flexible, tuple(fields)


def _record_class(struct: Struct, newest: Struct | None) -> type[tuple[object, ...]] | None:
    if is_acknowledgement_batch(struct):
        return None  # a plain tuple, as the engine expects: a request may have thousands
    # a class per message schema, which mypy cannot see in the source
    base = namedtuple(struct.name, [field.name for field in struct.fields])  # type: ignore[misc]
    names: dict[str, object] = {"__slots__": ()}
    for field in newest.fields if newest is not None else ():
        if struct.field(field.name) is None:
            names[field.name] = field.default
    return type(struct.name, (base,), names)
