"""What is published: workflows name targets that there are, licences the crates that are linked in."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from tests.harness.broker import ROOT

MAKEFILE = "".join(each.read_text() for each in [ROOT / "Makefile", *sorted((ROOT / "mk").glob("*.mk"))])
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
THIRD_PARTY = (ROOT / "THIRD-PARTY.md").read_text()
LOCKED = set(re.findall(r'^name = "(.+)"\nversion = "(.+)"', (ROOT / "Cargo.lock").read_text(), re.MULTILINE))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_runs_targets_and_programs_that_there_are(workflow: Path) -> None:
    text = workflow.read_text()
    targets = re.findall(r"\bmake ([a-z-]+)", text)
    assert targets
    for target in targets:
        assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE), target
    for program in re.findall(r"python (\S+\.py)", text):
        assert (ROOT / program).is_file(), program


def test_each_target_of_the_release_has_its_own_way_to_be_portable() -> None:
    targets = re.findall(r"target: ([\w-]+) }", (ROOT / ".github/workflows/release.yml").read_text())
    assert len(targets) == 6
    for target in targets:
        shown = subprocess.run(
            ["make", "--dry-run", "release-wheel", f"TARGET={target}"],
            cwd=ROOT, check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
        portable = {"gnu": "manylinux2014", "musl": "musllinux_1_2"}.get(target.rpartition("-")[2])
        assert f"--target {target}" in shown
        assert ("--zig" in shown) == (portable is not None)
        assert portable is None or f"--compatibility {portable}" in shown


def linked(*arguments: str) -> set[tuple[str, str]]:
    """Return the crates of others that a build with these arguments links in, and their versions."""
    tree = "cargo tree --locked -p sharecore-binding -e normal,no-proc-macro --prefix none"
    shown = subprocess.run(
        [*tree.split(), *arguments],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    crates = (line.split()[:2] for line in shown.splitlines() if line and not line.startswith("sharecore-"))
    return {(name, version.removeprefix("v")) for name, version in crates}


def test_the_licences_are_those_of_the_crates_that_are_linked_in() -> None:
    listed = set(re.findall(r"^\| ([\w-]+) \| (\d\S+) \|", THIRD_PARTY, re.MULTILINE))
    assert len(listed) > 20
    assert listed <= LOCKED, "make licences"
    # of a build without S3; tests/bucket checks the rest, which would have to be downloaded here
    assert linked() <= listed, "make licences"


def test_each_crate_has_its_licences_text() -> None:
    assert "ships no text" not in THIRD_PARTY
    named = {
        name for heading in re.findall(r"^## (.+)", THIRD_PARTY, re.MULTILINE) for name in heading.split(", ")
    }
    assert named == set(re.findall(r"^\| ([\w-]+) \| \d", THIRD_PARTY, re.MULTILINE))
