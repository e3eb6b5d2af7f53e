"""Neutral descriptions of messages, from kio's generated classes and, for newer versions, from here.

Layouts are compiled from it, so that what kio looks like is known here only.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, replace
from dataclasses import field as dataclass_field
from datetime import datetime, timedelta
from functools import cache
from typing import Literal, cast

from kio.schema import index as kio_index
from kio.static.constants import EntityType

from sharecore.protocol.apis import ApiKey
from sharecore.protocol.entities import Entity, entity, fields_of

FIXED_FORMAT = {
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "float64": "d",
    "bool": "?",
    "error_code": "h",
    "timedelta_i32": "i",
    "timedelta_i64": "q",
    "datetime_i64": "q",
    "uuid": "16s",
}
COORDINATOR_EPOCH_TAG = 14_932
"""Far from the tags that Kafka gives, from 0 on."""
_Kind = Literal[EntityType.request, EntityType.response]
_IMPLICIT_DEFAULT: dict[str, object] = {
    "string": "",
    "bytes": b"",
    "records": None,
    "bool": False,
    "uuid": None,
}


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field: `kind` is a name of FIXED_FORMAT, or string, bytes, records, struct."""

    name: str
    kind: str
    struct: Struct | None
    array: bool
    nullable: bool
    tag: int | None
    default: object

    @property
    def fixed(self) -> bool:
        """Whether the field always takes the same number of bytes."""
        return not self.array and self.kind in FIXED_FORMAT


_COORDINATOR_EPOCH = FieldSpec("coordinator_epoch", "int32", None, False, False, COORDINATOR_EPOCH_TAG, -1)
OF_OUR_OWN: Mapping[int, tuple[FieldSpec, ...]] = {
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: (_COORDINATOR_EPOCH,),
    ApiKey.DELETE_SHARE_GROUP_STATE: (_COORDINATOR_EPOCH,),
}
"""Tagged fields of requests beyond Kafka's, by API: under which epoch the group is coordinated by who asks.
Who does not know them passes over them, and who does not send them says -1.
"""


@dataclass(frozen=True, slots=True)
class Struct:
    """A message or a part of one, in one version."""

    name: str
    version: int
    flexible: bool
    fields: tuple[FieldSpec, ...]
    _by_name: dict[str, FieldSpec] = dataclass_field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {field.name: field for field in self.fields})

    def field(self, name: str) -> FieldSpec | None:
        """Return the field of this name, or None when this version does not have it."""
        return self._by_name.get(name)


@dataclass(frozen=True, slots=True)
class Message:
    """A request or a response in one version, with the version of the header before it."""

    struct: Struct
    header_version: int


def _with_cluster_id(request: Struct) -> Struct:
    """Add the broker that a client means to reach (KIP-1242)."""
    cluster_id = FieldSpec("cluster_id", "string", None, False, True, None, None)
    return replace(
        request,
        fields=(*request.fields, cluster_id, FieldSpec("node_id", "int32", None, False, False, None, -1)),
    )


def _with_topic_ids(message: Struct) -> Struct:
    """Name topics by their ids (KIP-1319)."""
    topic_id = FieldSpec("topic_id", "uuid", None, False, False, None, None)
    return _changed(message, "topics", lambda topic: (topic_id, *topic.fields[1:]))


def _with_error_message(response: Struct) -> Struct:
    """Add why a group is not deleted."""
    text = FieldSpec("error_message", "string", None, False, True, None, None)
    return _changed(response, "results", lambda result: (*result.fields, text))


def _changed(message: Struct, name: str, change: Callable[[Struct], tuple[FieldSpec, ...]]) -> Struct:
    """Return a message with other fields in the entries of one of its arrays."""

    def entries(field: FieldSpec) -> FieldSpec:
        if field.name != name or field.struct is None:
            return field
        return replace(field, struct=replace(field.struct, fields=change(field.struct)))

    return replace(message, fields=tuple(map(entries, message.fields)))


def _as_before(message: Struct) -> Struct:
    return message


_NEWER: Mapping[int, tuple[int, Callable[[Struct], Struct], Callable[[Struct], Struct]]] = {
    ApiKey.API_VERSIONS: (5, _with_cluster_id, _as_before),
    ApiKey.TXN_OFFSET_COMMIT: (6, _with_topic_ids, _with_topic_ids),
    ApiKey.DELETE_GROUPS: (3, _as_before, _with_error_message),
}
"""Versions of Apache Kafka 4.4.0 that kio lacks: what each request and response is, by the version before."""


