"""Record schemas of the coordinator topics, declared as in Kafka and compiled like its messages."""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct as Packer
from struct import error as PackError
from typing import Any

from sharecore.protocol.layout import compile_layout, read_message
from sharecore.protocol.malformed import MalformedMessage
from sharecore.protocol.schema import FieldSpec, Struct

_VERSION = Packer(">h")
_ZEROS: dict[str, object] = {"string": "", "bytes": b"", "uuid": None, "bool": False}
_UNSET: object = object()


def field(
    name: str,
    kind: str | tuple[FieldSpec, ...],
    *,
    array: bool = False,
    nullable: bool = False,
    tag: int | None = None,
    default: object = _UNSET,
) -> FieldSpec:
    """Return the specification of a record field.

    Args:
        kind: a kind of `FieldSpec`, or the fields of a struct.
        tag: tag number; a tagged field is written only when it differs from its default.
    """
    if default is _UNSET:
        default = () if array else None if nullable else _ZEROS.get(str(kind), 0)
    if isinstance(kind, tuple):
        # versions and flexibility come from the enclosing record
        return FieldSpec(name, "struct", Struct(name, 0, False, kind), array, nullable, tag, default)
    return FieldSpec(name, kind, None, array, nullable, tag, default)


def _with_version(name: str, version: int, *, flexible: bool, fields: tuple[FieldSpec, ...]) -> Struct:
    def inner(spec: FieldSpec) -> FieldSpec:
        if spec.struct is None:
            return spec
        struct = _with_version(spec.name, version, flexible=flexible, fields=spec.struct.fields)
        return FieldSpec(spec.name, spec.kind, struct, spec.array, spec.nullable, spec.tag, spec.default)

    return Struct(name, version, flexible, tuple(map(inner, fields)))


class UnknownRecord(ValueError):
    """The broker does not know the type or version of a record: another broker wrote it."""


class RecordSchema:
    """Read and write one kind of key or value with its two-byte prefix: the key's type or value's version.

    Args:
        name: the message's name in Kafka.
        number: the type of a key or the version of a value.
        fields: the fields in wire order.
        flexible: whether lengths are compact and fields may be tagged (a flexible version).
        defaults: values of fields that were added after this version.
    """

    def __init__(
        self, name: str, number: int, *fields: FieldSpec, flexible: bool = False, **defaults: object
    ) -> None:
        self.name = name
        self.number = number
        struct = _with_version(name, number, flexible=flexible, fields=fields)
        extra = tuple(field(key, "int64", default=value) for key, value in defaults.items())
        newest = Struct(name, number + 1, flexible, struct.fields + extra) if extra else None
        self._head = _VERSION.pack(number)
        self.struct = struct
        self._layout = compile_layout(struct, newest)

    def write(self, **values: object) -> bytes:
        """Return the bytes of a message with these fields."""
        return self.pack(values)

    def pack(self, values: Mapping[str, object]) -> bytes:
        """Return the bytes of a message with these fields."""
        return self._head + self._layout.write(values)

    def read(self, data: bytes) -> Any:
        """Return a named tuple of the fields.

        Raises:
            UnknownRecord: the bytes have another type or version.
            ValueError: the bytes are damaged.
        """
        if number_of(data) != self.number:
            raise UnknownRecord(f"{self.name} has number {number_of(data)}, not {self.number}")
        try:
            return read_message(self._layout, data, _VERSION.size)
        except MalformedMessage as error:
            raise ValueError(f"damaged {self.name}: {error}") from error


class VersionedSchema:
    """Read a value of any known version; write the newest version by default."""

    def __init__(self, *versions: RecordSchema) -> None:
        self.newest = versions[-1]
        self._versions = {schema.number: schema for schema in versions}

    def read(self, data: bytes) -> Any:
        """Return a named tuple of the fields.

        Raises:
            UnknownRecord: the version is unknown.
            ValueError: the bytes are damaged.
        """
        schema = self._versions.get(number_of(data))
        if schema is None:
            raise UnknownRecord(f"{self.newest.name} has unknown version {number_of(data)}")
        return schema.read(data)


def number_of(data: bytes) -> int:
    """Return the type of a key or the version of a value.

    Raises:
        ValueError: there are fewer than two bytes.
    """
    try:
        return int(_VERSION.unpack_from(data)[0])
    except PackError as error:
        raise ValueError("too short for a coordinator record") from error
