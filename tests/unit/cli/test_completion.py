"""Completion in bash, zsh and fish."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.harness.broker import SHARECORE

pytestmark = pytest.mark.process

SHELLS = ("bash", "zsh", "fish")
LINES = [
    ("to", {"top", "topics"}),
    ("topics de", {"describe", "delete"}),
    ("topics list --out", {"--output"}),
    ("topics list --output ", {"table", "json"}),
    ("groups reset --to-", {"--to-earliest", "--to-latest", "--to-datetime", "--to-offset"}),
    ("--show", {"--show-completion"}),
]


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(SHARECORE).parent}{os.pathsep}{os.environ['PATH']}"
    known = {**os.environ, "PATH": path, **environment}
    return subprocess.run(arguments, capture_output=True, text=True, env=known, timeout=60)


def script_of(shell: str) -> str:
    shown = run(SHARECORE, "--show-completion", shell)
    assert shown.returncode == 0, shown.stderr
    return shown.stdout


@pytest.mark.parametrize(("line", "expected"), LINES)
def test_bash_completes(line: str, expected: set[str]) -> None:
    words = f"sharecore {line}".split(" ")
    program = f"""
{script_of("bash")}
COMP_WORDS=({" ".join(word or "''" for word in words)}); COMP_CWORD={len(words) - 1}
"$(complete -p sharecore | sed 's/.*-F \\([^ ]*\\).*/\\1/')" sharecore
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    completed = run("bash", "--norc", "-c", program)
    assert completed.returncode == 0, completed.stderr
    assert set(completed.stdout.split()) == expected


@pytest.mark.parametrize(("line", "expected"), [LINES[0], LINES[4]])
def test_zsh_is_told(line: str, expected: set[str]) -> None:
    told = run(SHARECORE, _SHARECORE_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS=f"sharecore {line}")
    assert told.returncode == 0, told.stderr
    offered = {item.strip('()"').split('"')[0] for item in told.stdout.partition("((")[2].split("\n")}
    assert offered - {""} == expected


@pytest.mark.parametrize(("line", "expected"), [LINES[0], LINES[4]])
def test_fish_is_told(line: str, expected: set[str]) -> None:
    asked = {"_SHARECORE_COMPLETE": "complete_fish", "_TYPER_COMPLETE_ARGS": f"sharecore {line}"}
    told = run(SHARECORE, _TYPER_COMPLETE_FISH_ACTION="get-args", **asked)
    assert {each.split("\t")[0] for each in told.stdout.splitlines()} == expected
    assert run(SHARECORE, _TYPER_COMPLETE_FISH_ACTION="is-args", **asked).returncode == 0


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_takes_the_script() -> None:
    program = f"autoload -Uz compinit; compinit -D -u\n{script_of('zsh')}\necho $_comps[sharecore]"
    assert run("zsh", "-f", "-c", program).stdout.strip() == "_sharecore_completion"


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes(tmp_path: Path) -> None:
    (tmp_path / "sharecore.fish").write_text(script_of("fish"))
    program = f"source {tmp_path}/sharecore.fish; complete -C 'sharecore topics de'"
    completed = run("fish", "--no-config", "-c", program, HOME=str(tmp_path))
    assert [line.split("\t")[0] for line in completed.stdout.splitlines()] == ["delete", "describe"]


@pytest.mark.parametrize(
    ("shell", "file"),
    [
        ("bash", ".bash_completions/sharecore.sh"),
        ("zsh", ".zfunc/_sharecore"),
        ("fish", ".config/fish/completions/sharecore.fish"),
    ],
)
def test_the_script_is_installed_for_the_shell_that_is_named(tmp_path: Path, shell: str, file: str) -> None:
    installed = run(SHARECORE, "--install-completion", shell, HOME=str(tmp_path))
    assert installed.returncode == 0, installed.stderr
    assert f"{shell} completion installed in" in installed.stdout
    assert (tmp_path / file).read_text().strip() == script_of(shell).strip()


def test_without_a_name_it_is_the_shell_that_runs() -> None:
    shown = run("bash", "--norc", "-c", f"{SHARECORE} --show-completion; exit $?")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.rstrip().endswith("complete -o default -F _sharecore_completion sharecore")


def test_another_shell_is_refused() -> None:
    refused = run(SHARECORE, "--show-completion", "nushell")
    assert refused.returncode == 2
    assert "'nushell' is not one of 'bash', 'zsh', 'fish'" in refused.stderr
