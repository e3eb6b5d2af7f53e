"""Damage in old records: intact ones are served, and every interface reports it."""

from __future__ import annotations

import asyncio
import json
import logging
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.harness.batches import batch, headers_of
from tests.harness.running import RunningBroker
from tests.harness.until import until
from tests.unit.broker.share_member import ACCEPT, Member, acquired

from sharecore.admin.doctor import cluster, data_directory
from sharecore.broker.store import backend as store_backend
from sharecore.config import BrokerConfig
from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey
from sharecore.sharestate.keys import STATE_TOPIC
from sharecore.storage import Storage, StorageOptions, store_logs
from sharecore.storage.damage import survey

BATCHES, DAMAGED = 40, 7
SETTINGS = {"sharecore.metrics.listener": "127.0.0.1:0", "share.coordinator.state.topic.num.partitions": "1"}


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments that a few batches fill, without a cache."""
    original = store_backend._storage_options

    def small(config: BrokerConfig) -> StorageOptions:
        return replace(original(config), segment_bytes=8 << 10, cache_bytes=0)

    monkeypatch.setattr(store_backend, "_storage_options", small)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a data directory with a topic, a share group and sealed segments."""
    broker = RunningBroker(tmp_path, SETTINGS).start()
    asked = {"name": "t", "num_partitions": 1, "replication_factor": 1}
    broker.ask(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=5000)
    configs = [{"name": "share.auto.offset.reset", "config_operation": 0, "value": "earliest"}]
    resources = [{"resource_type": 32, "resource_name": "g", "configs": configs}]
    broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources)
    for number in range(BATCHES):
        data = [{"index": 0, "records": batch([b"number %d." % number + bytes(600)])}]
        topics = [{"name": "t", "partition_data": data}]
        answer = broker.ask(ApiKey.PRODUCE, 9, acks=-1, timeout_ms=5000, topic_data=topics)
        assert answer.responses[0].partition_responses[0].error_code == 0
        if number == DAMAGED:
            member = Member(broker, "g", "t")
            first, last, _ = leased(member, max_records=2)[0]
            assert member.acknowledge({0: [(first, last, ACCEPT)]}).error_code == 0
    broker.stop()
    return tmp_path


def leased(member: Member, **limits: Any) -> list[tuple[int, int, int]]:
    """Return the records acquired by the first successful fetch."""
    for _ in range(100):
        if found := acquired(member.fetch(0, max_wait_ms=200, **limits)):
            return found[0]
    raise AssertionError("nothing was acquired")


def flip(directory: Path, wanted: bytes) -> Path:
    """Flip a bit in the middle of some bytes; return their file."""
    for path in sorted(directory.glob("*.journal")):
        content = bytearray(path.read_bytes())
        at = content.find(wanted)
        if at >= 0:
            content[at + len(wanted) // 2] ^= 1
            path.write_bytes(content)
            return path
    raise AssertionError("no file has these bytes")


def fetch(broker: RunningBroker, offset: int) -> Any:
    asked = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
    topics = [{"topic": "t", "partitions": [asked]}]
    answer = broker.ask(ApiKey.FETCH, 12, max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=topics)
    return answer.responses[0].partitions[0]


def get(broker: RunningBroker, path: str) -> tuple[int, str]:
    url = f"http://127.0.0.1:{broker.broker.metrics_port}{path}"
    try:
        with urllib.request.urlopen(url, timeout=20) as page:
            return page.status, page.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def quiet(done: int, total: int) -> None:
    """Ignore all events."""


def test_records_before_and_behind_the_damage_are_served(directory: Path) -> None:
    flip(directory, b"number %d." % DAMAGED)
    broker = RunningBroker(directory, SETTINGS).start()
    before = fetch(broker, 0)
    assert before.error_code == 0
    assert [each["base_offset"] for each in headers_of(before.records)] == list(range(DAMAGED))
    assert fetch(broker, DAMAGED).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    behind = fetch(broker, DAMAGED + 1)
    assert [each["base_offset"] for each in headers_of(behind.records)] == list(range(DAMAGED + 1, BATCHES))
    broker.stop()


def test_damage_is_named_wherever_somebody_asks(directory: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = flip(directory, b"number %d." % DAMAGED)
    with caplog.at_level(logging.ERROR):
        broker = RunningBroker(directory, SETTINGS).start()
        assert json.loads(get(broker, "/readyz")[1]) == {"ready": True, "reason": None}
        for _ in range(3):
            fetch(broker, 0)
            fetch(broker, DAMAGED)
        (line,) = [each.getMessage() for each in caplog.records if str(file) in each.getMessage()]
        assert f"t-0: offsets {DAMAGED} to {DAMAGED} are damaged: {file} at byte " in line
        assert "sharecore store salvage" in line
        status, body = get(broker, "/readyz")
        (found,) = [
            each
            for each in asyncio.run(cluster({"bootstrap.servers": f"127.0.0.1:{broker.port}"}))
            if each.level == "bad"
        ]
        assert (found.about, found.what.startswith("broker 1: ")) == ("cluster", True), found
        assert "t-0" in found.what
        (named,) = json.loads(body)["damage"]
        assert (status, named in line) == (200, True)
        assert "sharecore_store_damaged_batches 1" in get(broker, "/metrics")[1]
        broker.stop()
    assert [each.what for each in data_directory(directory) if each.level == "bad"] == [named]
    damage = survey(directory, quiet)
    assert {each.file for each in damage.problems} == {str(file)}
    assert [(str(each.part), each.first, each.last) for each in damage.lost] == [("t-0", DAMAGED, DAMAGED)]


def test_damage_of_an_index_is_named_too(directory: Path) -> None:
    file = sorted(directory.glob("*.journal"))[-2]  # sealed, with records of one partition
    content = bytearray(file.read_bytes())
    content[-(32 + 52 + 3)] ^= 1  # before the index's directory of one block, and the end of the file
    file.write_bytes(content)
    (found,) = [each for each in data_directory(directory) if each.level == "bad"]
    assert found.what == f"{file}: an index block does not match its checksum"
    assert "store salvage" in found.advice
    damage = survey(directory, quiet)
    assert {each.file for each in damage.problems} == {str(file)}
    assert not damage.lost, "records are found without the index"
    broker = RunningBroker(directory, SETTINGS).start()
    before = headers_of(fetch(broker, 0).records)
    assert [each["base_offset"] for each in before] == list(range(len(before)))
    assert 0 < len(before) < BATCHES
    assert fetch(broker, len(before)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    broker.stop()


def test_a_share_group_gets_what_is_whole(directory: Path) -> None:
    flip(directory, b"number %d." % DAMAGED)
    broker = RunningBroker(directory, SETTINGS).start()
    found = leased(Member(broker, "g", "t"))
    assert found[0][0] == 2
    assert found[-1][1] == DAMAGED - 1
    broker.stop()


def test_damaged_share_state_is_known_before_a_group_needs_it(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    storage = Storage(directory, StorageOptions(read_only=True))
    state = storage.topics.get(STATE_TOPIC)
    assert state is not None
    (log,) = store_logs(state)
    records = log.read(log.start_offset, 1).records
    storage.close()
    file = flip(directory, records)
    with caplog.at_level(logging.ERROR):
        broker = RunningBroker(directory, SETTINGS).start()
        until(lambda: get(broker, "/readyz")[0] != 200, "unready")
        reason = json.loads(get(broker, "/readyz")[1])["reason"]
        assert reason.startswith(f"{STATE_TOPIC}-0: offsets ")
        assert str(file) in reason
        broker.stop()
    assert reason in caplog.text
    assert reason in [each.what for each in data_directory(directory)]
