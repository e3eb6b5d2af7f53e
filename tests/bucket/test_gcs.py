"""Google Cloud Storage as a bucket, beside a server that is wrong in one way at a time."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result
from tests.harness.s3 import BUCKET, S3Server, s3_server
from typer.testing import CliRunner

from sharecore.cli.app import app
from sharecore.storage.bucket import BucketPlace, Probe, probe, reaches_clouds

URL = f"gs://{BUCKET}/queue"
SECRET = "ya29.hidden-token"


@pytest.fixture(autouse=True)
def nothing_of_the_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert reaches_clouds(), "this build does not reach Google Cloud Storage: make bucket"
    for name in list(os.environ):
        if name.startswith(("GOOGLE_", "STORAGE_EMULATOR_")):
            monkeypatch.delenv(name)
    # gcloud's file of credentials
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def gcs() -> Iterator[S3Server]:
    with s3_server() as server:
        server.is_google = True
        yield server


def probed(gcs: S3Server) -> Probe:
    return probe(BucketPlace(URL, gcs.endpoint))


def check(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["bucket", "check", *arguments])


def test_a_bucket_that_is_right(gcs: S3Server) -> None:
    found = probed(gcs)
    assert (found.verdict, found.why) == ("fit", "")
    assert gcs.objects == {}


def test_creates_that_race_wrong_are_refused_with_the_reason(gcs: S3Server) -> None:
    gcs.is_racy = True
    found = probed(gcs)
    assert found.verdict == "unfit"
    assert "creates are not atomic" in found.why


def test_a_server_that_ignores_the_condition_is_refused(gcs: S3Server) -> None:
    gcs.is_google = False
    found = probed(gcs)
    assert found.verdict == "unfit"
    assert "its condition is ignored" in found.why


@pytest.mark.parametrize(
    ("missing", "right", "verdict"),
    [
        ("Get", "storage.objects.get", "unknown"),
        ("Put", "storage.objects.create", "unknown"),
        ("List", "storage.objects.list", "unknown"),
        ("Delete", "storage.objects.delete", "grows"),
    ],
)
def test_each_missing_right_by_itself_is_named(gcs: S3Server, missing: str, right: str, verdict: str) -> None:
    gcs.denied = {missing}
    found = probed(gcs)
    assert found.verdict == verdict
    assert "403 AccessDenied: sa@project does not have storage.objects." in found.why
    assert f"Allow {right}" in found.why


def test_credentials_that_are_refused(gcs: S3Server) -> None:
    gcs.status = 401
    found = probed(gcs)
    assert found.verdict == "unknown"
    assert "Correct the credentials in the environment" in found.why


def test_a_token_is_not_sent_in_plain_text(gcs: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_BEARER_TOKEN", SECRET)
    assert probed(gcs).verdict == "fit"
    assert {headers["authorization"] for headers in gcs.headers} == {"Bearer none"}


@pytest.mark.parametrize("scheme", ["", "http://"])
def test_the_emulator_of_the_environment(gcs: S3Server, monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", scheme + gcs.endpoint.removeprefix("http://"))
    assert check(URL).exit_code == 0


@pytest.mark.parametrize(
    "content", [None, "no JSON", json.dumps({"type": "unheard_of", "private_key": SECRET})]
)
def test_a_file_of_credentials_that_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None
) -> None:
    path = tmp_path / "key.json"
    if content is not None:
        path.write_text(content)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
    result = check(URL)
    assert result.exit_code == 2
    assert URL in result.stderr
    assert SECRET not in result.output


def test_an_endpoint_elsewhere_without_tls_must_be_allowed() -> None:
    result = check(URL, "--endpoint", "http://192.0.2.1:4443")
    assert result.exit_code == 2
    assert "without TLS" in result.stderr
