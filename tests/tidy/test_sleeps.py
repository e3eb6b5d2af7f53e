"""Unit tests wait for what happens, not for time: `tests.harness.until`, or a clock that they move."""

from __future__ import annotations

import ast

from tests.tidy.tree import nodes, tracked

MOST = 17
"""Calls of `time.sleep` in tests/unit. It only goes down."""


def is_sleep(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "time.sleep"


def test_sleeps_only_become_fewer() -> None:
    places = [
        f"{path}:{node.lineno}"
        for path in tracked()
        if path.parts[:2] == ("tests", "unit") and path.suffix == ".py"
        for node in nodes(path)
        if isinstance(node, ast.Call) and is_sleep(node)
    ]
    assert len(places) <= MOST, places
