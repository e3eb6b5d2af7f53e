"""kio's classes as they are read, beside those that an import makes."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from importlib import import_module
from typing import Any

import pytest
from kio.schema import index

from sharecore.protocol.entities import entity, fields_of


def classes() -> list[str]:
    return [
        place
        for versions in index.schema_name_map.values()
        for kinds in versions.values()
        for place in kinds.values()
    ]


def shown(value: Any) -> Any:
    """A value, as far as it can be compared with that of another class of the same name."""
    return type(value).__name__ if hasattr(value, "__version__") else value


def described(field: dataclasses.Field[Any]) -> tuple[Any, ...]:
    return field.name, str(field.type), dict(field.metadata), shown(field.default)


def test_every_class_has_the_fields_that_its_data_class_has() -> None:
    assert len(classes()) > 500
    for place in classes():
        module, _, name = place.partition(":")
        ours, theirs = entity(module, name), getattr(import_module(module), name)
        assert [*map(described, fields_of(ours))] == [*map(described, dataclasses.fields(theirs))], place


def test_nothing_is_imported_for_it() -> None:
    program = (
        "import sys; from sharecore.protocol import codec; codec(1, 18).response_layout;"
        "print([name for name in sys.modules if name.startswith('kio.schema.fetch')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_module_that_is_not_there_is_an_import_error() -> None:
    with pytest.raises(ImportError, match=r"kio\.schema\.fetch\.v999\.request"):
        entity("kio.schema.fetch.v999.request", "FetchRequest")
