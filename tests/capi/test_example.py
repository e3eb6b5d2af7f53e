"""The C example compiles without a warning and does what it says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.capi.library import CAPI, ROOT, shared_library

SOURCE = ROOT / "examples/c/queue.c"
TOLD = """\
worker-1 takes 0-4, delivery 1
worker-2 takes 5-9, delivery 1
persist 0-1: state 2, delivery count 1
persist 2-2: state 0, delivery count 1
persist 3-4: state 2, delivery count 1
persist 5-9: state 0, delivery count 1
worker-1 takes 2-2, delivery 2
worker-1 takes 5-9, delivery 2
"""
STATIC = ["-pthread", "-ldl", "-lm"]


@pytest.mark.parametrize(
    "library",
    [[str(shared_library())], [str(CAPI / "lib/libsharecore.a"), *STATIC]],
    ids=["shared", "static"],
)
def test_the_example(library: list[str], tmp_path: Path) -> None:
    program = tmp_path / "queue"
    strict = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    include = f"-I{CAPI / 'include'}"
    subprocess.run(["cc", *strict, include, str(SOURCE), *library, "-o", str(program)], check=True)
    done = subprocess.run([program], check=True, capture_output=True, text=True)
    assert done.stdout == TOLD


def test_the_example_is_short() -> None:
    assert len(SOURCE.read_text().splitlines()) <= 60
