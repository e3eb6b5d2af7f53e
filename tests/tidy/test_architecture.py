"""The table of modules in docs/architecture.md: every module is listed, with its imports."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest
import tomllib
from tests.tidy.tree import PACKAGE, ROOT, nodes, text

from sharecore import _core

PAGE = text(ROOT / "docs/architecture.md")
EVERYWHERE = {"errors"}


@cache
def table() -> dict[str, set[str]]:
    """By package, what the page says it imports."""
    found: dict[str, set[str]] = {}
    for names, imports in re.findall(r"^\| (`sharecore\.[^|]*) \| [^|]* \| ([^|]*) \|$", PAGE, re.MULTILINE):
        for name in re.findall(r"`(?:sharecore\.)?(\w+)`", names):
            found[name] = set() if imports == "nothing" else set(imports.replace("`", "").split(", "))
    return found


def imported(package: str) -> set[str]:
    path = PACKAGE / package
    files = path.rglob("*.py") if path.is_dir() else [path.with_suffix(".py")]
    return {name for file in files for name in _imports(nodes(file))} - {package} - EVERYWHERE


def _imports(found: Iterable[ast.AST]) -> Iterator[str]:
    for node in found:
        if isinstance(node, ast.ImportFrom) and node.module == "sharecore":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sharecore."):
            yield (node.module or "").split(".")[1]


def test_every_package_is_in_the_table() -> None:
    packages = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert packages <= table().keys()
    for name in table():
        assert (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists(), name


@pytest.mark.parametrize("package", sorted(table().keys() - {"broker"}))
def test_a_package_imports_what_the_table_says(package: str) -> None:
    assert sorted(imported(package)) == sorted(table()[package] - EVERYWHERE), "docs/architecture.md, Modules"


def crates() -> dict[str, set[str]]:
    """By crate, which of the others it depends on."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "rust").glob("*/Cargo.toml")):
        needed = tomllib.loads(path.read_text()).get("dependencies", {})
        found[path.parent.name] = {
            name.removeprefix("sharecore-") for name in needed if name.startswith("sharecore-")
        }
    return found


def test_the_table_has_every_crate_with_its_dependencies() -> None:
    rows = re.findall(r"^\| `rust/([\w-]+)` \| [^|]* \| ([^|]*) \|$", PAGE, re.MULTILINE)
    shown = {name: set() if needed == "nothing" else set(needed.split(", ")) for name, needed in rows}
    assert shown == crates(), "docs/architecture.md, Modules"


@pytest.mark.parametrize("package", ["broker", "tier", "client", "coordinator"])
def test_the_table_names_the_packages_of_a_large_package(package: str) -> None:
    (row,) = re.findall(rf"^\| `sharecore\.{package}` \| ([^|]*) \|", PAGE, re.MULTILINE)
    packages = {path.parent.name for path in (PACKAGE / package).glob("*/__init__.py")}
    assert {name for name in packages if f"`{name}/`" not in row} == set()


def test_every_file_that_the_page_names_is_there() -> None:
    names = set(re.findall(r"`((?:\w+/)+\w+\.(?:py|rs))`", PAGE))
    assert len(names) >= 5, "the walk of one acknowledgement"
    assert [name for name in names if not (PACKAGE / name).exists() and not (ROOT / name).exists()] == []


def test_the_engine_has_the_methods_that_internals_shows() -> None:
    page = text(ROOT / "docs/internals.md")
    shown = page.partition("## The engine, as Python sees it")[2].partition("\n## ")[0]
    names = set(re.findall(r"(?:^|, | / )([a-z_]+)\(", shown, re.MULTILINE))
    assert {"acquire", "acknowledge", "advance", "rollback"} <= names
    assert sorted(name for name in names if not hasattr(_core.Partition, name)) == []


def test_contributors_find_what_they_are_sent_to() -> None:
    named = re.findall(
        r"`((?:python|rust|tests|packaging)/[\w/.]+)`(?:\s+\(`(\w+)`\))?", text(Path("CONTRIBUTING.md"))
    )
    assert len(named) > 10
    missing = [path for path, _ in named if not (ROOT / path).exists()]
    without = [
        f"{path}: {name}"
        for path, name in named
        if name
        and not re.search(rf"\b(def|fn|class|struct) {name}\b|^{name} = ", text(Path(path)), re.MULTILINE)
    ]
    assert missing + without == []
