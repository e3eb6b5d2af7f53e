"""Docstrings begin with a short imperative, "Return the topic"; no more names lack one than today."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.tidy.tree import PACKAGE, ROOT, nodes

FIRST_LINE_MAX = 100
MISSING = {
    "adapters": 2,
    "admin": 2,
    "broker": 25,
    "cli": 6,
    "client": 43,
    "coordinator": 16,
    "jobs": 2,
    "logs": 8,
    "network": 9,
    "persister": 26,
    "reference": 40,
    "schedules": 2,
    "spark": 32,
    "storage": 24,
    "tier": 60,
    "trace": 30,
    "upstream": 1,
}
"""Number of public classes and functions without a docstring, by package. It only goes down.

Most implement an interface that describes them.
"""


def found(rules: str) -> list[str]:
    """List what ruff finds in the package, as `path:line:column: rule text`."""
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--select",
        rules,
        "--output-format",
        "concise",
        "--exit-zero",
    ]
    lines = subprocess.run([*command, "python"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [line for line in lines.splitlines() if any(f" {rule} " in line for rule in rules.split(","))]


def test_every_docstring_begins_with_an_imperative() -> None:
    assert found("D401") == []


def test_every_first_line_is_short() -> None:
    described = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    long = [
        f"{path.relative_to(ROOT)}: {text}"
        for path in PACKAGE.rglob("*.py")
        for node in nodes(path)
        if isinstance(node, described) and len(text := _first_line(node)) > FIRST_LINE_MAX
    ]
    assert long == []


def _first_line(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    return (ast.get_docstring(node) or "").partition("\n")[0]


def test_missing_docstrings_only_go_down() -> None:
    paths = [Path(line.partition(":")[0]) for line in found("D101,D102,D103")]
    missing = Counter(path.parts[2].removesuffix(".py") for path in paths if path.suffix == ".py")
    assert {package: times for package, times in missing.items() if times > MISSING.get(package, 0)} == {}, (
        "describe it"
    )
