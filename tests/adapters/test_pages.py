"""The programs of docs/adapters.md are programs of their frameworks."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
from tests.harness.blocks import blocks

PROGRAMS = [each.text for each in blocks() if each.page == "docs/adapters.md" and each.language == "python"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_of_the_page_loads(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jobs.py").write_text(program)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "jobs", raising=False)
    assert importlib.import_module("jobs").resize is not None
