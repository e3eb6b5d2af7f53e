"""A broker with a copy in a bucket, here a directory; tests/bucket has S3."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.running import RunningBroker
from tests.unit.broker.share_member import produce
from tests.unit.broker.test_metrics import get, of, scrape
from typer.testing import CliRunner

from sharecore.broker.store.backend import StoreBackend, copy_options
from sharecore.cli.app import app
from sharecore.config import BrokerConfig
from sharecore.errors import ConfigError
from sharecore.metrics.bucket_families import BUCKET, BUCKET_SILENCE, BUCKET_STANDBYS
from sharecore.protocol import ApiKey
from sharecore.storage import Storage, StorageOptions
from sharecore.storage.bucket import BucketPlace, CopyOptions, restore
from sharecore.storage.identity import Identity

TIMEOUT_S = 60
OF_HOMES = (BUCKET_SILENCE, BUCKET_STANDBYS)


def settings(bucket: Path) -> dict[str, str]:
    return {
        "sharecore.bucket.url": f"file://{bucket}",
        "sharecore.bucket.interval.ms": "20",
        "sharecore.metrics.listener": "127.0.0.1:0",
    }


@pytest.fixture
def bucket(tmp_path: Path) -> Path:
    path = tmp_path / "bucket"
    path.mkdir()
    return path


@pytest.fixture
def broker(tmp_path: Path, bucket: Path) -> Iterator[RunningBroker]:
    running = RunningBroker(tmp_path / "data", settings(bucket)).start()
    yield running
    running.stop()


def create(broker: RunningBroker, name: str) -> None:
    asked = {"name": name, "num_partitions": 1, "replication_factor": 1}
    created = broker.ask(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=5000)
    assert created.topics[0].error_code == 0


def backend(broker: RunningBroker) -> StoreBackend:
    found = broker.look(lambda broker: broker.backend)
    assert isinstance(found, StoreBackend)
    return found


def until_copied(broker: RunningBroker) -> None:
    """Wait until all commits are in the bucket."""
    store, end = backend(broker).storage.store, time.monotonic() + TIMEOUT_S
    while True:
        status = store.bucket_status()
        assert status is not None
        if status.state == "leading" and status.behind_bytes == 0:
            return
        assert time.monotonic() < end, (status.state, status.stopped, status.error)
        time.sleep(0.01)


def until_leading(broker: RunningBroker) -> None:
    """Wait until the broker writes the copy."""
    store, end = backend(broker).storage.store, time.monotonic() + TIMEOUT_S
    while (status := store.bucket_status()) is not None and status.state != "leading":
        assert time.monotonic() < end, (status.state, status.stopped, status.error)
        time.sleep(0.01)


def bucket_command(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["bucket", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.stdout


def values(directory: Path, topic: str) -> list[bytes | None]:
    storage = Storage(directory, StorageOptions(read_only=True))
    found = storage.topics.get(topic)
    assert found is not None
    [log] = found.partitions
    records = [value for _, _, _, value in log.scan(0)]
    storage.close()
    return records


def test_what_was_copied_is_there_when_the_data_directory_is_lost(
    broker: RunningBroker, bucket: Path, tmp_path: Path
) -> None:
    create(broker, "orders")
    produce(broker, "orders", 50)
    until_copied(broker)
    url = f"file://{bucket}"
    # the broker keeps running, and is not involved
    said = bucket_command("restore", url, tmp_path / "new")
    assert f"sharecore serve --data-dir {tmp_path}/new serves it" in said
    assert len(values(tmp_path / "new", "orders")) == 50

    old = CliRunner().invoke(
        app, ["bucket", "restore", url, str(tmp_path / "old"), "--at", "2020-01-01T00:00:00Z"]
    )
    assert old.exit_code == 1
    assert "holds no state that old" in old.stderr
    assert not (tmp_path / "old").exists()

    samples = scrape(broker)
    of_leader = {family.sample_name for family in BUCKET if family not in OF_HOMES}
    assert of_leader <= {name for name, _ in samples}
    assert of(samples, "sharecore_bucket_state", "leading") == 1
    assert of(samples, "sharecore_bucket_behind_bytes") == 0
    assert of(samples, "sharecore_bucket_objects_total") > 0
    assert of(samples, "sharecore_bucket_requests_total", "create") > 0
    found = json.loads(bucket_command("status", url, "--output", "json"))
    assert found["cluster_id"] == backend(broker).identity.cluster_id
    assert found["copied_last_hour"] > 0
    assert "restores to any time since" in bucket_command("status", url)


def test_a_bucket_that_is_lost_keeps_nobody_from_being_served(broker: RunningBroker, bucket: Path) -> None:
    create(broker, "orders")
    until_copied(broker)
    away = bucket.rename(bucket.with_name("away"))
    produce(broker, "orders", 5)
    end = time.monotonic() + TIMEOUT_S
    while not (trouble := broker.look(lambda broker: broker.backend.copy_trouble())):
        assert time.monotonic() < end
        time.sleep(0.01)
    assert "Mount it, or create it" in trouble
    assert get(broker, "/readyz")[0] == 200
    asked = [{"resource_type": 4, "resource_name": "1", "configuration_keys": ["sharecore.bucket.trouble"]}]
    answer = broker.ask(ApiKey.DESCRIBE_CONFIGS, 4, resources=asked)
    assert "Mount it, or create it" in answer.results[0].configs[0].value
    assert of(scrape(broker), "sharecore_bucket_request_failures_total") > 0

    away.rename(bucket)
    until_copied(broker)
    assert broker.look(lambda broker: broker.backend.copy_trouble()) == ""


def until_stopped(broker: RunningBroker, state: str) -> str:
    """Wait until the copy has ended in a state, and return its report."""
    store, end = backend(broker).storage.store, time.monotonic() + TIMEOUT_S
    while (status := store.bucket_status()) is not None and status.state != state:
        assert time.monotonic() < end, (status.state, status.error)
        time.sleep(0.01)
    return broker.look(lambda broker: broker.backend.copy_trouble())


def test_another_clusters_copy_is_left_alone(broker: RunningBroker, bucket: Path, tmp_path: Path) -> None:
    create(broker, "orders")
    until_copied(broker)
    other = RunningBroker(tmp_path / "other", settings(bucket)).start()
    try:
        told = until_stopped(other, "refused")
        create(other, "served-all-the-same")
    finally:
        other.stop()
    assert backend(broker).identity.cluster_id in told
    assert "Use another prefix" in told
    produce(broker, "orders", 5)
    until_copied(broker)


def test_a_restored_directory_goes_on_with_the_copy_and_ends_that_of_the_first_broker(
    broker: RunningBroker, bucket: Path, tmp_path: Path
) -> None:
    create(broker, "orders")
    until_copied(broker)
    bucket_command("restore", f"file://{bucket}", tmp_path / "new")
    second = RunningBroker(tmp_path / "new", settings(bucket)).start()
    try:
        produce(second, "orders", 7)
        until_copied(second)
        produce(broker, "orders", 90)
        assert "another broker has claimed" in until_stopped(broker, "fenced")
    finally:
        second.stop()
    bucket_command("restore", f"file://{bucket}", tmp_path / "newest")
    assert len(values(tmp_path / "newest", "orders")) == 7, "what the fenced one wrote is not in it"


def test_ctrl_c_ends_a_restore_at_once_and_leaves_nothing(
    broker: RunningBroker, bucket: Path, tmp_path: Path
) -> None:
    create(broker, "orders")
    until_copied(broker)
    answers: list[int] = []

    def progress(read: int, _: int) -> None:
        answers.append(read)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        restore(BucketPlace(f"file://{bucket}"), tmp_path / "new", progress)
    assert len(answers) == 1
    assert not (tmp_path / "new").exists()


def test_a_copy_waits_for_more_to_go_with_it(tmp_path: Path, bucket: Path) -> None:
    hour = {"sharecore.bucket.interval.ms": "3600000"}
    running = RunningBroker(tmp_path / "data", settings(bucket) | hour).start()
    try:
        create(running, "orders")
        until_leading(running)
        produce(running, "orders", 5)
        status = backend(running).storage.store.bucket_status()
        assert status is not None
        assert status.behind_bytes > 0
    finally:
        running.stop()
    bucket_command("restore", f"file://{bucket}", tmp_path / "new")
    assert len(values(tmp_path / "new", "orders")) == 5, "a clean stop copies the rest"


def test_what_a_broker_asks_of_its_copy() -> None:
    config = BrokerConfig.from_properties(
        {
            "sharecore.bucket.url": "s3://backups/queue",
            "sharecore.bucket.endpoint": "https://s3.example",
            "sharecore.bucket.region": "eu-somewhere-1",
            "sharecore.bucket.allow.http": "true",
            "sharecore.bucket.interval.ms": "50",
            "sharecore.bucket.history.ms": "7",
            "sharecore.bucket.surplus.bytes": "2000000",
            "sharecore.bucket.linger.ms": "5",
            "sharecore.bucket.puts.per.second": "50",
            "sharecore.bucket.cache.bytes": "20000000",
            "sharecore.durability": "bucket",
        }
    )
    place = BucketPlace(
        "s3://backups/queue", "https://s3.example", "eu-somewhere-1", allow_http=True, cache_bytes=20_000_000
    )
    expected = CopyOptions(place, "AbC", 3, 50, 7, 2_000_000, 5, 50, is_tried=True)
    assert copy_options(config, Identity("AbC", 3)) == expected
    assert copy_options(BrokerConfig(), Identity("AbC", 3)) is None


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("sharecore.bucket.url", "backups", "no scheme"),
        ("sharecore.bucket.url", "s3://key:hidden-key@backups", "do not belong in it"),
        ("sharecore.bucket.url", "s3://backups/x?token=hidden-key", "do not belong in it"),
        ("sharecore.bucket.endpoint", "https://key:hidden-key@s3.example", "come from the environment"),
        ("sharecore.bucket.endpoint", "s3.example:9000", "no URL"),
        ("sharecore.bucket.interval.ms", "1", "from 10 to"),
        ("sharecore.bucket.history.ms", "-1", "at least 0"),
        ("sharecore.bucket.surplus.bytes", "1", "at least"),
        ("sharecore.bucket.puts.per.second", "0", "from 1 to"),
    ],
)
def test_a_setting_that_is_refused(name: str, value: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as refused:
        BrokerConfig.from_properties({name: value})
    assert "hidden-key" not in str(refused.value) + str(refused.value.answer)


def test_a_copy_inside_of_what_it_copies_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="lost with the data directory"):
        BrokerConfig.from_properties(
            {"log.dirs": str(tmp_path), "sharecore.bucket.url": f"file://{tmp_path}/copy"}
        )


def test_a_node_in_front_of_a_cluster_takes_no_bucket() -> None:
    with pytest.raises(ConfigError, match="keeps nothing to copy"):
        BrokerConfig.from_properties(
            {"sharecore.bucket.url": "s3://backups", "sharecore.upstream.bootstrap.servers": "kafka:9092"}
        )
