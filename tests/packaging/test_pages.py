"""Pages of the documentation: their commands run, their pictures and examples show what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.docs.pictures import DIRECTORY, PICTURES, draw
from tests.harness.broker import ROOT
from tests.harness.tour import Shell, steps_of


def test_commands_of_operations(tmp_path: Path) -> None:
    steps = steps_of(ROOT / "docs/operations.md")
    assert len(steps) > 10
    shell = Shell(tmp_path)
    try:
        for step in steps:
            printed = shell.run(step.command)
            assert step.is_what_was_printed(printed), f"{step.command}\n{printed}"
    finally:
        shell.stop()


def test_pictures_are_what_the_engine_does() -> None:
    for name, story in PICTURES.items():
        assert (DIRECTORY / f"{name}.svg").read_text() == draw(list(story())), "make pictures"
    assert {path.stem for path in DIRECTORY.iterdir()} == set(PICTURES)


def test_the_example_of_the_engine_prints_what_the_page_shows() -> None:
    page = (ROOT / "docs/embedding.md").read_text()
    code = re.search(r"<!-- example -->\n```python\n(.*?)```", page, re.DOTALL)
    shown = re.search(r"<!-- output -->\n```\n(.*?)```", page, re.DOTALL)
    assert code is not None
    assert shown is not None
    done = subprocess.run([sys.executable, "-c", code[1]], capture_output=True, text=True, check=True)
    assert done.stdout == shown[1]


def test_every_page_is_in_the_site() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        assert f" {page.relative_to(ROOT / 'docs')}\n" in navigation, f"mkdocs.yml does not list {page.name}"
