"""`Any` in the package: none in handlers and coordinators, and nowhere more than there is."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

from tests.tidy.tree import PACKAGE, nodes

TYPED = ("broker", "config", "coordinator", "keda", "tier", "trace", "upstream", "verify", "waiting")
"""Packages without `Any`."""
MOST = {
    "adapters": 6,
    "admin": 1,
    "cli": 9,
    "client": 4,
    "coordinator_log": 2,
    "errors": 3,
    "jobs": 22,
    "logs": 2,
    "metrics": 6,
    "network": 3,
    "page": 2,
    "partition": 1,
    "persister": 1,
    "protocol": 3,
    "reference": 4,
    "schedules": 6,
    "security": 3,
    "session": 1,
    "sharestate": 1,
    "spark": 9,
    "storage": 4,
}
"""Number of times that the other packages and modules use it. It only goes down."""


def uses(path: Path) -> int:
    return sum(isinstance(node, ast.Name) and node.id == "Any" for node in nodes(path))


def test_typed_packages_have_no_any() -> None:
    files = [path for package in TYPED for path in (PACKAGE / package).rglob("*.py")]
    assert files
    assert [str(path.relative_to(PACKAGE)) for path in files if uses(path)] == []


def test_any_only_goes_down() -> None:
    found: Counter[str] = Counter()
    for path in PACKAGE.rglob("*.py"):
        found[path.relative_to(PACKAGE).parts[0].removesuffix(".py")] += uses(path)
    assert {package: times for package, times in found.items() if times > MOST.get(package, 0)} == {}, (
        "name the type"
    )
