"""`sharecore bucket promote`: the copy of a lost broker, continued by another node."""

from __future__ import annotations

import contextlib
import json
import threading
from pathlib import Path

import pytest
from tests.harness.running import RunningBroker
from tests.harness.until import until
from tests.unit.broker.test_bucket import TIMEOUT_S, backend, create, settings, until_copied
from tests.unit.broker.test_home import bucket, home, produce
from tests.unit.broker.test_lobby import RunningLobby
from tests.unit.cli.test_bucket import run

from sharecore.storage import Storage, StorageOptions

__all__ = ["bucket"]


@pytest.fixture
def lost(tmp_path: Path, bucket: Path) -> Path:
    """Return the directory of a broker that has copied a record, and is gone."""
    copied = RunningBroker(tmp_path / "one", settings(bucket)).start()
    create(copied, "jobs")
    produce(copied, "jobs", [b"1"])
    until_copied(copied)
    copied.stop()
    return tmp_path / "one"


def values(directory: Path) -> list[bytes | None]:
    storage = Storage(directory, StorageOptions(read_only=True))
    try:
        topic = storage.topics.get("jobs")
        assert topic is not None
        return [value for _, _, _, value in topic.partitions[0].scan(0)]
    finally:
        storage.close()


def promote(bucket: Path, *more: str) -> None:
    result = run("promote", f"file://{bucket}", "--node-id", 2, "--watch", 2, *more)
    assert result.exit_code == 0, result.output


@pytest.mark.heavy
def test_without_yes_nothing_is_changed(bucket: Path, lost: Path) -> None:
    before = {path: path.read_bytes() for path in bucket.rglob("*") if path.is_file()}
    result = run("promote", f"file://{bucket}", "--node-id", 2, "--watch", 2)
    assert result.exit_code == 0, result.output
    assert f"node 1 copied its data to file://{bucket} (epoch 1, place " in result.stdout
    assert "is not in the bucket" in result.stdout
    assert "add --yes" in result.stdout
    assert {path: path.read_bytes() for path in bucket.rglob("*") if path.is_file()} == before


@pytest.mark.heavy
def test_another_node_serves_the_copy_of_a_lost_broker(tmp_path: Path, bucket: Path, lost: Path) -> None:
    promote(bucket, "--yes")
    second = home(tmp_path / "two", bucket, **{"node.id": "2"})
    produce(second, "jobs", [b"2"])
    second.stop()
    assert values(tmp_path / "two") == [b"1", b"2"]


@pytest.mark.heavy
def test_the_lost_broker_comes_back_keeps_its_data_and_copies_no_more(bucket: Path, lost: Path) -> None:
    promote(bucket, "--yes")
    back = RunningBroker(lost, settings(bucket)).start()
    produce(back, "jobs", [b"2"])
    store = backend(back).storage.store

    def stopped() -> bool:
        status = store.bucket_status()
        assert status is not None
        return status.state == "refused"

    until(stopped)
    back.stop()
    assert values(lost) == [b"1", b"2"]


@pytest.mark.heavy
def test_a_waiting_standby_takes_over(tmp_path: Path, bucket: Path, lost: Path) -> None:
    waiting = RunningLobby(tmp_path / "two", bucket)
    reason = waiting.readiness()["reason"]
    assert f"sharecore bucket promote file://{bucket} --node-id 2" in str(reason)
    promote(bucket, "--yes")
    waiting.until_free()


@pytest.mark.heavy
def test_a_broker_that_writes_is_not_replaced(tmp_path: Path, bucket: Path) -> None:
    copied = RunningBroker(tmp_path / "one", settings(bucket)).start()
    create(copied, "jobs")
    until_copied(copied)
    ended = threading.Event()

    def write() -> None:
        while not ended.wait(0.1):
            produce(copied, "jobs", [b"1"])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        result = run("promote", f"file://{bucket}", "--node-id", 2, "--watch", 60, "--yes")
    finally:
        ended.set()
        writer.join(TIMEOUT_S)
    assert result.exit_code == 1, result.output
    assert "is being written: node 1 is running. Stop it first" in result.stderr
    until_copied(copied)
    copied.stop()


def test_a_home_and_ones_own_copy_need_no_promotion(tmp_path: Path, bucket: Path, lost: Path) -> None:
    own = run("promote", f"file://{bucket}", "--node-id", 1, "--watch", 2, "--yes")
    assert own.exit_code == 1
    assert "node 1 may lead" in own.stderr
    leader = home(tmp_path / "one", bucket)
    try:
        refused = run("promote", f"file://{bucket}", "--node-id", 2, "--watch", 2, "--yes")
    finally:
        with contextlib.suppress(RuntimeError):
            leader.stop()
    assert refused.exit_code == 1
    assert "is a home, led by node 1" in refused.stderr
    assert json.loads(run("status", f"file://{bucket}", "--output", "json").stdout)["leader"] == 1


def test_an_empty_bucket_has_nothing_to_promote(bucket: Path) -> None:
    result = run("promote", f"file://{bucket}", "--node-id", 2, "--watch", 2, "--yes")
    assert result.exit_code == 1, result.output
    assert "nothing to promote" in result.stderr
