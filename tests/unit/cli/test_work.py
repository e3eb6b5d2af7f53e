"""How `sharecore work` finds a worker, and what it says where it finds none."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharecore.cli.clients import CommandFailed
from sharecore.cli.work import load


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import not_there.at_all\n", "the module not_there is missing; install its package"),
        (
            "from sharecore.client import worker\n\n@worker('t', concurrency=0)\ndef handle(record): ...\n",
            "line 3: concurrency=0: must be",
        ),
        ("def handle(record): ...\n", "handle is not a worker; decorate it"),
        ("handle = None\n", "has no such name"),
    ],
)
def test_a_module_without_a_worker_is_a_line_that_says_what_to_do(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"jobs_{abs(hash(text))}"
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(CommandFailed) as raised:
        load(f"{name}:handle")
    assert said in str(raised.value)
    with pytest.raises(CommandFailed, match="there is no module nowhere"):
        load("nowhere:handle")
