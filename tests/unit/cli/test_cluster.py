"""Which cluster a command is for, as its options, its file and the environment say."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import pytest
import typer
from click.testing import Result
from tests.harness.broker import free_port
from typer.testing import CliRunner

from sharecore.cli.app import app
from sharecore.cli.clients import VARIABLE, CommandFailed, UsageFailed, connect
from sharecore.cli.groups import groups


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def silent_port() -> int:
    """Return a port without a listener."""
    return free_port()


@pytest.fixture
def listener() -> Iterator[str]:
    """Provide the address of somebody who accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@contextmanager
def piped(text: str) -> Iterator[str]:
    """Yield a path that gives a text once, as a shell's `<(command)` does."""
    reading, writing = os.pipe()
    try:
        os.write(writing, text.encode())
        os.close(writing)
        yield f"/dev/fd/{reading}"
    finally:
        os.close(reading)


@pytest.mark.parametrize(
    "command",
    [
        ("produce", "jobs", "x"),
        ("topics", "list"),
        ("schedules", "add", "k", "v", "--to", "jobs", "--delay", "1s"),
        ("schedules", "cancel", "k"),
        ("schedules", "list"),
        ("dlq", "list", "jobs"),
        ("groups", "list"),
        ("groups", "peek", "g", "jobs"),
        ("users", "list"),
        ("verify", "-b", "{listener}"),
    ],
)
def test_settings_may_come_from_a_pipe(command: tuple[str, ...], listener: str) -> None:
    arguments = [each.format(listener=listener) for each in command]
    with piped(f"bootstrap.servers={listener}\nsecurity.protocol=nonsense\n") as path:
        ended = run(*arguments, "--command-config", path)
    assert ended.exit_code != 0
    assert "nonsense" in ended.stderr


@pytest.mark.process
def test_a_consumer_takes_its_settings_from_a_pipe(listener: str) -> None:
    with piped(f"bootstrap.servers={listener}\nsecurity.protocol=nonsense\n") as path:
        arguments = ["consume", "jobs", "--group", "g", "--command-config", path]
        ended = subprocess.run(
            [sys.executable, "-m", "sharecore", *arguments],
            pass_fds=[int(path.rpartition("/")[2])],
            capture_output=True,
            text=True,
        )
    assert ended.returncode == 1
    assert "nonsense" in ended.stderr


OF_GROUPS: dict[str, list[str]] = {
    "list": [],
    "describe": ["g"],
    "peek": ["g", "t"],
    "pause": ["g"],
    "resume": ["g"],
    "reset": ["g", "--to-latest", "--execute"],
    "reset-offsets": ["g", "--to-latest"],
    "delete-offsets": ["g", "--topic", "t"],
    "delete": ["g"],
    "config": ["g"],
    "dead-letters": ["g", "--topic", "t"],
}


@pytest.mark.parametrize("name", sorted(typer.main.get_group(groups).commands))
def test_a_cluster_given_to_groups_goes_before_the_file(name: str, silent_port: int, tmp_path: Path) -> None:
    given, another = f"127.0.0.1:{silent_port}", "127.0.0.1:1"
    (tmp_path / "client.properties").write_text(f"bootstrap.servers={another}\n")
    file = ["-c", str(tmp_path / "client.properties")]
    for arguments, address in (
        (["-b", given, name, *OF_GROUPS[name], *file], given),
        (["-b", given, *file, name, *OF_GROUPS[name]], given),
        (["-b", another, name, *OF_GROUPS[name], *file, "-b", given], given),
        ([*file, name, *OF_GROUPS[name]], another),
    ):
        ended = run("groups", *arguments)
        assert ended.stderr == f"sharecore: no broker at {address}: Connection refused\n", arguments


def test_any_of_several_addresses_will_do(silent_port: int, listener: str) -> None:
    connect(f"127.0.0.1:{silent_port}, {listener}").close()
    connect(f"PLAINTEXT://{listener} ,,127.0.0.1:{silent_port}").close()


def test_each_address_without_a_broker_is_named(silent_port: int) -> None:
    ended = run("groups", "-b", f"127.0.0.1:{silent_port}, 127.0.0.1:1")
    assert ended.stderr == (
        f"sharecore: no broker at 127.0.0.1:{silent_port}: Connection refused; "
        "127.0.0.1:1: Connection refused\n"
    )


