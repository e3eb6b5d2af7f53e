"""kio's classes as read from source, compared with imported ones."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from importlib import import_module
from typing import Any

import pytest
from kio.schema import index
from kio.static import primitive

from sharecore.protocol.entities import _STAND_INS, entity, fields_of


def classes() -> list[str]:
    return [
        place
        for versions in index.schema_name_map.values()
        for kinds in versions.values()
        for place in kinds.values()
    ]


def shown(value: Any) -> Any:
    """Convert a value for comparison with one of another class of the same name."""
    return type(value).__name__ if hasattr(value, "__version__") else value


PLAIN = {
    **dict.fromkeys(("i8", "i16", "i32", "i64", "u16"), "int"),
    **dict.fromkeys(("i32Timedelta", "i64Timedelta"), "sharecore.protocol.entities._Duration"),
    "f64": "float",
    "PhantomStr": "str",
    "Records": "bytes",
    "TZAware": "datetime.datetime",
}


def described(field: dataclasses.Field[Any]) -> tuple[Any, ...]:
    kind = re.sub(r"kio\.static\.primitive\.(\w+)", lambda found: PLAIN[found[1]], str(field.type))
    return field.name, kind, dict(field.metadata), shown(field.default)


@pytest.mark.heavy
def test_every_class_has_the_fields_that_its_data_class_has() -> None:
    assert len(classes()) > 500
    for place in classes():
        module, _, name = place.partition(":")
        ours, theirs = entity(module, name), getattr(import_module(module), name)
        assert [*map(described, fields_of(ours))] == [*map(described, dataclasses.fields(theirs))], place


def test_nothing_is_imported_for_it() -> None:
    program = (
        "import sys; from sharecore.protocol import codec; codec(1, 18).response_layout;"
        "print(sorted(name for name in sys.modules if name.startswith(('kio.s', 'hypothesis'))))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    needed = ["kio.schema", "kio.schema.index", "kio.static", "kio.static.constants"]
    assert done.stdout == f"{needed}\n"


def test_a_type_that_came_later_is_taken_from_kio() -> None:
    primitives: Any = _STAND_INS["kio.static.primitive"]
    assert primitives.svarint is primitive.svarint


def test_a_module_that_is_not_there_is_an_import_error() -> None:
    with pytest.raises(ImportError, match=r"kio\.schema\.fetch\.v999\.request"):
        entity("kio.schema.fetch.v999.request", "FetchRequest")
