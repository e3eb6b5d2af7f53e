"""A broker with durability `bucket`, here a directory; tests/bucket has S3."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.harness.batches import batch
from tests.harness.running import RunningBroker
from tests.harness.until import until
from tests.unit.broker.share_member import ACCEPT, Member, acquired, errors
from tests.unit.broker.test_bucket import TIMEOUT_S, backend, create, settings
from tests.unit.broker.test_metrics import get

from sharecore._core import Store, is_proven
from sharecore.broker.identity import identify_home
from sharecore.broker.store import backend as backend_module
from sharecore.broker.store import home_watch
from sharecore.broker.store.home_watch import LEASE_MS
from sharecore.config import BrokerConfig
from sharecore.errors import ConfigError
from sharecore.protocol import ApiKey
from sharecore.storage import Storage, StorageOptions
from sharecore.storage.bucket import BucketPlace, prepare
from sharecore.storage.identity import Identity, read_identity


def produce(broker: RunningBroker, topic: str, values: list[bytes]) -> None:
    data = [{"name": topic, "partition_data": [{"index": 0, "records": batch(values)}]}]
    wait_ms = TIMEOUT_S * 1000
    answer = broker.ask(ApiKey.PRODUCE, 12, acks=-1, timeout_ms=wait_ms, topic_data=data)
    assert answer.responses[0].partition_responses[0].error_code == 0


@pytest.fixture
def bucket(tmp_path: Path) -> Path:
    path = tmp_path / "bucket"
    path.mkdir()
    return path


def home(directory: Path, bucket: Path, **more: str) -> RunningBroker:
    answering = {"sharecore.durability": "bucket"} | more
    return RunningBroker(directory, settings(bucket) | answering).start()


@pytest.fixture
def broker(tmp_path: Path, bucket: Path) -> Iterator[RunningBroker]:
    running = home(tmp_path / "data", bucket)
    yield running
    running.stop()


def readiness(broker: RunningBroker) -> tuple[int, str]:
    status, body = get(broker, "/readyz")
    return status, str(json.loads(body)["reason"])


def test_a_write_waits_while_the_bucket_is_down_and_is_answered_when_it_is_back(
    broker: RunningBroker, bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(broker, "jobs")
    produce(broker, "jobs", [b"1"])
    assert readiness(broker) == (200, "None")
    away = bucket.with_name("away")
    monkeypatch.setattr(home_watch, "_LATE_MS", 100)
    bucket.rename(away)
    with ThreadPoolExecutor(1) as others:
        waits = others.submit(produce, broker, "jobs", [b"2"])
        until(lambda: readiness(broker)[0] != 200)
        assert f"file://{bucket} takes no writes for " in readiness(broker)[1]
        assert not waits.done()
        away.rename(bucket)
        waits.result(TIMEOUT_S)
    until(lambda: readiness(broker)[0] == 200)


def test_an_answer_leases_nothing_once_another_broker_may_lead(
    tmp_path: Path, bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that stood still may handle requests before the regular look at the lease."""
    proven = [True]

    def may_lease(store: Store, lease_ms: int) -> bool:
        return proven[0] and lease_ms == LEASE_MS and is_proven(store, lease_ms)

    monkeypatch.setattr(backend_module, "is_proven", may_lease)
    monkeypatch.setattr("sharecore.broker.store.home_watch._LEASE_LOOK_MS", 3_600_000)
    broker = home(tmp_path / "data", bucket)
    try:
        create(broker, "jobs")
        configs = [{"name": "share.auto.offset.reset", "config_operation": 0, "value": "earliest"}]
        resources = [{"resource_type": 32, "resource_name": "workers", "configs": configs}]
        assert broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources).responses[0][0] == 0
        member = Member(broker, "workers", "jobs")
        produce(broker, "jobs", [b"1"])
        assert acquired(member.fetch(0, max_wait_ms=10_000)) == {0: [(0, 0, 1)]}
        produce(broker, "jobs", [b"2"])
        proven[0] = False
        # no error: the member keeps its broker, and what it holds
        answer = member.fetch(max_wait_ms=10_000)
        assert (acquired(answer), [each for each in errors(answer) if any(each[1:])]) == ({}, [])
        assert errors(member.fetch(max_wait_ms=100)) == []
        proven[0] = True
        held = member.acknowledge({0: [(0, 0, ACCEPT)]})
        assert (held.error_code, errors(held)) == (0, [(0, 0, 0)])
        produce(broker, "jobs", [b"3"])
        assert acquired(member.fetch(max_wait_ms=10_000)) == {0: [(2, 2, 1)]}
    finally:
        broker.stop()


