"""`sharecore spark` without Spark."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from sharecore.cli.admin import Cluster
from sharecore.cli.app import app
from sharecore.cli.spark.common import API_TIMEOUT_MS, cause, connection

COMMANDS = ["lag", "poison", "audit", "redrive", "simulate"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_missing_extra_is_named(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    ended = CliRunner().invoke(app, ["spark", command, *(["--group", "g"] if command != "simulate" else [])])
    assert ended.exit_code == 1
    assert 'pip install "sharecore[spark]"' in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_the_command_line_does_not_load_spark() -> None:
    code = "import sys, sharecore.cli; sys.exit(bool({'pyspark', 'pyarrow', 'pandas'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_help(command: str) -> None:
    ended = CliRunner().invoke(app, ["spark", command, "--help"])
    assert ended.exit_code == 0
    assert "--master" in ended.stdout


def test_a_timeout_goes_before_the_settings_of_a_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        given = ["default.api.timeout.ms=9000", "request.timeout.ms=7000"]
        assert connection(Cluster(address))["default.api.timeout.ms"] == str(API_TIMEOUT_MS)
        chosen = connection(Cluster(address, given, None, 1.5))
    assert (chosen["default.api.timeout.ms"], chosen["request.timeout.ms"]) == ("1500", "7000")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "Spark gave no reason"),
        (
            "[PATH_NOT_FOUND] Path does not exist: file:/x.\n\nJVM stacktrace:\nmore",
            "[PATH_NOT_FOUND] Path does not exist: file:/x.",
        ),
        (
            "Aborted\nTraceback:\n  x\nsharecore.errors.KafkaError: UNKNOWN_TOPIC_OR_PARTITION: t\n\tat x",
            "UNKNOWN_TOPIC_OR_PARTITION: t",
        ),
    ],
)
def test_the_cause_of_a_spark_error(text: str, line: str) -> None:
    assert cause(text) == line
