"""Pages of the documentation: their commands run, their pictures and examples show what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.pictures import DIRECTORY, PICTURES, draw
from tests.harness.broker import ROOT, SHARECORE, Broker
from tests.harness.tier import VERSIONS
from tests.harness.tour import Shell, steps_of


def follow(page: str, shell: Shell, steps_min: int) -> None:
    """Run a page's commands, which print what it shows."""
    steps = steps_of(ROOT / page)
    assert len(steps) >= steps_min
    try:
        for step in steps:
            printed = shell.run(step.command)
            assert step.is_what_was_printed(printed), f"{step.command}\n{printed}"
    finally:
        shell.stop()


def test_commands_of_operations(tmp_path: Path) -> None:
    follow("docs/operations.md", Shell(tmp_path), 11)


@pytest.mark.long
def test_from_a_cluster_to_a_tier_in_five_commands(tmp_path: Path) -> None:
    cluster = Broker(tmp_path / "cluster", "apache", libs=VERSIONS["3.9.1"])
    cluster.start()
    try:
        words = [SHARECORE, "produce", "-b", cluster.bootstrap, "orders", "one", "two", "three"]
        subprocess.run(words, check=True, capture_output=True)
        few = {"SHARECORE_TIER_REPLICATION_FACTOR": "1", "SHARECORE_TIER_MIN_INSYNC_REPLICAS": "1"}
        follow("docs/tier.md", Shell(tmp_path, KAFKA=cluster.bootstrap, **few), 5)
    finally:
        cluster.kill()


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
