"""Types of requests, answers and coordinator records for mypy, written from their schemas.

python -m tests.unit.protocol.message_types writes messages.pyi and received.pyi in sharecore/protocol, and
record_values.pyi in sharecore/coordinator.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from sharecore.broker.handlers import SERVED, TELEMETRY
from sharecore.coordinator.classic.records import VALUES as classic_groups
from sharecore.coordinator.consumer.records import RECORDS as consumer_groups
from sharecore.coordinator.share.records import RECORDS as share_groups
from sharecore.coordinator.transactions.records import VALUES as transactions
from sharecore.coordinator_log.record_schema import RecordSchema
from sharecore.protocol import ApiKey, schema
from sharecore.protocol.layout import is_acknowledgement_batch

ROOT = Path(__file__).parents[3]
TARGET = ROOT / "python/sharecore/protocol/messages.pyi"
RECEIVED = ROOT / "python/sharecore/protocol/received.pyi"
RECORDS = ROOT / "python/sharecore/coordinator/record_values.pyi"

_HEAD = '''"""Types of requests and answers, for type checkers only.

Written by `python -m tests.unit.protocol.message_types` from Kafka's schemas. There is no such module at run
time: `layout.py` creates the named tuples of a request when a client first sends it, and answers are plain
dictionaries. A class has the fields of all served versions, those of the newest first.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple, TypedDict
from uuid import UUID
'''
_RECEIVED_HEAD = '''"""Types of the answers of other brokers as they are read, for type checkers only.

Written by `python -m tests.unit.protocol.message_types` from Kafka's schemas. An answer has only fields of
the version of its request; a class has those of all served versions.
"""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID
'''
_RECORDS_HEAD = '''"""Types of the values of coordinator records as they are read, for type checkers only.

Written by `python -m tests.unit.protocol.message_types` from the schemas of the records. A class has the
fields of all versions.
"""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID
'''
_TYPES = {
    "string": "str",
    "bytes": "bytes",
    "records": "bytes",
    "uuid": "UUID",
    "bool": "bool",
    "float64": "float",
}


@dataclass(eq=False)
class Made:
    """A struct, over all supported versions: each field with its types in the versions that have it."""

    name: str
    response: bool
    are_ids_nullable: bool = True
    is_received: bool = False
    fields: dict[str, list[tuple[schema.FieldSpec, Made | None]]] = field(default_factory=dict)
    unique_name: str = ""

    def walk(self) -> list[Made]:
        """Return the inner structs, innermost first, then this one; without duplicates."""
        inside = [inner for ((_, inner), *_) in self.fields.values() if inner is not None]
        return list(dict.fromkeys([*(each for inner in inside for each in inner.walk()), self]))

    def text(self) -> str:
        is_tuple = self.is_received or not self.response
        base = "NamedTuple" if is_tuple else "TypedDict, total=False"
        lines = [
            f"    {name}: {self._type(versions)}"
            # a tuple has methods of these names
            + ("  # type: ignore[assignment]" if name in ("index", "count") and is_tuple else "")
            for name, versions in self.fields.items()
        ]
        return "\n".join([f"class {self.unique_name}({base}):", *(lines or ["    pass"])])

    def _type(self, versions: list[tuple[schema.FieldSpec, Made | None]]) -> str:
        spec, inner = versions[0]
        text = inner.unique_name if inner is not None else _TYPES.get(spec.kind, "int")
        if not self.response and spec.struct is not None and is_acknowledgement_batch(spec.struct):
            text = "tuple[int, int, bytes]"
        if spec.array and spec.kind == "int8":
            text = "bytes"
        elif spec.array:
            text = f"Collection[{text}]" if self.response and not self.is_received else f"Sequence[{text}]"
        is_nullable = any(
            each.nullable or (not each.array and self._may_be_none(each)) for each, _ in versions
        )
        return f"{text} | None" if is_nullable else text

    def _may_be_none(self, spec: schema.FieldSpec) -> bool:
        is_left_out = (
            not self.response and spec.default is None and spec.kind in ("struct", "records", "string")
        )
        return (spec.kind == "uuid" and self.are_ids_nullable) or is_left_out


def served() -> dict[ApiKey, range]:
    """Return the versions of each API that handlers see, newest first."""
    return {
        api: range(each.max_version, each.min_version - 1, -1) for api, each in (SERVED | TELEMETRY).items()
    }


def union(api: ApiKey, versions: range, *, response: bool) -> Made:
    """Return a message with the fields of all versions, those of the newest first."""
    structs = [schema.load(api, version, response=response).struct for version in versions]
    known: dict[str, Made] = {}
    for struct in structs:
        _add(known, struct, response=response)
    return known[structs[0].name]


def _add(known: dict[str, Made], struct: schema.Struct, *, response: bool) -> Made:
    """Add the fields of a struct to those with the same name in the message."""
    made = known.setdefault(struct.name, Made(struct.name, response))
    for spec in struct.fields:
        inner = None if spec.struct is None else _add(known, spec.struct, response=response)
        made.fields.setdefault(spec.name, []).append((spec, inner))
    return made


@cache
def messages() -> dict[ApiKey, tuple[Made, Made]]:
    """Return request and response of each API, with unique struct names."""
    found = {
        api: (union(api, versions, response=False), union(api, versions, response=True))
        for api, versions in served().items()
    }
    structs = [(message, made) for both in found.values() for message in both for made in message.walk()]
    candidates = {made: _names(message, made) for message, made in structs}
    while shared := _repeated(names[0] for names in candidates.values()):
        for names in candidates.values():
            if names[0] in shared and len(names) > 1:
                del names[0]
    for made, names in candidates.items():
        made.unique_name = names[0]
    return found


def _repeated(names: Iterable[str]) -> set[str]:
    return {name for name, times in Counter(names).items() if times > 1}


def _names(message: Made, made: Made) -> list[str]:
    """Return candidate names for a struct, shortest first."""
    if made is message:
        return [made.name]
    api = message.name.removesuffix("Request").removesuffix("Response")
    own = [f"{message.name}{made.name}"]
    if made.name.startswith(api):
        return [made.name, *own]
    return [made.name, f"{api}{made.name}", *own]


def write() -> str:
    """Return the text of the stub, formatted."""
    structs = [made for both in messages().values() for message in both for made in message.walk()]
    assert not _repeated(made.unique_name for made in structs)
    return _formatted(TARGET, _HEAD, structs)


def write_received() -> str:
    """Return the text of the stub for answers of other brokers, formatted."""
    structs = [made for _, response in messages().values() for made in response.walk()]
    for made in structs:
        made.is_received = True
    return _formatted(RECEIVED, _RECEIVED_HEAD, structs)


def write_records() -> str:
    """Return the text of the stub for values of coordinator records, formatted."""
    structs = [made for schemas in records().values() for made in record(schemas).walk()]
    return _formatted(RECORDS, _RECORDS_HEAD, structs)


def records() -> dict[str, list[RecordSchema]]:
    """Return the schemas of each value, the newest first."""
    groups = [*consumer_groups._values.values(), *share_groups._values.values()]
    found = {each.name: [each] for each in groups}
    for versions in (classic_groups, transactions):
        found[versions.newest.name] = list(versions._versions.values())[::-1]
    return found


def record(schemas: list[RecordSchema]) -> Made:
    """Return the value of a record with the fields of all versions."""
    known: dict[str, Made] = {}
    for each in schemas:
        _add(known, each.struct, response=False)
    value = known[schemas[0].struct.name]
    for made in value.walk():
        made.are_ids_nullable = False
        # ConsumerGroupMEMBER_METADATAValue
        owner = re.sub(r"[A-Z]{2}[A-Z_]*(?=Value$)", lambda kind: _camel(kind[0]), value.name)
        made.unique_name = owner.removesuffix("Value") + ("" if made is value else _camel(made.name))
    return value


def _camel(name: str) -> str:
    return "".join(part.title() for part in name.split("_"))


def _formatted(target: Path, head: str, structs: list[Made]) -> str:
    text = "\n\n\n".join([head, *(made.text() for made in structs)]) + "\n"
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(target), "-"]
    return subprocess.run(command, input=text, text=True, capture_output=True, check=True, cwd=ROOT).stdout


if __name__ == "__main__":
    TARGET.write_text(write())
    RECEIVED.write_text(write_received())
    RECORDS.write_text(write_records())
