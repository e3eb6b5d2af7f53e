"""Client commands without a server."""

from __future__ import annotations

import socket
from pathlib import Path
from threading import Thread

import pytest
from click.testing import Result
from tests.harness.broker import free_port
from typer.testing import CliRunner

from sharecore.cli.app import app
from sharecore.cli.tables import show


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def silent_port() -> int:
    """Return a port without a listener."""
    return free_port()


@pytest.mark.parametrize("command", [("groups",), ("produce", "t", "v"), ("consume", "t", "--group", "g")])
def test_nobody_listens(command: tuple[str, ...], silent_port: int) -> None:
    ended = run(*command, "--bootstrap-server", f"127.0.0.1:{silent_port}")
    assert ended.exit_code == 1
    assert ended.stderr == f"sharecore: no broker at 127.0.0.1:{silent_port}: Connection refused\n"


def test_what_is_given_goes_before_the_environment(
    silent_port: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    named, given = "127.0.0.1:1", f"127.0.0.1:{silent_port}"
    refused = "sharecore: no broker at {}: Connection refused\n"
    monkeypatch.setenv("SHARECORE_BOOTSTRAP_SERVER", named)
    for command in (["list"], ["describe", "g"], ["peek", "g", "t"]):
        assert run("groups", "-b", given, *command).stderr == refused.format(given), command
        assert run("groups", command[0], "-b", given, *command[1:]).stderr == refused.format(given), command
        assert run("groups", *command).stderr == refused.format(named), command
    assert run("state", "dump").stderr == refused.format(named)
    # an explicit directory takes precedence too
    assert "exclude each other" not in run("state", "dump", "--data-dir", str(tmp_path)).stderr
    both = run("state", "dump", "--data-dir", str(tmp_path), "-b", given)
    assert "exclude each other" in both.stderr


@pytest.mark.parametrize("address", ["localhost", "localhost:", ":port", "9092"])
def test_an_address_that_is_none(address: str) -> None:
    ended = run("groups", "-b", address)
    assert ended.exit_code == 2
    assert "not HOST:PORT" in ended.stderr


@pytest.mark.heavy
def test_a_peer_that_hangs_up(silent_port: int) -> None:
    with socket.create_server(("127.0.0.1", silent_port)) as listener:
        listener.settimeout(5)
        thread = Thread(target=lambda: listener.accept()[0].close())
        thread.start()
        ended = run("groups", "list", "-b", f"127.0.0.1:{silent_port}", "--timeout", "1")
        thread.join()
    assert ended.exit_code == 1
    assert ended.stderr.startswith("sharecore: ")
    assert ended.stderr.count("\n") == 1


def test_columns_are_as_wide_as_they_have_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    show(["A", "LONG", "C"], [["wider", "x", "1"], ["y", "z", ""]])
    assert capsys.readouterr().out == "A      LONG  C\nwider  x     1\ny      z\n"
