"""S3 as a bucket, beside a server that is wrong in one way at a time. It takes `make bucket`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from click.testing import Result
from tests.harness.s3 import BUCKET, S3Server, s3_server
from typer.testing import CliRunner

from sharecore.cli.app import app
from sharecore.errors import ConfigError
from sharecore.storage.bucket import BucketPlace, CopyOptions, Probe, probe, reaches_clouds

URL = f"s3://{BUCKET}/queue"
SECRET = "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY"


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reaches_clouds(), "this build does not reach S3: make bucket"
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)


@pytest.fixture
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


def probed(s3: S3Server, url: str = URL) -> Probe:
    found = probe(BucketPlace(url, s3.endpoint))
    assert "AKIDEXAMPLE" not in repr(found)
    assert SECRET not in repr(found)
    return found


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["bucket", *arguments])


def test_a_bucket_that_is_right(s3: S3Server) -> None:
    found = probed(s3)
    assert (found.verdict, found.why) == ("fit", "")
    assert s3.objects == {}
    keys = [request for request in s3.requests if not request.startswith("GET /backups?")]
    assert all(key.split()[1].startswith("/backups/queue/probe/") for key in keys)


def test_creates_that_race_wrong_are_refused_with_the_reason(s3: S3Server) -> None:
    s3.is_racy = True
    found = probed(s3)
    assert found.verdict == "unfit"
    assert "creates are not atomic" in found.why
    assert "two brokers could both lead" in found.why
    result = run("check", URL, "--endpoint", s3.endpoint)
    assert result.exit_code == 1
    assert result.stdout.endswith(f"{URL} must not be used\n")
    assert s3.objects == {}


@pytest.mark.parametrize(
    ("missing", "right", "verdict"),
    [
        ("Get", "s3:GetObject", "unknown"),
        ("Put", "s3:PutObject", "unknown"),
        ("List", "s3:ListBucket", "unknown"),
        ("Delete", "s3:DeleteObject", "grows"),
    ],
)
def test_each_missing_right_by_itself_is_named(s3: S3Server, missing: str, right: str, verdict: str) -> None:
    s3.denied = {missing}
    found = probed(s3)
    assert found.verdict == verdict
    assert "403 AccessDenied" in found.why
    assert f"Allow {right}" in found.why


def test_a_lifecycle_rule_that_deletes_objects_is_refused(s3: S3Server) -> None:
    s3.rules = (
        "<Rule><ID>tidy up</ID><Filter><Prefix>qu</Prefix></Filter><Status>Enabled</Status>"
        "<Expiration><Days>30</Days></Expiration></Rule>"
    )
    result = run("check", URL, "--endpoint", s3.endpoint)
    assert result.exit_code == 1
    assert "rule tidy up deletes objects below queue/" in result.stdout
    assert result.stdout.endswith(f"{URL} must not be used\n")
    s3.denied = {"GetLifecycle"}
    assert probed(s3).verdict == "fit", "the rules cannot be read"
    s3.denied = set()
    assert probed(s3, f"s3://{BUCKET}/other").verdict == "fit"


def test_a_bucket_that_does_not_exist(s3: S3Server) -> None:
    found = probed(s3, "s3://elsewhere/queue")
    assert found.verdict == "unknown"
    assert "404 NoSuchBucket" in found.why
    assert "Create the bucket, or correct its name" in found.why


def test_a_server_that_has_no_time_is_asked_once(s3: S3Server) -> None:
    s3.status = 503
    found = probed(s3)
    assert found.verdict == "unknown"
    assert "503 SlowDown" in found.why
    assert len(s3.requests) == len(set(s3.requests)), "trying again is not the transport's"


def test_a_conflict_does_not_say_who_won(s3: S3Server) -> None:
    s3.status = 409
    assert {check.outcome for check in probed(s3).checks} == {"unanswered"}


def test_a_server_that_is_not_there() -> None:
    with s3_server() as s3:
        gone = s3.endpoint
    found = probe(BucketPlace(URL, gone))
    assert found.verdict == "unknown"
    assert f"{gone.removeprefix('http://')}: Connection refused" in found.why


def test_requests_are_signed_and_say_what_they_hold(s3: S3Server) -> None:
    probed(s3)
    for headers in s3.headers:
        assert headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
        assert SECRET not in repr(headers)


def test_bodies_are_not_hashed_where_nobody_can_change_them(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hashes() -> set[str]:
        s3.headers.clear()
        probed(s3)
        return {
            headers["x-amz-content-sha256"] for headers in s3.headers if int(headers.get("content-length", 0))
        }

    assert hashes() == {"UNSIGNED-PAYLOAD"}
    monkeypatch.setenv("AWS_UNSIGNED_PAYLOAD", "false")
    assert "UNSIGNED-PAYLOAD" not in hashes()


def test_names_that_fill_more_than_one_page(s3: S3Server) -> None:
    s3.objects = {f"queue/probe/{number:032x}-x": b"" for number in range(2500)}
    assert probed(s3).verdict == "fit"


@pytest.mark.parametrize(
    ("endpoint", "says"),
    [
        ("http://192.0.2.1:9000", "without TLS"),
        ("s3.example", "not a URL"),
        ("https://user:hidden@s3.example", "credentials come from the environment"),
    ],
)
def test_an_endpoint_that_is_refused(endpoint: str, says: str) -> None:
    result = run("check", URL, "--endpoint", endpoint)
    assert result.exit_code == 2
    assert says in result.stderr
    assert "hidden" not in result.output


def test_the_endpoint_of_the_environment(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.endpoint)
    assert run("check", URL).exit_code == 0


def test_the_region_is_part_of_the_signature(s3: S3Server) -> None:
    assert probe(BucketPlace(URL, s3.endpoint, region="eu-somewhere-1")).verdict == "fit"
    assert all("/eu-somewhere-1/s3/aws4_request" in headers["authorization"] for headers in s3.headers)


def test_a_server_elsewhere_without_tls_must_be_allowed() -> None:
    options = CopyOptions(BucketPlace(URL, "http://192.0.2.1:9000"), "AbC", 1)
    with pytest.raises(ConfigError, match=re.escape("sharecore.bucket.allow.http=true")):
        options.begin()
    replace(options, place=replace(options.place, allow_http=True)).begin()


def test_half_of_the_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    result = run("check", URL)
    assert result.exit_code == 2
    assert "AKIDEXAMPLE" not in result.output
