"""What holds for every file of the tree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tomllib
from tests.tidy.tree import ROOT, line_of, text, tracked

ARCHITECTURE = text(ROOT / "docs/architecture.md")
LINES_MAX = 500
SOURCE = {".py", ".pyi", ".rs", ".java", ".sh", ".c", ".h"}
# each begins with a literal, which `re` finds quickly
BANNED = {
    r"TODO\b": "finish it, or leave it out",
    r"FIXME\b": "finish it, or leave it out",
    r"XXX\b": "finish it, or leave it out",
    r"todo!\(": "finish it, or leave it out",
    r"unimplemented!\(": "finish it, or leave it out",
    r"raise NotImplementedError": "finish it, or leave it out",
    r"except (Base)?Exception:\s*pass\b": "an error must not vanish",
    r"#\[ignore\b": "a test that never runs is none",
    r"pytest\.(mark\.)?skip\b": "a test that never runs is none",
    r"/(home|root|Users|work|tmp)/\w": "a path of one machine",
}
# the interface of one compiled module cannot be split into several files; the other files are generated
MAY_BE_LONG = {
    Path("python/sharecore/_core.pyi"),
    Path("python/sharecore/protocol/messages.pyi"),
    Path("python/sharecore/protocol/received.pyi"),
    Path("rust/capi/include/sharecore.h"),
}
EXEMPT = {Path("tests/tidy/test_tree.py")}


def sources() -> list[Path]:
    return [path for path in tracked() if path.suffix in SOURCE]


def found(pattern: str, files: list[Path]) -> list[tuple[Path, int, str]]:
    """List the files and lines with a pattern, and what is there."""
    expression = re.compile(pattern)
    return [
        (path, line_of(text(path), match.start()), match[0])
        for path in files
        for match in expression.finditer(text(path))
    ]


def test_no_file_is_longer_than_one_idea() -> None:
    lengths = {str(path): len(text(path).splitlines()) for path in sources() if path not in MAY_BE_LONG}
    assert {path: lines for path, lines in lengths.items() if lines > LINES_MAX} == {}


@pytest.mark.parametrize("pattern", BANNED, ids=lambda pattern: BANNED[pattern] + ": " + pattern)
def test_no_banned_pattern(pattern: str) -> None:
    documents = [path for path in tracked() if path.suffix in {".md", ".toml", ".xml"}]
    assert [place for place in found(pattern, [*sources(), *documents]) if place[0] not in EXEMPT] == []


def test_every_ignored_type_error_is_named() -> None:
    python = [path for path in sources() if path.suffix in {".py", ".pyi"}]
    assert found(r"#\s*type:\s*ignore(?!\[)|#\s*noqa(?!:)", python) == []


def test_every_package_states_its_licence() -> None:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())
    assert workspace["workspace"]["package"]["license"] == "Apache-2.0"
    for member in workspace["workspace"]["members"]:
        package = tomllib.loads((ROOT / member / "Cargo.toml").read_text())["package"]
        assert package["license"] == {"workspace": True}, member
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["license"] == "Apache-2.0"
    assert "Apache License" in (ROOT / "LICENSE").read_text()[:200]


def test_unit_tests_mirror_the_package() -> None:
    package = {path.name for path in (ROOT / "python/sharecore").iterdir() if path.is_dir()}
    mirrors = {path.name for path in (ROOT / "tests/unit").iterdir() if path.is_dir()}
    assert mirrors - package - {"__pycache__"} == set()


def test_only_the_rooms_named_for_it_touch_the_compiled_part() -> None:
    rooms = re.findall(r"^\| `sharecore\.(\w+)` \|.*\|([^|]*)\|$", ARCHITECTURE, re.MULTILINE)
    allowed = {"__init__"} | {room for room, imports in rooms if "`_core`" in imports}
    imports_core = re.compile(r"^\s*(from|import) sharecore(\._core| import .*\b_core)", re.MULTILINE)
    importers = {
        path.relative_to("python/sharecore").parts[0].removesuffix(".py")
        for path in sources()
        if path.suffix == ".py"
        and path.is_relative_to("python/sharecore")
        and imports_core.search(text(path))
    }
    assert importers <= allowed
