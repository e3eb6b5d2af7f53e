"""Records only on disk are read by a thread, those in memory at once."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from tests.unit.storage.test_storage import create

from sharecore.errors import ErrorCode, KafkaError
from sharecore.storage import Log, Reader, Slice, Storage, StorageOptions
from sharecore.storage.disk_reads import DiskReads
from sharecore.storage.log import ReadApart

OPTIONS = StorageOptions(segment_bytes=64 << 10, cache_bytes=0)
VALUE = bytes(1000)
ROUNDS = 400
SEGMENTS_MAX = 10


def forget(path: Path) -> None:
    """Evict the store's files from the operating system's page cache."""
    for file in (*path.glob("*.journal"), *path.glob("*.compact")):
        descriptor = os.open(file, os.O_RDONLY)
        os.fdatasync(descriptor)
        # pages in use by the kernel stay, so it is asked repeatedly
        for _ in range(5):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            time.sleep(0.01)
        os.close(descriptor)


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    storage = Storage(tmp_path, OPTIONS)
    create(storage, "t")
    log = log_of(storage)
    for now_ms in range(ROUNDS):
        log.append_local([(b"k", VALUE)], now_ms=now_ms)
        if now_ms % 16 == 0:
            storage.sync()
    storage.sync()
    storage.close()
    storage = Storage(tmp_path, OPTIONS)
    forget(tmp_path)
    yield storage
    storage.close()


def log_of(storage: Storage) -> Log:
    topic = storage.topics.get("t")
    assert topic is not None
    return topic.partitions[0]


class OnDisk:
    """A log without records in memory until a thread has read it, whatever the page cache holds.

    A fast disk may fill the page cache just after a read is refused, so a test that counts a reader's waits
    cannot rely on the machine.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._warm = False

    def read(self, offset: int, max_bytes: int, **bounds: Any) -> Slice:
        return self._log.read(offset, max_bytes, **bounds)

    def read_cached(self, offset: int, max_bytes: int, **bounds: Any) -> Slice | None:
        return self._log.read(offset, max_bytes, **bounds) if self._warm else None

    def read_apart(
        self, offset: int, max_bytes: int, ended: Callable[[ReadApart], object], **bounds: Any
    ) -> int:
        def told(found: ReadApart) -> None:
            self._warm = True
            ended(found)

        return self._log.read_apart(offset, max_bytes, told, **bounds)


async def read(storage: Storage, log: Log, offset: int, max_bytes: int) -> tuple[Slice, int]:
    """Return a reader's records, and how often it had to wait."""
    storage.attach(asyncio.get_running_loop())
    readable = asyncio.Event()
    reader = Reader(log, readable.set)
    waits = 0
    while (found := reader.read(offset, max_bytes)) is None:
        waits += 1
        await asyncio.wait_for(readable.wait(), 10)
        readable.clear()
    return found, waits


def test_a_reader_gets_from_the_disk_what_a_blocking_read_gets(storage: Storage) -> None:
    log = log_of(storage)
    found, waits = asyncio.run(read(storage, log, 0, 1 << 20))
    assert waits <= 1 + SEGMENTS_MAX, "once for each index, and once for the records"
    assert found.batches[0][0] == 0
    assert found.batches[-1][1] == ROUNDS - 1, "over many segments"
    assert found == log.read(0, 1 << 20)


def test_a_reader_waits_once_for_what_memory_does_not_hold(storage: Storage) -> None:
    log = log_of(storage)
    expected = log.read(0, 1 << 20)

    async def main() -> None:
        found, waits = await read(storage, cast(Log, OnDisk(log)), 0, 1 << 20)
        assert waits == 1
        assert found == expected
        reader = Reader(cast(Log, OnDisk(log)), (readable := asyncio.Event()).set)
        assert reader.read(0, 1 << 20) is None
        assert reader.read(0, 1 << 20) is None, "it is under way"
        await asyncio.wait_for(readable.wait(), 10)
        assert reader.read(0, 1 << 20) == found

    asyncio.run(main())


class Forgetful(OnDisk):
    """A log whose index does not stay in memory, so that nothing can be located without the disk."""

    def read(self, offset: int, max_bytes: int, **bounds: Any) -> Slice:
        raise AssertionError("the event loop waits for the disk, or for a bucket")

    def read_apart(
        self, offset: int, max_bytes: int, ended: Callable[[ReadApart], object], **bounds: Any
    ) -> int:
        told = ended if bounds["whole"] else (lambda _: ended(None))
        return self._log.read_apart(offset, max_bytes, told, **bounds)


def test_a_thread_also_locates_records_whose_index_does_not_stay_in_memory(storage: Storage) -> None:
    log = log_of(storage)
    expected = log.read(7, 1 << 18)
    found, waits = asyncio.run(read(storage, cast(Log, Forgetful(log)), 7, 1 << 18))
    assert found == expected
    assert waits == 4
    told = list[ReadApart]()
    log.read_apart(ROUNDS + 1, 100, told.append, whole=True)
    while not told:
        storage.drain()
    assert isinstance(told[0], KafkaError)
    assert told[0].code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_little_that_has_been_read_once_needs_no_thread(storage: Storage) -> None:
    log = log_of(storage)
    asyncio.run(read(storage, log, 0, 1 << 20))
    if log.read_cached(0, 1 << 17) is None:
        pytest.fail("the file system of the test's directory does not tell what memory holds: use another")
    assert asyncio.run(read(storage, log, 5, 1 << 18))[1] == 0


