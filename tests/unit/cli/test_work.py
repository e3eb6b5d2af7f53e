"""How `sharecore work` finds a worker, and what it says where it finds none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sharecore.cli.clients import VARIABLE, CommandFailed
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


CONNECTING = """
from sharecore.client import worker

@worker("jobs", group_id="g", bootstrap_servers="127.0.0.1:1")
def handle(record): ...
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("arguments", "environment", "address"),
    [
        (["work", "connecting:handle"], {}, "127.0.0.1:1"),
        (["work", "connecting:handle", "-c", "client.properties"], {}, "127.0.0.1:2"),
        (["work", "connecting:handle", "-c", "client.properties", "-b", "127.0.0.1:3"], {}, "127.0.0.1:3"),
        (["work", "connecting:handle", "-s", "bootstrap.servers=127.0.0.1:5"], {}, "127.0.0.1:5"),
        (
            ["work", "connecting:handle", "-s", "bootstrap.servers=127.0.0.1:5", "-b", "127.0.0.1:3"],
            {},
            "127.0.0.1:3",
        ),
        (["work", "connecting:handle"], {VARIABLE: "127.0.0.1:4"}, "127.0.0.1:4"),
        (["groups", "list", "-c", "client.properties"], {}, "127.0.0.1:2"),
        (["groups", "list", "-s", "bootstrap.servers=127.0.0.1:5"], {}, "127.0.0.1:5"),
        (["groups", "list", "-c", "client.properties", "-b", "127.0.0.1:3"], {}, "127.0.0.1:3"),
        (["produce", "jobs", "x", "-c", "client.properties"], {VARIABLE: "127.0.0.1:4"}, "127.0.0.1:4"),
    ],
)
def test_a_cluster_named_anywhere_goes_before_the_default(
    arguments: list[str], environment: dict[str, str], address: str, tmp_path: Path
) -> None:
    (tmp_path / "connecting.py").write_text(CONNECTING)
    (tmp_path / "client.properties").write_text("bootstrap.servers=127.0.0.1:2\n")
    inherited = {name: value for name, value in os.environ.items() if name != VARIABLE}
    with subprocess.Popen(
        [sys.executable, "-m", "sharecore", *arguments],
        cwd=tmp_path,
        env=inherited | environment,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        process.terminate()
    assert f"no broker at {address}:" in line or f"event=no answer worker=handle brokers={address} " in line
