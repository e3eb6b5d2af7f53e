"""How often the brokers of a home read of each other: each list costs as much as a write."""

from __future__ import annotations

import asyncio
from pathlib import Path

from sharecore.broker.store.home_nodes import HomeNodes
from sharecore.storage.bucket import BucketPlace

MINUTE_MS = 60_000


class HandClock:
    """A clock that a test sets."""

    ms = 1_000_000

    def now_ms(self) -> int:
        """Return the time."""
        return self.ms

    def monotonic_ms(self) -> int:
        """Return the same time."""
        return self.ms


def test_brokers_read_of_each_other_less_often_once_nothing_changes(tmp_path: Path) -> None:
    asyncio.run(_pauses(tmp_path))


async def _pauses(directory: Path) -> None:
    clock, bucket = HandClock(), BucketPlace(f"file://{directory}")
    one, two = (HomeNodes(bucket, node, lambda: {}, None, clock, epoch=1) for node in (1, 2))
    one.start()
    try:
        await one.looked()
        assert one._pause_ms() == 30_000
        clock.ms += 10 * MINUTE_MS
        assert one._pause_ms() == 120_000
        await two.look()
        await one.look()
        assert one._pause_ms() == 30_000, "another one is there"
        clock.ms += 10 * MINUTE_MS
        assert one._pause_ms() == 120_000
        await two.leave()
        await one.look()
        assert one._pause_ms() == 30_000, "and has left"
    finally:
        one.stop()
        two.stop()
