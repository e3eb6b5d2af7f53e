"""`sharecore verify` on recorded histories: output and exit status."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from typer.testing import CliRunner

from sharecore.cli.app import app

PAGE = (Path(__file__).parents[3] / "docs/verify.md").read_text()


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["verify", *arguments])
    return done.exit_code, done.output


def example(directory: Path) -> Path:
    """Return the history in docs/verify.md."""
    found = re.search(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    path = directory / "run.jsonl"
    path.write_text(found[1])
    return path


def test_a_breach_is_shown_with_its_lines_as_the_page_says(tmp_path: Path) -> None:
    status, output = run("--history", str(example(tmp_path)))
    assert status == 1
    assert f"$ sharecore verify --history run.jsonl\n{output}```" in PAGE


def test_a_history_without_a_breach_ends_with_0(tmp_path: Path) -> None:
    path = example(tmp_path)
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:4]))
    status, output = run("--history", str(path), "--report", str(tmp_path / "run.html"))
    assert (status, "no breach" in output) == (0, True)
    assert "<html" in (tmp_path / "run.html").read_text()


def test_what_proves_nothing_ends_with_2(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("x\n")
    assert run("--history", str(broken)) == (2, f"sharecore: {broken}: line 1 is not JSON: " + error())
    status, output = run("--history", str(tmp_path / "missing"))
    assert (status, "No such file" in output) == (2, True)
    status, output = run("--history", str(example(tmp_path)), "--report", str(tmp_path / "no/where.html"))
    assert (status, "cannot be written" in output) == (2, True)
    assert run()[0] == 2


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["-b", "x:1", "--nodes", "3"], "are for --nemesis"),
        (["-b", "x:1", "--link", "1:2"], "are for --nemesis"),
        (["-b", "x:1", "--step-clocks"], "are for --nemesis"),
        (["--nemesis", "--nodes", "3"], "--nodes needs --broker"),
        (["--nemesis", "--standby", "--broker", "x"], "--standby needs --nodes 2 or more"),
        (["--nemesis", "--link", "9092"], "--link 9092: must be two ports of this machine, PORT:TARGET"),
        (["--nemesis", "--link", "1:65536"], "--link 1:65536: must be two ports"),
    ],
)
def test_faults_that_are_not_possible_are_refused(arguments: list[str], error: str) -> None:
    status, output = run(*arguments)
    assert status == 2
    assert error in output


def test_clocks_cannot_be_stepped_without_the_library() -> None:
    with mock.patch("sharecore.verify.nemesis.clock.Clock.can_step", False):
        status, output = run("--nemesis", "--step-clocks")
    assert status == 2
    assert output == "sharecore: --step-clocks needs libfaketime. Run: apt-get install libfaketime\n"


def test_a_cluster_that_is_not_there_proves_nothing() -> None:
    with socket.socket() as taken:  # bound, but not listening
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert run("-b", address) == (2, f"sharecore: no broker at {address}: Connection refused\n")


def test_a_run_whose_broker_ends_keeps_its_history_and_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = example(tmp_path).read_text()

    async def load(plan: object, broken: object, home: Path, path: Path) -> list[str]:
        path.write_text(recorded)
        (home / "broker.log").write_text("out of luck")
        raise RuntimeError("the broker ended with 3")

    monkeypatch.setattr("sharecore.cli.verify._load", load)
    monkeypatch.chdir(tmp_path)
    arguments = ["--nemesis", "--seed", "7"]
    kept = [
        "sharecore: the broker ended with 3",
        "the history until then is verify-7.jsonl",
        "Run: sharecore verify --history verify-7.jsonl",
        "the log of broker 1 is verify-7.broker-1.log",
    ]
    assert run(*arguments) == (2, "\n".join(["seed 7", *kept, ""]))
    assert run("--history", "verify-7.jsonl")[0] == 1
    assert (tmp_path / "verify-7.broker-1.log").read_text() == "out of luck"
    status, output = run(*arguments, "--output", "own.jsonl")
    assert (status, "the history until then is own.jsonl" in output) == (2, True)
    old = (tmp_path / "own.jsonl").stat().st_mtime_ns

    async def refuse(plan: object, broken: object, home: Path, path: Path) -> list[str]:
        raise RuntimeError("the broker ended with 3")

    with monkeypatch.context() as other:
        other.setattr("sharecore.cli.verify._load", refuse)
        assert run(*arguments, "--output", "own.jsonl") == (2, "seed 7\nsharecore: the broker ended with 3\n")
    assert (tmp_path / "own.jsonl").stat().st_mtime_ns == old
    (tmp_path / "verify-7.jsonl").unlink()
    (tmp_path / "verify-7.jsonl").mkdir()
    status, output = run(*arguments)
    assert (status, "cannot be kept as verify-7.jsonl: Is a directory" in output) == (2, True)
    assert "Run:" not in output


def test_each_client_gets_the_settings_that_it_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[Any] = []
    monkeypatch.setattr("sharecore.cli.verify.Cluster.check", lambda _: None)

    def take(plan: Any, *_: Any) -> mock.Mock:
        plans.append(plan)
        return mock.Mock(counts={})

    monkeypatch.setattr("sharecore.cli.verify._run", take)
    options = ("--timeout", "7", "--set", "socket.timeout.ms=900", "--set", "sasl.oauthbearer.token=abc")
    assert run("-b", "localhost:1", *options)[0] == 0
    (plan,) = plans
    assert plan.confluent["socket.timeout.ms"] == "900"
    assert callable(plan.confluent["oauth_cb"])
    assert "socket.timeout.ms" not in plan.settings
    assert plan.settings["default.api.timeout.ms"] == "7000"


def error() -> str:
    return "Expecting value: line 1 column 1 (char 0)\n"
