"""Each module has its test, or says where it is tested; each unit test belongs to a room that there is."""

from __future__ import annotations

import ast
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest
import tomllib
from tests.tidy.tree import PACKAGE, ROOT, nodes

THROUGH: dict[str, list[str]] = tomllib.loads((ROOT / "tests/map.toml").read_text())["through"]
# they only combine definitions of other modules
GATHERING = {"__init__", "__main__"}


@cache
def imported(path: Path) -> frozenset[str]:
    """Modules and names of the package that a file imports."""
    found: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return frozenset(name for name in found if name.split(".")[0] == "sharecore")


@cache
def handed_on() -> dict[str, str]:
    """Return the names that packages hand on, each with the module that defines it."""
    names = {}
    for path in PACKAGE.rglob("__init__.py"):
        package = ".".join(path.parent.relative_to(PACKAGE.parent).parts)
        for node in nodes(path):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                names.update({f"{package}.{alias.name}": node.module for alias in node.names})
    return names


@cache
def modules() -> list[str]:
    """Paths under the package, as the map has them."""
    paths = sorted(path for path in PACKAGE.rglob("*.py") if path.stem not in GATHERING)
    return [str(path.relative_to(PACKAGE).with_suffix("")) for path in paths]


@cache
def imported_by_tests() -> frozenset[str]:
    names = {name for path in (ROOT / "tests").rglob("*.py") for name in imported(path)}
    defined = {handed_on().get(name, name) for name in names}
    return frozenset(name.removeprefix("sharecore.").replace(".", "/") for name in defined)


def test_each_module_has_a_test_or_says_where_it_is_tested() -> None:
    missing = [
        module
        for module in modules()
        if module not in imported_by_tests() and not any(fnmatchcase(module, pattern) for pattern in THROUGH)
    ]
    assert missing == [], "tests/map.toml says where modules are tested that no test imports"


@pytest.mark.parametrize("pattern", THROUGH)
def test_what_the_map_names_is_there(pattern: str) -> None:
    through = [module for module in modules() if fnmatchcase(module, pattern)]
    assert [module for module in through if module not in imported_by_tests()], (
        "no such module, or tests import it: the line can go"
    )
    assert [test for test in THROUGH[pattern] if not (ROOT / test).is_file()] == []


def test_each_unit_test_stands_in_the_room_that_it_tests() -> None:
    astray = []
    for path in sorted((ROOT / "tests/unit").rglob("test_*.py")):
        room = path.relative_to(ROOT / "tests/unit").parts[0]
        if not room.endswith(".py") and not (PACKAGE / room).is_dir():
            astray.append(str(path.relative_to(ROOT)))
    assert astray == []
