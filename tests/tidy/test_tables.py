"""Every table that grows while a broker or a node serves has a bound: `tests/tables.toml` says which.

A new one fails here until somebody has said what bounds it. What clients fill refers to docs/security.md.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import tomllib
from tests.tidy.tree import PACKAGE, ROOT, nodes, parsed, text

SERVING = (
    "broker",
    "coordinator",
    "coordinator_log",
    "deadletters",
    "logs.py",
    "metrics",
    "network",
    "page",
    "partition",
    "persister",
    "protocol",
    "quotas",
    "rates.py",
    "security",
    "session",
    "sharestate",
    "storage",
    "tier",
    "upstream",
    "waiting",
)
"""What runs in the process of a broker or a node."""
CRATES = ("binding", "bounds", "engine", "lease", "produce", "share", "state", "store", "wire")
BOUNDS: dict[str, dict[str, Any]] = tomllib.loads((ROOT / "tests/tables.toml").read_text())
_EMPTY = re.compile(
    r"(\{\}|\[\]|(set|dict|list|bytearray|deque|OrderedDict|Counter|WeakSet|Weak\w+Dictionary)\(\)"
    r"|(defaultdict|Recent|Remembered|LineLimit|BytesCache)\(.*\)|once_a_minute\(\))"
)
_FACTORY = re.compile(r"field\(.*default_factory=(dict|list|set|deque|OrderedDict|Counter)\b.*\)", re.DOTALL)
_MEMO = re.compile(r"(functools\.)?(lru_cache|cache)\b")
_STRUCT = re.compile(
    r"^(pub(\([a-z]+\))? )?struct (?P<name>\w+)[^;{]*\{\n(?P<fields>.*?)^\}", re.MULTILINE | re.DOTALL
)
_RUST_TABLE = re.compile(
    r"^    (pub(\([a-z]+\))? )?(?P<name>\w+): .*\b((Hash|BTree|Index|Id)(Map|Set)|PyDict|PySet)\b",
    re.MULTILINE,
)
_ROW = re.compile(r"^\| (.+?) \|")


def rows() -> set[str]:
    """Return the first column of the table of what stays in memory after a request."""
    text = (ROOT / "docs/security.md").read_text().partition("### What stays in memory")[2]
    return {found[1] for line in text.splitlines() if (found := _ROW.match(line))}


def is_table(value: ast.expr | None) -> bool:
    text = "" if value is None else ast.unparse(value)
    return bool(_EMPTY.fullmatch(text) or _FACTORY.fullmatch(text))


def tables_in(path: Path) -> Iterator[str]:
    """Name what begins empty and may grow: attributes, variables of a module, functions that remember."""
    for statement in parsed(path).body:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and is_table(statement.value):
            yield name_of(statement)
    for node in nodes(path):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if any(_MEMO.match(ast.unparse(each)) for each in node.decorator_list):
                yield f"{node.name}()"
        elif isinstance(node, ast.ClassDef):
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and is_table(field.value):
                    yield f"{node.name}.{name_of(field)}"
            for each in ast.walk(node):
                if isinstance(each, (ast.Assign, ast.AnnAssign)) and is_table(each.value):
                    name = name_of(each)
                    if name.startswith("self.") and name.count(".") == 1:
                        yield f"{node.name}.{name.removeprefix('self.')}"


def name_of(assigned: ast.Assign | ast.AnnAssign) -> str:
    return ast.unparse(assigned.targets[0] if isinstance(assigned, ast.Assign) else assigned.target)


def tables_in_rust(source: str) -> Iterator[str]:
    """Name the maps, sets and Python dictionaries in the fields of structs."""
    for struct in _STRUCT.finditer(source):
        for field in _RUST_TABLE.finditer(struct["fields"]):
            yield f"{struct['name']}.{field['name']}"


@cache
def tables() -> set[str]:
    found = set()
    for crate in CRATES:
        for path in sorted((ROOT / "rust" / crate / "src").rglob("*.rs")):
            module = path.relative_to(ROOT).with_suffix("").as_posix()
            found |= {f"{module}:{name}" for name in tables_in_rust(text(path))}
    for part in SERVING:
        place = PACKAGE / part
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            module = path.relative_to(PACKAGE).with_suffix("").as_posix()
            found |= {f"{module}:{name}" for name in tables_in(path)}
    return found


def listed() -> Counter[str]:
    return Counter(name for bound in BOUNDS.values() for name in bound["tables"])


def test_every_table_has_a_bound() -> None:
    assert sorted(tables() - listed().keys()) == [], "say in tests/tables.toml what bounds it, in bytes"


def test_every_listed_table_exists_once() -> None:
    assert sorted(listed().keys() - tables()) == [], "no such table: the line can go"
    assert [name for name, times in listed().items() if times > 1] == []


@pytest.mark.parametrize("name", BOUNDS)
def test_every_bound_is_a_row_of_the_documentation_or_says_why_none_is_needed(name: str) -> None:
    bound = BOUNDS[name]
    assert {"tables"} < bound.keys() <= {"tables", "row", "why"}
    if "row" in bound:
        assert bound["row"] in rows(), f"docs/security.md has no such row: {bound['row']}"
    else:
        assert len(str(bound["why"])) > 20


def test_a_new_table_would_be_seen(tmp_path: Path) -> None:
    source = """
known: dict[str, int] = {}
@lru_cache(maxsize=10)
def find(name): ...
class Cache:
    names: list[str] = field(default_factory=list)
    def __init__(self):
        self._seen: set[str] = set()
        self._last = OrderedDict()
        self._count = 0
"""
    rust = """
pub(crate) struct Sessions {
    /// By name.
    pub(crate) members: HashMap<String, Vec<u8>>,
    left: usize,
    seen: Mutex<Option<Py<PyDict>>>,
}
"""
    assert [*tables_in_rust(rust)] == ["Sessions.members", "Sessions.seen"]
    (tmp_path / "new.py").write_text(source)
    assert [*tables_in(tmp_path / "new.py")] == [
        "known",
        "find()",
        "Cache.names",
        "Cache._seen",
        "Cache._last",
    ]