def test_much_is_read_by_a_thread_though_memory_holds_it(storage: Storage) -> None:
    log = log_of(storage)
    expected = log.read(0, 1 << 20)
    assert len(expected.records) > 1 << 18
    assert log.read_cached(0, 1 << 20) is None
    found, waits = asyncio.run(read(storage, log, 0, 1 << 20))
    assert (found, waits) == (expected, 1)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a thread has no priority of its own")
def test_a_thread_that_reads_lets_those_that_answer_go_first(storage: Storage) -> None:
    asyncio.run(read(storage, log_of(storage), 0, 1 << 20))
    own = os.getpriority(os.PRIO_PROCESS, 0)
    priorities = {
        (task / "comm").read_text().strip(): os.getpriority(os.PRIO_PROCESS, int(task.name))
        for task in Path("/proc/self/task").iterdir()
    }
    assert priorities["store-read"] == min(own + 10, 19)
    assert priorities["store"] == own


def kept(storage: Storage, *, once: bool = False) -> Reader:
    """Return a reader with the result of a thread's read."""
    log = log_of(storage)
    log.read(0, 1 << 20)

    async def main() -> Reader:
        storage.attach(asyncio.get_running_loop())
        reader = Reader(log, (readable := asyncio.Event()).set, once=once)
        assert reader.read(0, 1 << 20) is None
        await asyncio.wait_for(readable.wait(), 10)
        return reader

    return asyncio.run(main())


@pytest.mark.heavy
@pytest.mark.parametrize(
    "bounds",
    [
        {"max_bytes": 1 << 19},
        {"max_bytes": 100_000},
        {"max_bytes": 10, "at_least_one": True},
        {"max_bytes": 10, "at_least_one": False},
        {"max_bytes": 1 << 20, "limit": 200},
        {"max_bytes": 1 << 20, "limit": 0},
        {"max_bytes": 1 << 20, "max_records": 1},
        {"max_bytes": 1 << 20, "max_records": 77},
    ],
)
def test_of_what_a_thread_has_read_no_more_is_given_than_is_asked_for(
    storage: Storage, bounds: dict[str, Any]
) -> None:
    assert kept(storage).read(0, **bounds) == log_of(storage).read(0, **bounds)


def test_what_a_thread_has_read_is_given_until_it_is_forgotten(storage: Storage) -> None:
    reader = kept(storage)
    found = reader.read(0, 1 << 20)
    assert found is not None
    assert reader.read(100, 1 << 10) is not None, "elsewhere"
    assert reader.read(0, 1 << 20) is found
    assert reader.keeps
    reader = kept(storage, once=True)
    assert reader.read(100, 1 << 10) is not None, "elsewhere"
    assert reader.read(0, 1 << 20) == found
    assert not reader.keeps
    assert reader.has_not_waited


def test_nobody_is_told_of_a_read_once_the_storage_is_closed(storage: Storage) -> None:
    log, told = log_of(storage), list[ReadApart]()
    for _ in range(20):
        log.read_apart(0, 1 << 20, told.append)
    storage.close()
    assert told == []


@pytest.mark.heavy
def test_an_error_of_the_disk_shows_where_the_records_are_read(storage: Storage, tmp_path: Path) -> None:
    log = log_of(storage)
    for file in tmp_path.glob("*.journal"):
        with file.open("r+b") as opened:
            opened.write(bytes(file.stat().st_size))
    with pytest.raises(KafkaError) as error:
        asyncio.run(read(storage, log, 0, 1 << 20))
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_an_offset_that_is_none_is_refused_at_once(storage: Storage) -> None:
    log = log_of(storage)
    with pytest.raises(KafkaError) as error:
        Reader(log, lambda: None).read(ROUNDS + 1, 100)
    assert error.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_times_are_looked_up_in_a_thread(storage: Storage) -> None:
    async def main() -> tuple[object, object]:
        log = log_of(storage)
        return await log.find_offset(100), await log.find_max_timestamp()

    assert asyncio.run(main()) == ((100, 100, 0), (ROUNDS - 1, ROUNDS - 1, 0))


def test_reads_of_the_disk_do_not_wait_for_those_of_the_bucket() -> None:
    async def run() -> str:
        reads = DiskReads(threads=2)
        go_on = threading.Event()
        waiting = [reads.run(go_on.wait, from_bucket=True) for _ in range(5)]
        try:
            found = await asyncio.wait_for(reads.run(lambda: "read"), 10)
        finally:
            go_on.set()
        assert all(await asyncio.gather(*waiting))
        reads.close()
        return found

    assert asyncio.run(run()) == "read"
