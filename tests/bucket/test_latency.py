"""The relay that gives PUTs the times of S3 in `make bench-bucket`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from benches.bucket.latency import Counts, Latency, counts
from tests.harness.s3 import BUCKET, s3_server

from sharecore.storage.bucket import BucketPlace, probe


@pytest.fixture
def relay() -> Iterator[str]:
    """Return the endpoint of a relay before a server."""
    with s3_server() as server:
        port = server.endpoint.rpartition(":")[2]
        command = [sys.executable, "-m", "benches.bucket.latency", port, "--p50", "2", "--p99", "5"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
            process.kill()


def test_a_bucket_is_the_same_through_it(relay: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    found = probe(BucketPlace(f"s3://{BUCKET}/queue", relay))
    assert (found.verdict, found.why) == ("fit", "")
    passed = counts(int(relay.rpartition(":")[2]))
    # two of one name, and 16 rounds of eight at once
    assert passed.puts >= 2 + 16 * 8
    assert passed.lists >= 2
    assert passed.gets > passed.others > 0
    assert passed.put_bytes > 100 * passed.puts
    assert passed.put_s > 0.001 * passed.puts
    assert passed.since(passed) == Counts()


def test_times_have_the_percentiles_that_are_asked_for() -> None:
    latency = Latency(25, 120)
    times = sorted(latency.next_s() for _ in range(50_000))
    assert times[25_000] == pytest.approx(0.025, rel=0.03)
    assert times[49_500] == pytest.approx(0.120, rel=0.08)
    assert Latency(0, 0).next_s() == 0