def versions(api_key: int, *, response: bool) -> list[int]:
    """Return the versions that the schemas know, in their order."""
    kind: _Kind = EntityType.response if response else EntityType.request
    known = kio_index.schema_name_map[kio_index.api_key_map[api_key]]
    found = {version for version, kinds in known.items() if kind in kinds}
    if api_key in _NEWER:
        found.add(_NEWER[api_key][0])
    return sorted(found)


def newest_version(api_key: int, *, response: bool) -> int:
    """Return the highest version that the schemas know."""
    return versions(api_key, response=response)[-1]


@cache
def load(api_key: int, version: int, *, response: bool) -> Message:
    """Return the schema of a request or a response.

    Raises:
        KeyError: the schemas have no such API or version.
    """
    name = kio_index.api_key_map[api_key]
    kind: _Kind = EntityType.response if response else EntityType.request
    newer, *changes = _NEWER.get(api_key, (-1,))
    if version == newer and version not in kio_index.schema_name_map[name]:
        before = load(api_key, version - 1, response=response)
        return replace(before, struct=_at(changes[response](before.struct), version))
    module, _, class_name = kio_index.schema_name_map[name][version][kind].partition(":")
    message = entity(module, class_name)
    struct = _struct(message)
    return Message(
        replace(struct, fields=struct.fields + (OF_OUR_OWN.get(api_key, ()) if not response else ())),
        int(message.__header_schema__.__version__),
    )


def unknown_names(message: Mapping[str, object] | tuple[object, ...], struct: Struct) -> Iterator[str]:
    """Yield names in `message` that `struct` lacks, as dotted paths, to find a handler's misspellings."""
    if isinstance(message, tuple):
        if hasattr(message, "_asdict"):  # as decoded, with tagged fields
            message = dict(message._asdict())
        else:
            fields = [field.name for field in struct.fields if field.tag is None]
            message = dict(zip(fields, message, strict=False))
    for name, value in message.items():
        field = struct.field(name)
        if field is None:
            yield name
        elif field.struct is not None and value is not None:
            items = value if field.array else (value,)
            for item in cast("Iterable[Mapping[str, object]]", items):
                yield from (f"{name}.{inner}" for inner in unknown_names(item, field.struct))


def _struct(described: Entity) -> Struct:
    return Struct(
        name=described.__name__,
        version=int(described.__version__),
        flexible=bool(described.__flexible__),
        fields=tuple(map(_field, fields_of(described))),
    )


def _field(field: Field[object]) -> FieldSpec:
    inner, nullable = _without_none(field.type)
    array = typing.get_origin(inner) is tuple
    if array:
        inner, _ = _without_none(typing.get_args(inner)[0])
    kind = field.metadata.get("kafka_type", "struct")
    name = field.name
    if kind.startswith(("timedelta", "datetime")):
        name += "_ms"
    return FieldSpec(
        name=name,
        kind=kind,
        struct=_struct(inner) if isinstance(inner, Entity) else None,
        array=array,
        nullable=nullable and (array or kind not in FIXED_FORMAT),
        tag=field.metadata.get("tag"),
        default=_default(field.default, kind, array=array),
    )


def _at(struct: Struct, version: int) -> Struct:
    """Return a message as that of another version."""
    fields = (
        field if field.struct is None else replace(field, struct=_at(field.struct, version))
        for field in struct.fields
    )
    return replace(struct, version=version, fields=tuple(fields))


def _without_none(annotation: object) -> tuple[object, bool]:
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        inner = [arg for arg in typing.get_args(annotation) if arg is not types.NoneType]
        return inner[0], len(inner) < len(typing.get_args(annotation))
    return annotation, False


def _default(default: object, kind: str, *, array: bool) -> object:
    # as decoded: an array of int8 is bytes
    empty = b"" if kind == "int8" else ()
    if default is MISSING:
        return empty if array else _IMPLICIT_DEFAULT.get(kind, None if kind == "struct" else 0)
    if default is None:
        return -1 if kind in FIXED_FORMAT and kind != "uuid" else None
    if array or kind == "struct":
        return empty if array else None
    match default:
        case timedelta():
            return round(default.total_seconds() * 1000)
        case datetime():
            return round(default.timestamp() * 1000)
        case str() if kind == "string":
            return str(default)
        case bool():
            return default
        case int() if kind not in ("uuid", "float64"):
            return int(default)
    return default
