"""The README's tour, command by command, on a broker as `make serve` starts it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.broker import ROOT, SHARECORE, Broker
from tests.harness.tour import steps_of

README = (ROOT / "README.md").read_text()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    made = Broker(tmp_path)
    made.start()
    yield made
    made.kill()


def test_the_tour_prints_what_the_readme_shows(broker: Broker) -> None:
    steps = steps_of(ROOT / "README.md")
    assert len(steps) > 4
    for command, expected in steps:
        program, *arguments = command.split()
        assert program == ".venv/bin/sharecore"
        environment = os.environ | {"SHARECORE_BOOTSTRAP_SERVER": broker.bootstrap}
        shown = subprocess.run(
            [SHARECORE, *arguments], capture_output=True, text=True, timeout=30, env=environment
        )
        assert shown.returncode == 0, f"{command}\n{shown.stderr}"
        assert shown.stdout == expected, command


def test_every_link_leads_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    for document in pages:
        for link in re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text()):
            assert (document.parent / link).exists(), f"{document.name}: {link}"


def test_files_and_targets_of_contributing_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for path in re.findall(r"`((?:rust|python|tests|packaging)/[^` ]*)`", text):
        assert (ROOT / path).exists(), path
    makefiles = "".join(each.read_text() for each in [ROOT / "Makefile", *(ROOT / "mk").glob("*.mk")])
    for target in re.findall(r"make ([a-z-]+)", text):
        assert re.search(rf"^{target}:", makefiles, re.MULTILINE), target


def test_the_two_commands_are_targets() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for command in re.findall(r"^\$ make (\w+)", README, re.MULTILINE):
        assert re.search(rf"^{command}:.*## ", makefile, re.MULTILINE)
