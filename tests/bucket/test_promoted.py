"""A copy in S3 whose machine is lost: another node is promoted, and serves what the bucket has."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from tests.bucket.home import TOPIC, home_settings, numbers_in
from tests.bucket.versitygw import credentials, versitygw
from tests.harness.broker import QUICK_GROUPS, SHARECORE, Broker, free_port
from tests.harness.clients import create_topic, produce
from tests.harness.s3 import BUCKET

URL = f"s3://{BUCKET}/queue"


def bucket_command(endpoint: str, *arguments: str) -> str:
    """Run `sharecore bucket`; return what it prints."""
    command = [SHARECORE, "bucket", *arguments, "--endpoint", endpoint]
    ended = subprocess.run(command, env=os.environ | credentials(), capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert all(secret not in ended.stdout + ended.stderr for secret in credentials().values())
    return ended.stdout


def until_copied(endpoint: str) -> None:
    """Wait until the journal ends with the same place twice."""
    before, end = "", time.monotonic() + 60
    while (now := bucket_command(endpoint, "status", URL, "-o", "json")) != before:
        assert time.monotonic() < end, now
        before = now
        time.sleep(3)


def test_another_node_serves_the_copy_of_a_lost_machine(tmp_path: Path) -> None:
    with versitygw(tmp_path / "server") as endpoint:
        at = {"sharecore.bucket.url": URL, "sharecore.bucket.endpoint": endpoint}
        lost = Broker(tmp_path / "lost", settings=QUICK_GROUPS | at | {"node.id": "1"})
        lost.environment |= credentials()
        lost.start()
        create_topic(lost.bootstrap, TOPIC, 2)
        produce(lost.bootstrap, TOPIC, [b"%d" % number for number in range(1000)])
        until_copied(endpoint)
        lost.kill()
        promote = ("promote", URL, "--node-id", "2", "--watch", "3")
        assert "add --yes" in bucket_command(endpoint, *promote)
        bucket_command(endpoint, *promote, "--yes")
        settings = home_settings(URL, free_port()) | at | {"node.id": "2"}
        second = Broker(tmp_path / "second", settings=settings)
        second.environment |= credentials()
        second.start()
        produce(second.bootstrap, TOPIC, [b"1000"])
        assert second.terminate() == 0
        assert numbers_in(second.home / "data", TOPIC).keys() == set(range(1001))
