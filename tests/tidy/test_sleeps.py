"""Unit tests wait for what happens, not for time: `tests.harness.until`, or a clock that they move."""

from __future__ import annotations

import ast

from tests.tidy.tree import nodes, tracked

MOST = {"time.sleep": 17, "asyncio.sleep": 239}
"""Calls in tests/unit that wait for some time. It only goes down."""


def sleep(node: ast.Call) -> str:
    """Return the function if the call waits for some time; `asyncio.sleep(0)` only lets others run."""
    name = ast.unparse(node.func)
    return name if name in MOST and ast.unparse(node.args[0]) != "0" else ""


def test_sleeps_only_become_fewer() -> None:
    found: dict[str, list[str]] = {name: [] for name in MOST}
    for path in tracked():
        if path.parts[:2] == ("tests", "unit") and path.suffix == ".py":
            for node in nodes(path):
                if isinstance(node, ast.Call) and (name := sleep(node)):
                    found[name].append(f"{path}:{node.lineno}")
    for name, places in found.items():
        assert len(places) <= MOST[name], places