def test_addresses_that_do_not_answer_share_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now, given = 0.0, []

    def hang(_: tuple[str, int], seconds: float) -> socket.socket:
        nonlocal now
        given.append(seconds)
        now += seconds
        raise TimeoutError("timed out")

    monkeypatch.setattr("sharecore.cli.clients.time.monotonic", lambda: now)
    monkeypatch.setattr("sharecore.cli.clients.socket.create_connection", hang)
    with pytest.raises(CommandFailed, match="no broker at a:1: timed out; b:2: timed out; c:3: timed out"):
        connect("a:1,b:2,c:3", 3)
    assert given == [1.0, 1.0, 1.0]


def test_an_invalid_address_is_named_with_where_it_stands(tmp_path: Path) -> None:
    (tmp_path / "client.properties").write_text("bootstrap.servers=a:1,b\n")
    ended = run("groups", "-c", str(tmp_path / "client.properties"))
    assert (ended.exit_code, ended.stderr) == (2, "sharecore: bootstrap.servers=a:1,b: not HOST:PORT\n")
    with pytest.raises(UsageFailed, match=r"--bootstrap-server a:65536: not HOST:PORT"):
        connect("a:65536")


def properties(directory: Path, address: str) -> list[str]:
    """Return the option for a file that names a cluster."""
    (directory / "client.properties").write_text(f"bootstrap.servers={address}\n")
    return ["--command-config", str(directory / "client.properties")]


def test_the_dashboard_shows_the_cluster_of_the_file(
    listener: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = []

    async def ends(server: Any) -> None:
        shown.append(server._page._config.about)

    monkeypatch.setattr("sharecore.cli.dashboard._serve", ends)
    ended = run("dashboard", "--listen", "127.0.0.1:0", *properties(tmp_path, listener))
    assert ended.stdout.startswith(f"the page of {listener} is on http://127.0.0.1:")
    assert shown == [listener]


def test_top_shows_the_cluster_of_the_file(
    listener: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from click import testing

    shown = []

    class Top:
        def __init__(self, _: Any, cluster: str, __: float) -> None:
            shown.append(cluster)

        async def run_async(self) -> None: ...

    async def look(_: Any) -> None: ...

    monkeypatch.setattr(testing._NamedTextIOWrapper, "isatty", lambda _: True, raising=False)
    monkeypatch.setattr("sharecore.cli.top.app.Top", Top)
    monkeypatch.setattr("sharecore.admin.watch.Watch.look", look)
    assert run("top", *properties(tmp_path, listener)).exit_code == 0
    assert shown == [listener]


@pytest.mark.parametrize(
    ("name", "report", "fact"),
    [
        ("lag", "lag_report", "cluster"),
        ("poison", "poison_report", "cluster"),
        ("audit", "audit_report", "state of"),
        ("redrive", "redrive_report", "cluster"),
    ],
)
def test_reports_of_jobs_show_the_cluster_of_the_file(
    name: str, report: str, fact: str, listener: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = []
    for module in ("pyspark", "pyspark.sql", "pyspark.sql.functions", f"sharecore.jobs.{name}"):
        monkeypatch.setitem(sys.modules, module, MagicMock())
    monkeypatch.setattr(f"sharecore.jobs.{name}", MagicMock(), raising=False)
    for module in ("state", "cluster", "progress", "delivery", f"{name}_report"):
        monkeypatch.setitem(sys.modules, f"sharecore.jobs.{module}", MagicMock(SHOWN_MAX=1))
    sys.modules["sharecore.jobs.cluster"].delivery_limit.return_value = 5

    def reported(*given: Any) -> None:
        shown.append(given[-1][fact])

    setattr(sys.modules[f"sharecore.jobs.{name}_report"], report, reported)
    command: ModuleType = import_module(f"sharecore.cli.spark.{name}")
    for what, instead in (
        ("failures", nullcontext),
        ("session", lambda *_: nullcontext(MagicMock())),
        ("collect", lambda *_: []),
        ("write_report", lambda *_: None),
        ("_show", lambda *_: None),
        ("History", lambda *_: MagicMock(facts={}, plan=lambda *_: [])),
    ):
        monkeypatch.setattr(command, what, instead, raising=False)
    ended = run("spark", name, "--group", "g", *properties(tmp_path, listener))
    assert (ended.exit_code, shown) == (0, [listener]), ended.output
