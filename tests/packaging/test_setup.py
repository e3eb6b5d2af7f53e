"""A machine that lacks a tool is told so in one line, with the command that installs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.harness.broker import ROOT

BASICS = ("bash", "cut", "head", "sed", "sort")


def need(tool: str, path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOT / ".ci/need", tool],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={"PATH": str(path), **environment},
    )


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """Return a directory of programs with none of the tools that the project needs."""
    for name in BASICS:
        (tmp_path / name).symlink_to(shutil.which(name) or name)
    (tmp_path / "env").symlink_to("/usr/bin/env")
    return tmp_path


@pytest.mark.parametrize(
    ("tool", "command"),
    [
        ("python", "apt install -y python3"),
        ("cargo", "rustup.rs"),
        ("clippy", "rustup component add"),
        ("java", "apt install -y openjdk"),
        ("maven", "apt install -y maven"),
    ],
)
def test_a_missing_tool(bare: Path, tool: str, command: str) -> None:
    ended = need(tool, bare)
    assert ended.returncode != 0
    assert ended.stdout == ""
    assert ended.stderr.count("\n") == 1
    assert command in ended.stderr


def test_an_old_cargo(bare: Path) -> None:
    cargo = bare / "cargo"
    cargo.write_text("#!/bin/bash\necho cargo 1.63.0 '(fd9c4297c 2022-07-01)'\n")
    cargo.chmod(0o755)
    ended = need("cargo", bare)
    assert ended.returncode != 0
    assert "1.63.0 is older than" in ended.stderr


def test_what_is_there_is_not_asked_for() -> None:
    for tool in ("python", "cargo", "clippy", "java", "maven"):
        ended = need(tool, Path(os.environ["PATH"]), PYTHON=sys.executable, HOME=os.environ["HOME"])
        assert (ended.returncode, ended.stderr) == (0, ""), tool


def test_ci_runs_the_readmes_command() -> None:
    assert "\nmake test\n" in (ROOT / ".ci/run").read_text()
