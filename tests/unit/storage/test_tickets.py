"""When writes are reported as ended, and to whom."""

from __future__ import annotations

import asyncio
import errno
import struct
from pathlib import Path

import pytest
from tests.harness.checksum import crc32c
from tests.unit.client.batches import Content, batch
from tests.unit.storage.test_storage import create

from sharecore.errors import ErrorCode, KafkaError
from sharecore.storage import Log, Storage, StorageOptions, Ticket

RECORDS = [(b"k", b"v" * 900)]
SMALL_SEGMENTS = StorageOptions(segment_bytes=4096, cache_bytes=1000)


def idempotent(producer_id: int) -> bytes:
    """Return the first batch of a producer."""
    checked = bytearray(batch(0, [Content(0)]))
    struct.pack_into(">qhi", checked, 43, producer_id, 0, 0)
    struct.pack_into(">I", checked, 17, crc32c(bytes(checked[21:])))
    return bytes(checked)


def open_log(storage: Storage) -> Log:
    create(storage, "t")
    log = storage.topics.log("t", 0)
    assert log is not None
    return log


def test_a_ticket_is_awaited_called_back_and_done_at_once_when_it_was(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    log = open_log(storage)

    async def main() -> list[str]:
        storage.attach(asyncio.get_running_loop())
        seen: list[str] = []
        log.on_advance(lambda log: seen.append(f"advanced to {log.high_watermark}"))
        ticket = log.append_local(RECORDS, now_ms=1).ticket
        ticket.add_done_callback(lambda ticket: seen.append(f"written {ticket.error}"))
        assert not ticket.done()
        await ticket
        ticket.add_done_callback(lambda _: seen.append("at once"))
        await asyncio.sleep(0)
        return seen

    assert asyncio.run(main()) == ["written None", "advanced to 1", "at once"]
    storage.close()


def test_a_failed_write_raises_where_it_is_awaited(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    log = open_log(storage)

    async def main() -> None:
        storage.attach(asyncio.get_running_loop())
        storage.store.plan_fault("sync", errno.EIO)
        with pytest.raises(KafkaError) as failed:
            await log.append_local(RECORDS, now_ms=1).ticket
        assert failed.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        storage.store.plan_fault("write", errno.ENOSPC)
        with pytest.raises(KafkaError):
            await storage.topics.create("u", 1)
        await storage.topics.create("u", 1)

    asyncio.run(main())
    assert storage.topics.names() == ["t", "u"]
    storage.close()


def test_a_batch_that_is_sent_again_is_answered_after_the_stores_own_work(tmp_path: Path) -> None:
    """The last operation may be the store's own, for which nobody has a ticket."""
    storage = Storage(tmp_path, SMALL_SEGMENTS)
    log = open_log(storage)
    sent = idempotent(7)
    assert log.append(sent, now_ms=1).base_offset == 0

    async def main() -> None:
        storage.attach(asyncio.get_running_loop())
        for _ in range(40):
            await log.append_local(RECORDS, now_ms=1).ticket
        await log.delete_records(30)
        for _ in range(20):
            await asyncio.sleep(0.01)
            again = log.append(sent, now_ms=1)
            assert again.base_offset == 0
            await asyncio.wait_for(wait(again.ticket), 5)

    async def wait(ticket: Ticket) -> None:
        await ticket

    asyncio.run(main())
    storage.close()


def test_listeners_that_fail_harm_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    storage = Storage(tmp_path)
    log = open_log(storage)
    seen: list[Log] = []

    def failing(log: Log) -> None:
        raise RuntimeError("no")

    log.on_advance(failing)
    log.on_advance(seen.append)
    log.append_local(RECORDS, now_ms=1)
    storage.sync()
    assert seen == [log]
    assert "a callback failed" in caplog.text
    log.off_advance(seen.append)
    log.append_local(RECORDS, now_ms=1)
    storage.sync()
    assert seen == [log]
    storage.close()


def test_a_callback_that_raises_takes_no_other_with_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    storage = Storage(tmp_path)
    log = open_log(storage)
    told: list[str] = []

    def raising(_ticket: Ticket) -> None:
        raise RuntimeError("of the caller's own")

    first = log.append_local(RECORDS, now_ms=1).ticket
    first.add_done_callback(raising)
    first.add_done_callback(lambda _: told.append("beside it"))
    log.append_local(RECORDS, now_ms=1).ticket.add_done_callback(lambda _: told.append("behind it"))
    log.on_advance(lambda log: told.append(f"advanced to {log.high_watermark}"))
    storage.sync()
    assert told == ["beside it", "behind it", "advanced to 2"]
    assert "of the caller's own" in caplog.text
    storage.close()
