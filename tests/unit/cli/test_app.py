"""What the program loads before it knows which command it runs."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from sharecore.cli.app import app


def test_the_program_starts_without_what_only_some_commands_need() -> None:
    code = "import sys, sharecore.cli.app; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ours = {name for name in done.stdout.split() if name.startswith("sharecore.")}
    assert ours == {"sharecore._core", "sharecore.cli", "sharecore.cli.app", "sharecore.cli.typers"}


def test_a_command_that_is_not_there_brings_one_that_may_be_meant() -> None:
    shown = CliRunner().invoke(app, ["grups"])
    assert shown.exit_code == 2
    assert "Did you mean 'groups'?" in shown.output


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
