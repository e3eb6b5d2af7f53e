"""Settings of Azure Blob Storage that are wrong."""

from __future__ import annotations

import os

import pytest
from click.testing import Result
from typer.testing import CliRunner

from sharecore.cli.app import app

URL = "az://sharecore1/backups/queue"
ENDPOINT = "http://127.0.0.1:1/sharecore1"


@pytest.fixture(autouse=True)
def nothing_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("AZURE_"):
            monkeypatch.delenv(name)


def check(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["bucket", "check", URL, *arguments])


@pytest.mark.parametrize("name", ["AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT"])
def test_another_account_in_the_environment(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "sharecore2")
    result = check("--endpoint", ENDPOINT)
    assert result.exit_code == 2
    assert "the environment names the storage account sharecore2, the URL sharecore1" in result.stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [("AZURE_STORAGE_ACCOUNT_KEY", "hidden key!"), ("AZURE_STORAGE_SAS_TOKEN", "hidden&key")],
)
def test_credentials_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    result = check("--endpoint", ENDPOINT)
    assert result.exit_code == 2
    assert URL in result.stderr
    assert "hidden" not in result.output


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", "sv=2021-08-06&sr=c&sp=r&sig=hidden")
    result = check("--endpoint", ENDPOINT)
    assert result.exit_code == 2
    assert "127.0.0.1:1: Connection refused" in result.output
    assert "hidden" not in result.output


def test_an_endpoint_elsewhere_without_tls_must_be_allowed() -> None:
    result = check("--endpoint", "http://192.0.2.1:10000/sharecore1")
    assert result.exit_code == 2
    assert "without TLS" in result.stderr
