"""Every setting that works has a test that shows its effect: `tests/probes.toml` says which."""

from __future__ import annotations

import ast
from functools import cache

import pytest
import tomllib
from tests.tidy.tree import ROOT, parsed, text

from sharecore.config import Status, broker_keys, group_keys, topic_keys

PROBES: dict[str, dict[str, str]] = tomllib.loads((ROOT / "tests/probes.toml").read_text())
KEYS = {"broker": broker_keys(), "topic": topic_keys(), "group": group_keys()}


@cache
def functions_in(path: str) -> set[str]:
    tree = parsed(ROOT / path)
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in tree.body if isinstance(node, functions)}


@pytest.mark.parametrize("scope", KEYS)
def test_every_setting_that_works_has_its_probe(scope: str) -> None:
    working = {name for name, (_, key) in KEYS[scope].items() if key.status is Status.WORKS}
    assert sorted(working - PROBES[scope].keys()) == [], (
        "say in tests/probes.toml which test shows its effect"
    )
    assert sorted(PROBES[scope].keys() - working) == [], "no such setting: the line can go"


@pytest.mark.parametrize("scope", KEYS)
def test_every_probe_is_there_and_names_its_setting(scope: str) -> None:
    for name, probe in PROBES[scope].items():
        path, _, test = probe.partition("::")
        assert test in functions_in(path), f"{name}: no test {probe}"
        source = text(ROOT / path)
        assert name in source or KEYS[scope][name][0] in source, f"{probe} does not name {name}"
