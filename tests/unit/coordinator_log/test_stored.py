"""Records of coordinators in logs of a store."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.unit.coordinator_log.world import World

from sharecore.coordinator_log.staged_log import ATTEMPTS_MAX, WRITE_TIMEOUT_MS, StagedLog
from sharecore.errors import KafkaError
from sharecore.storage import Storage
from sharecore.waiting import Spans


class Broken(Spans):
    """A table of times that raises when a time is added."""

    def add(self, took_ms: float, items: int = 1, *, failed: bool = False) -> None:
        raise RuntimeError("the table of times is broken")


def staged(storage: Storage, world: World, index: int, writes: Spans) -> StagedLog:
    log = storage.topics.log("t", index)
    assert log is not None
    return StagedLog(
        log,
        world,
        WRITE_TIMEOUT_MS,
        attempts_max=ATTEMPTS_MAX,
        monotonic_ms=world.monotonic_ms,
        sent=lambda: None,
        writes=writes,
    )


def test_a_write_whose_end_fails_does_not_keep_the_others_waiting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        storage, world = Storage(tmp_path), World()
        storage.attach(asyncio.get_running_loop())
        await storage.topics.create("t", 3, {})
        ended: list[tuple[int, KafkaError | None]] = []
        tables = (Spans(), Broken(), Spans())
        for index, writes in enumerate(tables):
            log = staged(storage, world, index, writes)
            log.append([(b"key", b"value")], 0, lambda error, index=index: ended.append((index, error)))
            log.flush()
        storage.sync()
        assert ended == [(0, None), (2, None)]
        assert [record.exc_text for record in caplog.records if "table of times" in (record.exc_text or "")]
        asyncio.get_running_loop().remove_reader(storage.store.fileno())
        storage.close()

    asyncio.run(main())
