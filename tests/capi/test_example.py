"""The C examples compile without a warning and do what they say."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.capi.library import CAPI, ROOT, shared_library

EXAMPLES = ROOT / "examples/c"
QUEUE = """\
worker-1 takes 0-4, delivery 1
worker-2 takes 5-9, delivery 1
persist 0-1: state 2, delivery count 1
persist 2-2: state 0, delivery count 1
persist 3-4: state 2, delivery count 1
persist 5-9: state 0, delivery count 1
worker-1 takes 2-2, delivery 2
worker-1 takes 5-9, delivery 2
"""
ORDERED = """\
0 ms: takes 0-1
2 acquired, 2 behind, 0 in back-off; key 7 has 3 records from 0
0 acquired, 2 behind, 1 in back-off until 1020 ms; key 7 has 3 records from 0
1020 ms: takes 0-0
"""
STATIC = ["-pthread", "-ldl", "-lm"]


@pytest.mark.parametrize(("name", "told"), [("queue", QUEUE), ("ordered", ORDERED)])
@pytest.mark.parametrize(
    "library",
    [[str(shared_library())], [str(CAPI / "lib/libsharecore.a"), *STATIC]],
    ids=["shared", "static"],
)
def test_the_examples(library: list[str], name: str, told: str, tmp_path: Path) -> None:
    program = tmp_path / name
    strict = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    include = f"-I{CAPI / 'include'}"
    subprocess.run(
        ["cc", *strict, include, str(EXAMPLES / f"{name}.c"), *library, "-o", str(program)], check=True
    )
    done = subprocess.run([program], check=True, capture_output=True, text=True)
    assert done.stdout == told


def test_the_example_is_short() -> None:
    assert len((EXAMPLES / "queue.c").read_text().splitlines()) <= 60
