"""`sharecore bucket` on directories, which every build supports; tests/bucket has S3."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from tests.harness.until import until
from tests.unit.broker.test_home import home
from typer.testing import CliRunner

from sharecore.cli.app import app


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["bucket", *map(str, arguments)])


def test_a_directory_can_be_used_and_nothing_is_left_in_it(tmp_path: Path) -> None:
    result = run("check", f"file://{tmp_path}")
    assert result.exit_code == 0, result.output
    assert "16 times 8 creates at once    passed" in result.stdout
    assert result.stdout.endswith(f"file://{tmp_path} can be used\n")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_what_was_tried_as_json(tmp_path: Path) -> None:
    found = json.loads(run("check", f"file://{tmp_path}", "--output", "json").stdout)
    assert found["verdict"] == "fit"
    assert {check["outcome"] for check in found["checks"]} == {"passed"}


def test_a_directory_that_is_not_mounted(tmp_path: Path) -> None:
    result = run("check", f"file://{tmp_path}/mount")
    assert result.exit_code == 2
    assert "Mount it, or create it" in result.stdout
    assert "is not known to be usable" in result.stdout
    assert not (tmp_path / "mount").exists()


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("backups", "no scheme"),
        ("gs://-backups", "names no bucket"),
        ("az://backups", "names no container"),
        ("abfss://backups@account", "Azure Blob Storage has the scheme az"),
        ("s3://Backups", "names no bucket"),
        ("s3://key:hidden@backups", "credentials and options do not belong in it"),
        ("file://mnt", "three slashes"),
    ],
)
def test_a_url_that_names_no_bucket(url: str, says: str) -> None:
    result = run("check", url)
    assert result.exit_code == 2
    assert says in result.stderr
    assert "hidden" not in result.output


def test_the_disk_of_a_leader_with_a_bound(tmp_path: Path) -> None:
    bucket = tmp_path / "bucket"
    bucket.mkdir()
    url = f"file://{bucket}"
    leader = home(tmp_path / "data", bucket, **{"sharecore.bucket.cache.bytes": "20000000"})
    try:
        # it describes itself beside its start
        until(lambda: json.loads(run("status", url, "--output", "json").stdout)["cache"] is not None)
        cache = json.loads(run("status", url, "--output", "json").stdout)["cache"]
        lines = run("status", url).stdout.splitlines()
    finally:
        leader.stop()
    assert cache.keys() == {"bound_bytes", "local_bytes", "remote_bytes", "described_ms"}
    assert (cache["bound_bytes"], cache["remote_bytes"]) == (20_000_000, 0)
    disk, as_of = (
        next(line.removeprefix(name).strip() for line in lines if line.startswith(name))
        for name in ("leader's disk", "  as of")
    )
    assert disk == f"{cache['local_bytes'] / 1e6:.1f} of 20.0 MB; 0.0 MB only in the bucket"
    assert as_of.endswith(" s ago")


def files(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())


@pytest.mark.heavy
def test_a_home_is_dropped_when_nobody_leads_it(tmp_path: Path) -> None:
    bucket = tmp_path / "bucket"
    bucket.mkdir()
    (bucket / "report.txt").write_text("of somebody else")
    leader = home(tmp_path / "data", bucket)
    try:
        refused = run("drop", f"file://{bucket}", "--yes", "--watch", 5)
    finally:
        leader.stop()
    assert refused.exit_code == 1
    assert "is being written: node 1 is running. Stop it first" in refused.stderr
    before = files(bucket)
    assert "format" in before
    told = run("drop", f"file://{bucket}")
    assert told.exit_code == 0
    assert told.stdout.endswith("Nothing was deleted. To delete all of it, add --yes\n")
    assert files(bucket) == before
    dropped = run("drop", f"file://{bucket}", "--yes")
    assert dropped.exit_code == 0, dropped.output
    assert f"{len(before) - 1} objects were deleted" in dropped.stdout
    assert files(bucket) == ["report.txt"]
    assert run("drop", f"file://{bucket}", "--yes").exit_code == 2
