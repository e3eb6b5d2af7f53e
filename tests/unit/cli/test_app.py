"""The program around its commands: what it loads before them, and their output."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sharecore.cli.app import app

pytestmark = pytest.mark.process


def test_the_program_starts_without_what_only_some_commands_need() -> None:
    code = "import sys, sharecore.cli.app; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ours = {name for name in done.stdout.split() if name.startswith("sharecore.")}
    assert ours == {
        "sharecore._core",
        "sharecore.cli",
        "sharecore.cli.app",
        "sharecore.cli.completion",
        "sharecore.cli.typers",
    }


@pytest.mark.parametrize(
    ("command", "meant"), [(["grups"], "groups"), (["topics", "lst"], "list")], ids=["program", "group"]
)
def test_an_unknown_command_gets_one_suggestion(command: list[str], meant: str) -> None:
    shown = CliRunner().invoke(app, command)
    assert shown.exit_code == 2
    assert shown.output.count(f"Did you mean '{meant}'?") == 1


@pytest.mark.parametrize("loading", ["app", "dlq", "clients"])
def test_ctrl_c_ends_it_quietly_while_it_loads(loading: str) -> None:
    code = (
        "import sys\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == 'sharecore.cli.{loading}':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "sys.argv = ['sharecore', 'dlq', 'list']\n"
        "from sharecore.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr.strip()) == (130, "", "")


@pytest.mark.parametrize("command", ["config explain node.id", "config example", "--help"])
def test_output_that_finds_no_room_is_said_in_one_line(command: str) -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "sharecore", *command.split()],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (ended.returncode, ended.stderr) == (1, "sharecore: [Errno 28] No space left on device\n")


def test_a_reader_that_has_enough_ends_it_quietly() -> None:
    words = f"{sys.executable} -m sharecore config example | head -n 1; exit ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=False)
    assert ended.stdout.count("\n") == 1
    assert ended.stderr == ""
