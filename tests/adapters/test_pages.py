"""The programs of docs/adapters.md are programs of their frameworks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.harness.blocks import blocks

PROGRAMS = [each.text for each in blocks() if each.page == "docs/adapters.md" and each.language == "python"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_of_the_page_loads(program: str, tmp_path: Path) -> None:
    named: dict[str, Any] = {"__name__": "jobs"}
    exec(compile(program, str(tmp_path / "jobs.py"), "exec"), named)
    assert "resize" in named
