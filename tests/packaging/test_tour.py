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
    for document in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for link in re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text()):
            assert (document.parent / link).exists(), f"{document.name}: {link}"


def test_the_two_commands_are_targets() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for command in re.findall(r"^\$ make (\w+)", README, re.MULTILINE):
        assert re.search(rf"^{command}:.*## ", makefile, re.MULTILINE)
