"""The messages with records as Rust structs, generated from the schemas.

python -m tests.unit.protocol.messages writes rust/wire/src/typed/messages.rs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sharecore.protocol import ApiKey, schema

TARGET = Path(__file__).resolve().parents[3] / "rust/wire/src/typed/messages.rs"
APIS = ApiKey.PRODUCE, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE
_NUMBERS = {
    "int8": "i8",
    "int16": "i16",
    "error_code": "i16",
    "int32": "i32",
    "timedelta_i32": "i32",
    "int64": "i64",
    "timedelta_i64": "i64",
    "datetime_i64": "i64",
}
_TYPES = {**_NUMBERS, "bool": "bool", "uuid": "[u8; 16]", "records": "Records<'a>"}
_HEAD = """//! Written by `python -m tests.unit.protocol.messages` from Kafka's schemas.
"""


@dataclass(frozen=True)
class Row:
    """A field of a Rust struct."""

    name: str
    type: str
    default: str
    tag: int | None
    first: int
    last: int

    def __str__(self) -> str:
        tag = "" if self.tag is None else f", tag {self.tag}"
        return f"{self.name}: {self.type} [{self.first}..={self.last}{tag}] = {self.default};"


@dataclass
class Made:
    """A Rust struct."""

    name: str
    whole: str
    rows: list[Row] = field(default_factory=list)

    @property
    def generic(self) -> str:
        return "<'a>" if any("'a" in row.type for row in self.rows) else ""

    @property
    def text(self) -> str:
        rows = "".join(f"        {row}\n" for row in self.rows)
        return f"    struct {self.name}{self.generic}{self.whole} {{\n{rows}    }}\n"


def write() -> str:
    """Return the file's text.

    Raises:
        ValueError: a schema uses something that no Rust struct has yet.
    """
    modules = {api: _module(api) for api in APIS}
    texts = [made.text for structs in modules.values() for made in structs]
    shared = {text for text in texts if texts.count(text) > 1}
    parts = [_HEAD]
    common = {made.text: made for structs in modules.values() for made in structs if made.text in shared}
    if common:
        parts.append(
            _mod(
                "common", "Parts that requests and responses of several APIs have.", (), list(common.values())
            )
        )
    for api, structs in modules.items():
        used = [made.name for made in structs if made.text in shared]
        about = f"The request and the response of `{api.name}`."
        parts.append(
            _mod(api.name.lower(), about, used, [made for made in structs if made.text not in shared])
        )
    return "\n".join(parts)


def _mod(name: str, about: str, used: Sequence[str], structs: list[Made]) -> str:
    lines = [f"/// {about}", f"pub mod {name} {{"]
    if used:
        lines.append(f"    pub use super::common::{{{', '.join(sorted(used))}}};")
    if any("Records<" in made.text for made in structs):
        lines.append("    use crate::typed::Records;")
    lines.append("    use crate::typed::structs::structs;")
    body = "\n".join(made.text for made in structs)
    inner = "".join(f"    {line}\n" if line else "\n" for line in body.splitlines())
    return "\n".join([*lines, "", "    structs! {", inner.rstrip("\n"), "    }", "}", ""])


def _module(api: ApiKey) -> list[Made]:
    structs: list[Made] = []
    for response in (False, True):
        known = schema.versions(api, response=response)
        messages = {version: schema.load(api, version, response=response).struct for version in known}
        flexible = next(version for version in known if messages[version].flexible)
        whole = f" message {known[0]}..={known[-1]} flexible {flexible}"
        structs += _structs(messages, whole)
    names = [made.name for made in structs]
    for name in {name for name in names if names.count(name) > 1}:
        same = [made for made in structs if made.name == name]
        if any(made != same[0] for made in same):
            raise ValueError(f"{api.name} has two structs with the name {name}")
        for made in same[1:]:
            structs.remove(made)
    return structs


def _structs(messages: dict[int, schema.Struct], whole: str = "") -> list[Made]:
    newest = messages[max(messages)]
    made = Made(newest.name, whole)
    inner: list[Made] = []
    for name in _names(messages):
        found = {version: each for version, struct in messages.items() if (each := struct.field(name))}
        one = {replace(each, struct=None) for each in found.values()}
        first, last = min(found), max(found)
        if len(one) > 1 or len(found) != last - first + 1:
            raise ValueError(f"{newest.name}.{name} is not the same in all versions that have it")
        (spec,) = one
        parts = []
        if spec.kind == "struct":
            parts = _structs({version: each.struct for version, each in found.items() if each.struct})
            inner += parts
        type_, default = _type(spec, parts[0] if parts else None)
        made.rows.append(Row(name, type_, default, spec.tag, first, last))
    return [made, *inner]


def _names(messages: dict[int, schema.Struct]) -> Iterator[str]:
    """Return the fields of all versions, in an order valid for each."""
    names: list[str] = []
    for struct in messages.values():
        place = 0
        for each in struct.fields:
            if each.name in names:
                place = names.index(each.name) + 1
            else:
                names.insert(place, each.name)
                place += 1
    return iter(names)


def _type(spec: schema.FieldSpec, inner: Made | None) -> tuple[str, str]:
    if spec.array and not spec.nullable:
        if spec.kind == "int8":
            return "&'a [u8]", "&[]"
        if inner is not None or spec.kind in _NUMBERS:
            element = f"{inner.name}{inner.generic}" if inner is not None else _TYPES[spec.kind]
            return f"Vec<{element}>", "Vec::new()"
    elif not spec.array:
        if inner is not None and not spec.nullable:
            return inner.name + inner.generic, f"{inner.name}::default()"
        if spec.kind == "string":
            default = "None" if spec.default is None else f'"{spec.default}"'
            if not spec.nullable:
                return "&'a str", default
            return "Option<&'a str>", "None" if default == "None" else f"Some({default})"
        if spec.kind in _NUMBERS:
            return _TYPES[spec.kind], f"{spec.default:_}"
        if spec.kind == "bool":
            return "bool", str(spec.default).lower()
        if spec.kind == "uuid":
            return _TYPES[spec.kind], "[0; 16]"
        if spec.kind == "records":
            return _TYPES[spec.kind], "Records::Null"
    raise ValueError(f"no struct of Rust has a field like {spec.name} yet")


if __name__ == "__main__":
    TARGET.write_text(write())
