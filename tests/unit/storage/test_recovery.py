"""The content of a directory after many segments, restarts and damage."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from tests.unit.storage.test_storage import create

from sharecore.storage import Storage, StorageOptions, StoreLog, store_logs

OPTIONS = StorageOptions(segment_bytes=16 << 10, cache_bytes=4096)
RECORDS = [(b"k%d" % i, b"v" * 90) for i in range(10)]


def open_logs(path: Path) -> tuple[Storage, list[StoreLog]]:
    storage = Storage(path, OPTIONS)
    topic = storage.topics.get("t")
    assert topic is not None
    return storage, store_logs(topic)


def fill(storage: Storage, logs: list[StoreLog], rounds: int) -> None:
    for i in range(rounds):
        for log in logs:
            log.append_local(RECORDS, now_ms=i)
        # operations staged together become one frame, and thus one segment
        storage.sync()


def settled_files(storage: Storage, path: Path, suffix: str, at_most: int) -> int:
    """Return the number of files after the store's maintenance."""
    deadline = time.monotonic() + 10
    while (count := len(list(path.glob(f"*.{suffix}")))) > at_most and time.monotonic() < deadline:
        time.sleep(0.02)
    assert storage.store.maintenance_error is None
    return count


def test_records_of_many_segments_are_all_there_after_restarts(tmp_path: Path) -> None:
    storage = Storage(tmp_path, OPTIONS)
    create(storage, "t", 3)
    storage.close()
    for restart in range(1, 4):
        storage, logs = open_logs(tmp_path)
        fill(storage, logs, 50)
        for log in logs:
            assert [offset for offset, *_ in log.scan(0)] == list(range(500 * restart))
        storage.close()
    assert len(list(tmp_path.glob("*.journal"))) > 10


def test_files_go_when_their_records_have_been_deleted(tmp_path: Path) -> None:
    storage = Storage(tmp_path, OPTIONS)
    create(storage, "t", 2)
    storage.close()
    storage, logs = open_logs(tmp_path)
    fill(storage, logs, 200)
    for log in logs:
        log.delete_records(log.high_watermark - 5)
    storage.sync()
    assert settled_files(storage, tmp_path, "journal", 2) <= 2
    storage.close()
    storage, logs = open_logs(tmp_path)
    for log in logs:
        assert [offset for offset, *_ in log.scan(log.start_offset)] == list(range(1995, 2000))
    storage.close()


def test_a_log_that_lives_on_among_garbage_keeps_its_records(tmp_path: Path) -> None:
    storage = Storage(tmp_path, OPTIONS)
    create(storage, "t", 4)
    storage.close()
    storage, logs = open_logs(tmp_path)
    fill(storage, logs, 100)
    for log in logs[1:]:
        log.delete_records(log.high_watermark)
    storage.sync()
    before = len(list(tmp_path.glob("*.journal")))
    assert settled_files(storage, tmp_path, "journal", before // 3) <= before // 3
    for _ in range(2):
        assert [offset for offset, *_ in logs[0].scan(0)] == list(range(1000))
        assert logs[0].offset_for(50) == (500, 50, 0)
        storage.close()
        storage, logs = open_logs(tmp_path)
    storage.close()


def test_retention_by_age_and_size(tmp_path: Path) -> None:
    storage = Storage(tmp_path, OPTIONS)
    create(storage, "t", 1)
    storage.close()
    storage, [log] = open_logs(tmp_path)
    fill(storage, [log], 100)
    assert asyncio.run(log.retain(oldest_ms=0, max_bytes=None)) is None
    assert asyncio.run(log.retain(oldest_ms=40, max_bytes=None)) is not None
    storage.sync()
    assert log.start_offset == 400
    size = log.size_bytes
    assert asyncio.run(log.retain(oldest_ms=None, max_bytes=size // 2)) is not None
    storage.sync()
    assert size // 2 <= log.size_bytes < size // 2 + 2000
    assert log.start_offset == 700
    storage.close()


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    storage = Storage(tmp_path, OPTIONS)
    create(storage, "t", 1)
    storage.close()
    storage, logs = open_logs(tmp_path)
    fill(storage, logs, 100)
    settled_files(storage, tmp_path, "checkpoint", 1)
    storage.close()
    path = min(tmp_path.glob("*.journal"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-20] + b"x" + whole[-19:])
    command = f"sharecore store salvage {tmp_path} --to NEWDIR"
    with pytest.raises(OSError, match=rf"{path.name} is damaged at byte .*{command}"):
        Storage(tmp_path, OPTIONS)
    path.unlink()
    with pytest.raises(OSError, match=path.name):
        Storage(tmp_path, OPTIONS)
    path.write_bytes(whole)
    open_logs(tmp_path)[0].close()
