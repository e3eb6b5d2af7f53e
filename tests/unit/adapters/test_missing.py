"""An adapter without its framework says what to install."""

from __future__ import annotations

import importlib
import sys

import pytest

FRAMEWORKS = {"taskiq": "taskiq", "kombu": "celery", "dramatiq": "dramatiq"}
"""Extras by framework module; our modules have the same names."""


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_framework_that_is_missing_is_named_with_its_extra(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in [each for each in sys.modules if each == name or each.startswith(f"{name}.")]:
        monkeypatch.delitem(sys.modules, each)
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"sharecore.adapters.{name}", raising=False)
    with pytest.raises(ImportError, match=rf"run: pip install 'sharecore\[{FRAMEWORKS[name]}\]'"):
        importlib.import_module(f"sharecore.adapters.{name}")
