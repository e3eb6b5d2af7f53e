"""Docstrings begin with an imperative: "Return the topic", not "Returns the topic" or "The topic"."""

from __future__ import annotations

import subprocess
import sys

from tests.tidy.tree import ROOT


def test_every_docstring_begins_with_an_imperative() -> None:
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--select",
        "D401",
        "--output-format",
        "concise",
        "--exit-zero",
        "python",
    ]
    found = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert [line for line in found.splitlines() if "D401" in line] == []
