"""The probe on a server that people run."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bucket.versitygw import credentials, versitygw
from tests.harness.s3 import BUCKET

from sharecore.storage.bucket import BucketPlace, probe


def test_a_server_that_creates_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in credentials().items():
        monkeypatch.setenv(name, value)
    with versitygw(tmp_path) as endpoint:
        found = probe(BucketPlace(f"s3://{BUCKET}/queue", endpoint))
        assert (found.verdict, found.why) == ("fit", "")


def test_credentials_that_are_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing-that-is-known")
    with versitygw(tmp_path) as endpoint:
        found = probe(BucketPlace(f"s3://{BUCKET}/queue", endpoint))
    assert found.verdict == "unknown"
    assert "Correct the credentials in the environment" in found.why
    assert "nothing-that-is-known" not in repr(found)
