"""A share partition whose writes succeed at once, so that a test reads like the KIP's tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sharecore.trace.engines import Engine, Partition, StateBatch, Write

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING, ARCHIVED = range(5)
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)


class SharePartition:
    """A partition of either engine with a clock; every operation is followed by an invariant check."""

    def __init__(
        self, engine: Engine, start_offset: int = 0, state: Sequence[StateBatch] = (), **limits: Any
    ) -> None:
        settings: dict[str, Any] = {
            "max_delivery_count": 5,
            "max_inflight": 2000,
            "lock_ms": 30000,
            "renew_enabled": True,
            "dead_letters": False,
            **limits,
        }
        self.partition: Partition = engine.partition(start_offset, list(state), **settings)
        self.now_ms = 0

    def fetch(self, member: str, *batches: tuple[int, int], **options: Any) -> list[tuple[int, int, int]]:
        options.setdefault("fetch_offset", self.partition.next_fetch_offset)
        acquired = self.partition.acquire(self.now_ms, member, list(batches), **options)
        self.partition.check()
        return acquired

    def begin(self, member: str, first: int, last: int, *types: int) -> Write:
        write = self.partition.acknowledge(self.now_ms, member, [(first, last, bytes(types))])
        self.partition.check()
        assert write is not None
        return write

    def acknowledge(self, member: str, first: int, last: int, *types: int) -> list[StateBatch]:
        write = self.partition.acknowledge(self.now_ms, member, [(first, last, bytes(types))])
        return self._commit(write)

    def release(self, member: str) -> list[StateBatch]:
        return self._commit(self.partition.release(self.now_ms, member))

    def pass_time(self, ms: int) -> list[StateBatch]:
        self.now_ms += ms
        return self._commit(self.partition.advance(self.now_ms))

    def letters(self) -> list[tuple[int, int, int, int]]:
        return self.partition.take_dead_letters()

    def letter_written(self, first: int, last: int) -> list[StateBatch]:
        return self._commit(self.partition.finish_archiving(self.now_ms, first, last))

    def commit(self, write: Write) -> None:
        self.partition.commit(write.id, self.now_ms)
        self.partition.check()

    def rollback(self, write: Write) -> None:
        self.partition.rollback(write.id, self.now_ms)
        self.partition.check()

    def move_log_start(self, offset: int) -> None:
        self.partition.move_log_start(self.now_ms, offset)

    def archive(self, first: int, last: int) -> None:
        self.partition.archive(self.now_ms, first, last)
        self.partition.check()

    def pass_hole(self, first: int, last: int) -> None:
        self.partition.pass_hole(self.now_ms, first, last)
        self.partition.check()

    @property
    def window(self) -> tuple[int, int]:
        return self.partition.start_offset, self.partition.end_offset

    @property
    def inflight(self) -> list[StateBatch]:
        return self.partition.inflight()

    def _commit(self, write: Write | None) -> list[StateBatch]:
        self.partition.check()
        if write is None:
            return []
        self.commit(write)
        return write.batches()
