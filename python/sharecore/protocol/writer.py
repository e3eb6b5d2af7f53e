"""Compiles a writer of one message from its schema.

A message to write is a mapping from field names to values. What it does not hold gets the schema's default,
and names that this version does not have are passed over: so handlers speak the newest version and older
clients are answered too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from struct import Struct as Packer
from typing import Any

from sharecore.protocol.schema import FIXED_FORMAT, FieldSpec, Struct

Append = Callable[[bytes], None]
Writer = Callable[[Mapping[str, Any], Append], None]

_VARINT_CACHE = [bytes([n]) if n < 128 else bytes([n & 0x7F | 0x80, n >> 7]) for n in range(1 << 11)]
_NO_UUID = bytes(16)


def uvarint(value: int) -> bytes:
    """An unsigned varint."""
    if value < len(_VARINT_CACHE):
        return _VARINT_CACHE[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@cache
def compile_writer(struct: Struct) -> Writer:
    """Compiles the writer of `struct`: it hands the bytes, in parts, to the `append` that it is given."""
    return _Source(struct).compile()


def unknown_names(message: Mapping[str, Any], struct: Struct) -> Iterator[str]:
    """Names in `message` that `struct` does not have, as dotted paths: a handler's misspelling, in the newest
    version.
    """
    for name, value in message.items():
        field = struct.field(name)
        if field is None:
            yield name
        elif field.struct is not None and value is not None:
            for item in value if field.array else (value,):
                yield from (f"{name}.{inner}" for inner in unknown_names(item, field.struct))


def _uuid_bytes(value: Any) -> bytes:
    return _NO_UUID if value is None else value.bytes


class _Source:
    """The source text of one writer, and the names that it uses."""

    def __init__(self, struct: Struct) -> None:
        self.struct = struct
        self.lines: list[str] = []
        self.names: dict[str, Any] = {
            "varint": _VARINT_CACHE,
            "uvarint": uvarint,
            "uuid": _uuid_bytes,
            "join": b"".join,
            "Packer": Packer,
        }

    def compile(self) -> Writer:
        run: list[FieldSpec] = []
        for field in self.struct.fields:
            if field.tag is not None:
                continue
            if field.fixed:
                run.append(field)
                continue
            self._fixed_run(run)
            run = []
            self._variable(field, "out")
        self._fixed_run(run)
        if self.struct.flexible:
            self._tagged_fields([field for field in self.struct.fields if field.tag is not None])
        body = "\n".join("    " + line for line in self.lines or ["pass"])
        exec(f"def write(m, out):\n    get = m.get\n{body}\n", self.names)
        writer: Writer = self.names["write"]
        return writer

    def _name(self, value: Any) -> str:
        name = f"x{len(self.names)}"
        self.names[name] = value
        return name

    def _value(self, field: FieldSpec) -> str:
        default = repr(field.default) if isinstance(field.default, (int, str, bytes)) else None
        get = f"get('{field.name}')" if default is None else f"get('{field.name}', {default})"
        return f"uuid({get})" if field.kind == "uuid" else get

    def _fixed_run(self, run: list[FieldSpec]) -> None:
        if run:
            pack = self._name(Packer(">" + "".join(FIXED_FORMAT[field.kind] for field in run)).pack)
            self.lines.append(f"out({pack}({', '.join(self._value(field) for field in run)}))")

    def _variable(self, field: FieldSpec, out: str) -> None:
        flexible = self.struct.flexible
        if field.kind == "struct" and not field.array:
            write = self._nested_writer(field)
            if field.nullable:
                self.lines += [
                    f"v = get('{field.name}')",
                    f"{out}(b'\\xff' if v is None else b'\\x01')",
                    f"if v is not None: {write}(v, {out})",
                ]
            else:
                self.lines.append(f"{write}(get('{field.name}') or {{}}, {out})")
            return
        if field.array:
            self.lines.append(f"v = get('{field.name}', {'None' if field.default is None else '()'})")
            legacy = Packer(">i")
        else:
            self.lines.append(f"v = {self._value(field)}")
            legacy = Packer(">h" if field.kind == "string" else ">i")
        null = repr(b"\x00" if flexible else legacy.pack(-1))
        if flexible:
            length = "varint[len(v) + 1] if len(v) < 2047 else uvarint(len(v) + 1)"
        else:
            length = f"{self._name(legacy.pack)}(len(v))"
        present = self._items(field, out, length)
        if not field.nullable and field.kind != "records":
            self.lines += present
        else:
            self.lines += [f"if v is None: {out}({null})", "else:", *("    " + line for line in present)]

    def _items(self, field: FieldSpec, out: str, length: str) -> list[str]:
        """Code that writes the non-null value `v`."""
        if not field.array:
            encode = ["v = v.encode()"] if field.kind == "string" else []
            return [*encode, f"{out}({length})", f"{out}(v)"]
        lines = [f"{out}({length})"]
        if field.struct is not None:
            return [*lines, f"for item in v: {self._nested_writer(field)}(item, {out})"]
        if field.kind == "int8":
            return [*lines, f"{out}(bytes(v))"]
        if field.kind == "uuid":
            return [*lines, f"for item in v: {out}(uuid(item))"]
        if field.kind in FIXED_FORMAT:
            return [*lines, f"{out}(Packer('>%d{FIXED_FORMAT[field.kind]}' % len(v)).pack(*v))"]
        inner = (
            "uvarint(len(item) + 1)"
            if self.struct.flexible
            else f"{self._name(Packer('>h').pack)}(len(item))"
        )
        encode = ["    item = item.encode()"] if field.kind == "string" else []
        return [*lines, "for item in v:", *encode, f"    {out}({inner})", f"    {out}(item)"]

    def _nested_writer(self, field: FieldSpec) -> str:
        assert field.struct is not None
        return self._name(compile_writer(field.struct))

    def _tagged_fields(self, tagged: list[FieldSpec]) -> None:
        if not tagged:
            self.lines.append("out(b'\\x00')")
            return
        names = " or ".join(f"'{field.name}' in m" for field in tagged)
        self.lines += [f"if not ({names}): out(b'\\x00')", "else:"]
        before, self.lines = self.lines, ["tags = []"]
        for field in sorted(tagged, key=lambda field: field.tag or 0):
            default = self._name(field.default)
            self.lines += [
                f"if '{field.name}' in m and m['{field.name}'] != {default}:",
                "    inner = []",
                "    put = inner.append",
            ]
            outside, self.lines = self.lines, []
            if field.fixed:
                pack = self._name(Packer(">" + FIXED_FORMAT[field.kind]).pack)
                self.lines.append(f"put({pack}({self._value(field)}))")
            else:
                self._variable(field, "put")
            self.lines = outside + ["    " + line for line in self.lines]
            self.lines += [
                "    inner = join(inner)",
                f"    tags.append({uvarint(field.tag or 0)!r} + uvarint(len(inner)) + inner)",
            ]
        self.lines += ["out(uvarint(len(tags)))", "out(join(tags))"]
        self.lines = before + ["    " + line for line in self.lines]
