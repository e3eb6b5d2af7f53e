"""Records of coordinators in logs of a store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.coordinator_log.world import World

from sharecore.coordinator_log.staged_log import ATTEMPTS_MAX, WRITE_TIMEOUT_MS, StagedLog
from sharecore.errors import KafkaError
from sharecore.storage import Storage
from sharecore.waiting import Spans


def staged(storage: Storage, world: World, index: int, monotonic_ms: Callable[[], int]) -> StagedLog:
    log = storage.topics.log("t", index)
    assert log is not None
    return StagedLog(
        log,
        world,
        WRITE_TIMEOUT_MS,
        attempts_max=ATTEMPTS_MAX,
        monotonic_ms=monotonic_ms,
        sent=lambda: None,
        writes=Spans(),
    )


def test_a_write_whose_end_fails_does_not_keep_the_others_waiting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        storage, world = Storage(tmp_path), World()
        storage.attach(asyncio.get_running_loop())
        await storage.topics.create("t", 3, {})
        ended: list[tuple[int, KafkaError | None]] = []
        is_broken = False

        def breaking_ms() -> int:
            if is_broken:
                raise RuntimeError("the clock is broken")
            return world.monotonic_ms()

        for index, clock in enumerate((world.monotonic_ms, breaking_ms, world.monotonic_ms)):
            log = staged(storage, world, index, clock)
            log.append([(b"key", b"value")], 0, lambda error, index=index: ended.append((index, error)))
            log.flush()
        is_broken = True
        storage.sync()
        assert ended == [(0, None), (2, None)]
        assert [
            record.exc_text for record in caplog.records if "the clock is broken" in (record.exc_text or "")
        ]
        asyncio.get_running_loop().remove_reader(storage.store.fileno())
        storage.close()

    asyncio.run(main())
