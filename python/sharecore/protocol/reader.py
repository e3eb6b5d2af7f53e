"""Compiles a reader of one message from its schema.

kio's own reader reserves memory for as many elements as an array claims to have, so that a dozen hostile
bytes end the process; these readers check every length against the bytes that are there, and give lighter
objects: a named tuple a struct, whose fixed-size fields come from one `struct.unpack_from`.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from functools import cache
from itertools import groupby
from struct import Struct as Packer
from struct import error as PackError
from typing import Any
from uuid import UUID

from sharecore._core import read_acknowledgement_batches
from sharecore.protocol.malformed import MalformedMessage
from sharecore.protocol.schema import FIXED_FORMAT, FieldSpec, Struct

Reader = Callable[[bytes, int, int], tuple[Any, int]]

_READ_ERRORS = (PackError, IndexError, ValueError, MalformedMessage)
_UUID_CACHE_MAX = 4096
_uuids: dict[bytes, UUID | None] = {bytes(16): None}


def read_message(reader: Reader, data: bytes, offset: int) -> Any:
    """Reads a message that takes the rest of `data`; bytes after it are left alone, as Kafka does.

    Raises:
        MalformedMessage: the bytes end too early, or a length or a string in them is impossible.
    """
    try:
        return reader(data, offset, len(data))[0]
    except _READ_ERRORS as error:
        raise MalformedMessage(str(error) or type(error).__name__) from error


def read_uvarint(data: bytes, offset: int) -> tuple[int, int]:
    """Reads an unsigned varint of at most five bytes; gives the value and the offset behind it."""
    value = 0
    for shift in range(0, 35, 7):
        byte = data[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, offset
    raise MalformedMessage("varint is too long")


def skip_tagged_fields(data: bytes, offset: int) -> int:
    """Steps over a section of tagged fields; gives the offset behind it."""
    count, offset = read_uvarint(data, offset)
    for _ in range(count):
        _, offset = read_uvarint(data, offset)
        size, offset = read_uvarint(data, offset)
        offset += size
        if offset > len(data):
            raise MalformedMessage("tagged field reaches past the end")
    return offset


@cache
def compile_reader(struct: Struct, newest: Struct | None = None) -> Reader:
    """Compiles the reader of `struct`; fields that only `newest` has are readable with their defaults."""
    return _Source(struct, newest).compile()


def _to_uuid(raw: bytes) -> UUID | None:
    try:
        return _uuids[raw]
    except KeyError:
        if len(_uuids) >= _UUID_CACHE_MAX:
            _uuids.clear()
            _uuids[bytes(16)] = None
        return _uuids.setdefault(raw, UUID(bytes=raw))


def _record_class(struct: Struct, newest: Struct | None) -> Any:
    base = namedtuple(struct.name, [field.name for field in struct.fields])  # type: ignore[misc]
    names: dict[str, Any] = {"__slots__": ()}
    for field in newest.fields if newest is not None else ():
        if struct.field(field.name) is None:
            names[field.name] = field.default
    return type(struct.name, (base,), names)


def _minimum_size(struct: Struct) -> int:
    size = 0
    for field in struct.fields:
        if field.tag is None:
            size += Packer(">" + FIXED_FORMAT[field.kind]).size if field.fixed else 1
    return max(1, size)


class _Source:
    """The source text of one reader. Nested structs are written out in place: a call an element
    costs as much as the element itself.
    """

    def __init__(self, struct: Struct, newest: Struct | None) -> None:
        self.struct = struct
        self.newest = newest
        self.names: dict[str, Any] = {
            "uv": read_uvarint,
            "uid": _to_uuid,
            "skip": skip_tagged_fields,
            "Bad": MalformedMessage,
            "new": tuple.__new__,
            "Packer": Packer,
        }

    def compile(self) -> Reader:
        lines, value = self._struct(self.struct, self.newest, "v")
        body = "\n".join("    " + line for line in [*lines, f"return {value}, o"])
        exec(f"def read(b, o, end):\n{body}\n", self.names)
        reader: Reader = self.names["read"]
        return reader

    def _name(self, value: Any) -> str:
        name = f"x{len(self.names)}"
        self.names[name] = value
        return name

    def _struct(self, struct: Struct, newest: Struct | None, prefix: str) -> tuple[list[str], str]:
        """Code that reads a struct at `o`, and its value; its variables begin with `prefix`."""
        record = self._name(_record_class(struct, newest))
        plain = [field for field in struct.fields if field.tag is None]
        tagged = [field for field in struct.fields if field.tag is not None]
        if plain and not tagged and all(field.fixed and field.kind != "uuid" for field in plain):
            packer = Packer(">" + "".join(FIXED_FORMAT[field.kind] for field in plain))
            lines = [f"{prefix} = {self._name(packer.unpack_from)}(b, o)", f"o += {packer.size}"]
            return lines + (_SKIP_TAGS if struct.flexible else []), f"new({record}, {prefix})"
        lines = []
        for fixed, run in groupby(plain, key=lambda field: field.fixed):
            if fixed:
                lines += self._fixed_run(list(run), prefix)
                continue
            for field in run:
                lines += self._variable(field, struct.flexible, newest, prefix)
        if tagged:
            lines += self._tagged_fields(tagged, newest, prefix)
        elif struct.flexible:
            lines += _SKIP_TAGS
        values = "".join(f"{prefix}_{field.name}, " for field in struct.fields)
        return lines, f"new({record}, ({values}))"

    def _fixed_run(self, run: list[FieldSpec], prefix: str) -> list[str]:
        packer = Packer(">" + "".join(FIXED_FORMAT[field.kind] for field in run))
        targets = "".join(f"{prefix}_{field.name}, " for field in run)
        lines = [f"{targets}= {self._name(packer.unpack_from)}(b, o)", f"o += {packer.size}"]
        uuids = [f"{prefix}_{field.name}" for field in run if field.kind == "uuid"]
        return lines + [f"{target} = uid({target})" for target in uuids]

    def _variable(self, field: FieldSpec, flexible: bool, newest: Struct | None, prefix: str) -> list[str]:
        target = f"{prefix}_{field.name}"
        newer = newest.field(field.name) if newest is not None else None
        nested = newer.struct if newer is not None else None
        if field.kind == "struct" and not field.array:
            assert field.struct is not None
            lines, value = self._struct(field.struct, nested, target)
            lines.append(f"{target} = {value}")
            if not field.nullable:
                return lines
            return ["o += 1", "if b[o - 1] > 127:", f"    {target} = None", "else:", *_indented(lines)]
        length = self._length("array" if field.array else field.kind, flexible)
        body = self._array(field, target, flexible, nested) if field.array else self._bytes(field, target)
        if field.nullable or field.kind == "records":
            return [*length, "if n < 0:", f"    {target} = None", "else:", *_indented(body)]
        return [*length, "if n < 0:", f"    raise Bad('{field.name} must not be null')", *body]

    def _length(self, kind: str, flexible: bool) -> list[str]:
        """Code that leaves a length in `n`, below 0 for null."""
        if flexible:
            return ["n = b[o] - 1", "o += 1", "if n > 126:", "    n, o = uv(b, o - 1)", "    n -= 1"]
        packer = Packer(">h" if kind == "string" else ">i")
        return [f"n, = {self._name(packer.unpack_from)}(b, o)", f"o += {packer.size}"]

    def _bytes(self, field: FieldSpec, target: str) -> list[str]:
        decode = ".decode()" if field.kind == "string" else ""
        return [_bound(field, "n"), f"{target} = b[o:o + n]{decode}", "o += n"]

    def _array(self, field: FieldSpec, target: str, flexible: bool, newest: Struct | None) -> list[str]:
        if field.kind in FIXED_FORMAT:
            return self._fixed_array(field, target)
        if field.struct is None:
            read = self._name(_string_array_reader(flexible))
            return [_bound(field, "n"), f"{target}, o = {read}(b, o, end, n)"]
        if _is_acknowledgement_batches(field.struct):
            read = self._name(read_acknowledgement_batches)
            return [_bound(field, "n"), f"{target}, o = {read}(b, o, end, n)"]
        lines, value = self._struct(field.struct, newest, f"{target}_")
        return [
            _bound(field, f"n * {_minimum_size(field.struct)}"),
            f"{target} = []",
            f"add_{target} = {target}.append",
            "for _ in range(n):",
            *_indented(lines),
            f"    add_{target}({value})",
        ]

    def _fixed_array(self, field: FieldSpec, target: str) -> list[str]:
        code = FIXED_FORMAT[field.kind]
        size = Packer(">" + code).size
        if field.kind == "int8":
            read = "b[o:o + n]"
        elif field.kind == "uuid":
            read = "[uid(b[i:i + 16]) for i in range(o, o + 16 * n, 16)]"
        else:
            read = f"list(Packer('>%d{code}' % n).unpack_from(b, o))"
        return [_bound(field, f"n * {size}"), f"{target} = {read}", f"o += n * {size}"]

    def _tagged_fields(self, tagged: list[FieldSpec], newest: Struct | None, prefix: str) -> list[str]:
        lines = [f"{prefix}_{field.name} = {self._name(field.default)}" for field in tagged]
        cases: list[str] = []
        for field in tagged:
            read = (
                self._fixed_run([field], prefix)
                if field.fixed
                else self._variable(field, flexible=True, newest=newest, prefix=prefix)
            )
            cases += [f"if tag_{prefix} == {field.tag}:", *_indented(read)]
        return [
            *lines,
            f"tags_{prefix}, o = uv(b, o)",
            f"for _ in range(tags_{prefix}):",
            f"    tag_{prefix}, o = uv(b, o)",
            f"    size_{prefix}, o = uv(b, o)",
            f"    outer_{prefix}, end = end, o + size_{prefix}",
            f"    if end > outer_{prefix}:",
            "        raise Bad('tagged field reaches past the end')",
            *_indented(cases),
            f"    o, end = end, outer_{prefix}",
        ]


_SKIP_TAGS = ["if b[o]:", "    o = skip(b, o)", "else:", "    o += 1"]


def _is_acknowledgement_batches(struct: Struct) -> bool:
    """Whether an array of these is read in Rust: a request may have thousands, one for each record."""
    wanted = [
        ("first_offset", "int64", False),
        ("last_offset", "int64", False),
        ("acknowledge_types", "int8", True),
    ]
    return struct.flexible and [(each.name, each.kind, each.array) for each in struct.fields] == wanted


def _indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


def _bound(field: FieldSpec, size: str) -> str:
    return f"if {size} > end - o: raise Bad('{field.name} reaches past the end')"


@cache
def _string_array_reader(flexible: bool) -> Callable[[bytes, int, int, int], tuple[list[str], int]]:
    legacy = Packer(">h")

    def read(data: bytes, offset: int, end: int, count: int) -> tuple[list[str], int]:
        strings = []
        for _ in range(count):
            if flexible:
                size, offset = read_uvarint(data, offset)
                size -= 1
            else:
                (size,) = legacy.unpack_from(data, offset)
                offset += 2
            if size < 0 or size > end - offset:
                raise MalformedMessage("string in an array reaches past the end")
            strings.append(data[offset : offset + size].decode())
            offset += size
        return strings, offset

    return read
