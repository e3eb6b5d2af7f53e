"""The storage package on a real directory."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from sharecore.errors import ErrorCode, KafkaError
from sharecore.storage import ResourceType, Storage, StoreLog

RECORDS = [(b"k%d" % i, b"v%d" % i) for i in range(10)]


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    storage = Storage(tmp_path)
    yield storage
    storage.close()


def create(storage: Storage, name: str, partitions: int = 1) -> None:
    async def main() -> None:
        storage.attach(asyncio.get_running_loop())
        await storage.topics.create(name, partitions, {"retention.ms": "1000"})
        asyncio.get_running_loop().remove_reader(storage.store.fileno())

    asyncio.run(main())


def test_records_are_visible_when_they_are_durable_and_outlive_the_process(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    create(storage, "t", 2)
    log = storage.topics.log("t", 1)
    assert log is not None
    appended = log.append_local(RECORDS, now_ms=1000)
    assert (appended.base_offset, appended.last_offset) == (0, 9)
    storage.sync()
    assert appended.ticket.done()
    assert appended.ticket.error is None
    assert log.high_watermark == log.end_offset == 10
    storage.close()

    storage = Storage(tmp_path)
    log = storage.topics.log("t", 1)
    assert log is not None
    assert [(key, value) for _, _, key, value in log.scan(0)] == RECORDS
    assert storage.configs.get(ResourceType.TOPIC, "t") == {"retention.ms": "1000"}
    storage.close()


def test_a_failed_write_takes_its_offsets_back(storage: Storage) -> None:
    create(storage, "t")
    log = storage.topics.log("t", 0)
    assert log is not None
    storage.store.plan_fault("write", errno.ENOSPC)
    appended = log.append_local(RECORDS, now_ms=1000)
    storage.sync()
    assert appended.ticket.error is not None
    assert appended.ticket.error.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert (log.high_watermark, log.end_offset) == (0, 0)

    appended = log.append_local(RECORDS, now_ms=1000)
    storage.sync()
    assert appended.ticket.error is None
    assert [offset for offset, *_ in log.scan(0)] == list(range(10))


def test_offsets_are_found_by_time(storage: Storage) -> None:
    create(storage, "t")
    log = storage.topics.log("t", 0)
    assert isinstance(log, StoreLog)
    for time in (1000, 2000, 3000):
        log.append_local(RECORDS, now_ms=time)
    storage.sync()
    assert log.offset_for(1500) == (10, 2000, 0)
    assert log.offset_for(3001) is None
    assert log.max_timestamp() == (20, 3000, 0)


def test_reads_are_bounded_by_records_and_bytes(storage: Storage) -> None:
    create(storage, "t")
    log = storage.topics.log("t", 0)
    assert log is not None
    for _ in range(4):
        log.append_local(RECORDS, now_ms=1)
    storage.sync()
    assert log.read(0, 1 << 20).batches == [(0, 9), (10, 19), (20, 29), (30, 39)]
    assert log.read(5, 1 << 20, max_records=10).batches == [(0, 9), (10, 19)]
    assert log.read(5, 1 << 20, limit=20).batches == [(0, 9), (10, 19)]
    assert log.read(15, 1).batches == [(10, 19)]
    assert log.read(15, 1, at_least_one=False).batches == []
    with pytest.raises(KafkaError, match="OFFSET_OUT_OF_RANGE"):
        log.read(41, 1)


def test_deleted_records_and_topics_stay_away(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    create(storage, "t")
    create(storage, "gone")
    log = storage.topics.log("t", 0)
    assert log is not None
    log.append_local(RECORDS, now_ms=1)
    storage.sync()
    log.delete_records(4)
    storage.sync()
    assert log.start_offset == 4
    assert [offset for offset, *_ in log.scan(4)] == list(range(4, 10))

    async def delete() -> None:
        storage.attach(asyncio.get_running_loop())
        await storage.topics.delete("gone")

    asyncio.run(delete())
    storage.close()
    storage = Storage(tmp_path)
    assert storage.topics.names() == ["t"]
    log = storage.topics.log("t", 0)
    assert log is not None
    assert (log.start_offset, log.end_offset) == (4, 10)
    storage.close()


def test_a_directory_serves_one_process(storage: Storage, tmp_path: Path) -> None:
    with pytest.raises(OSError, match=str(tmp_path)):
        Storage(tmp_path)