@pytest.mark.heavy
def test_a_broker_stops_while_the_bucket_is_down(
    tmp_path: Path, bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(home_watch, "_SETTLE_S", 0.5)
    broker = home(tmp_path / "data", bucket)
    create(broker, "jobs")
    produce(broker, "jobs", [b"1"])
    bucket.rename(bucket.with_name("away"))
    store = backend(broker).storage.store
    never = store.change([(b"never", b"answered")])
    broker.stop()
    assert all(sequence < never for sequence, _ in store.drain()[0])


def test_another_node_serves_the_home_on_an_empty_directory(tmp_path: Path, bucket: Path) -> None:
    first = home(tmp_path / "one", bucket)
    create(first, "jobs")
    produce(first, "jobs", [b"1", b"2"])
    first.stop()
    cluster = read_identity(tmp_path / "one")
    assert cluster is not None
    second = home(tmp_path / "two", bucket, **{"node.id": "2"})
    try:
        assert read_identity(tmp_path / "two") == Identity(cluster.cluster_id, 2)
        produce(second, "jobs", [b"3"])
    finally:
        second.stop()
    storage = Storage(tmp_path / "two", StorageOptions(read_only=True))
    topic = storage.topics.get("jobs")
    assert topic is not None
    assert [value for _, _, _, value in topic.partitions[0].scan(0)] == [b"1", b"2", b"3"]
    storage.close()


def test_the_directory_of_a_home_is_not_served_without_the_bucket(tmp_path: Path, bucket: Path) -> None:
    first = home(tmp_path / "data", bucket)
    create(first, "jobs")
    first.stop()
    with pytest.raises(OSError, match="is the cache of a home in a bucket"):
        Storage(tmp_path / "data")


def test_the_home_of_another_cluster_is_refused_and_the_directory_stays_as_it_is(
    tmp_path: Path, bucket: Path
) -> None:
    home(tmp_path / "one", bucket).stop()
    other = tmp_path / "other"
    other.mkdir()
    home(tmp_path / "two", other).stop()
    shutil.rmtree(bucket)
    other.rename(bucket)
    before = {path.name: path.read_bytes() for path in (tmp_path / "one").iterdir() if path.is_file()}
    with pytest.raises(OSError, match="and the directory is of another"):
        prepare(BucketPlace(f"file://{bucket}"), tmp_path / "one", read_identity(tmp_path / "one"), "new")
    after = {path.name: path.read_bytes() for path in (tmp_path / "one").iterdir() if path.is_file()}
    assert after == before


def test_two_that_begin_at_once_are_of_one_cluster(tmp_path: Path, bucket: Path) -> None:
    place = BucketPlace(f"file://{bucket}")
    first, second = (identify_home(tmp_path / str(node), node, place) for node in (1, 2))
    assert first.cluster_id == second.cluster_id
    assert (first.node_id, second.node_id) == (1, 2)


def test_a_directory_that_was_served_before_becomes_a_home(tmp_path: Path, bucket: Path) -> None:
    before = RunningBroker(tmp_path / "data", {}).start()
    create(before, "jobs")
    produce(before, "jobs", [b"1"])
    before.stop()
    # with another node id, as the Helm chart gives it
    first = home(tmp_path / "data", bucket, **{"node.id": "100"})
    produce(first, "jobs", [b"2"])
    first.stop()
    shutil.rmtree(tmp_path / "data")
    home(tmp_path / "data", bucket, **{"node.id": "101"}).stop()
    identity = read_identity(tmp_path / "data")
    assert identity is not None
    assert identity.node_id == 101
    storage = Storage(tmp_path / "data", StorageOptions(read_only=True))
    topic = storage.topics.get("jobs")
    assert topic is not None
    assert [value for _, _, _, value in topic.partitions[0].scan(0)] == [b"1", b"2"]
    storage.close()


def test_a_home_needs_a_bucket() -> None:
    with pytest.raises(ConfigError, match=r"set sharecore\.bucket\.url"):
        BrokerConfig.from_properties({"sharecore.durability": "bucket"})
