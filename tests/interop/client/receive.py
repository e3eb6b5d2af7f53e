"""What the tests do with a consumer again and again."""

from __future__ import annotations

import asyncio

from sharecore.client import Batch, Record, ShareConsumer

PATIENCE = 20.0


async def receive(consumer: ShareConsumer, count: int) -> list[Record]:
    """Poll until `count` records came, and fail where they don't; acknowledge nothing."""
    async with asyncio.timeout(PATIENCE):
        records = list(await consumer.poll())
        while len(records) < count:
            if consumer.settings.explicit:
                await consumer.renew(records)
            records += await consumer.poll()
    assert len(records) == count
    return records


async def settle(consumer: ShareConsumer, count: int) -> list[Record]:
    """Receives, accepts and commits."""
    records = await receive(consumer, count)
    consumer.accept(records)
    await commit(consumer)
    return records


async def commit(consumer: ShareConsumer) -> None:
    """Commit; fail where a share partition answers with an error."""
    failed = {key: error for key, error in (await consumer.commit_sync()).items() if error is not None}
    assert failed == {}


async def nothing_comes(consumer: ShareConsumer, seconds: float = 2.0) -> bool:
    return not await consumer.poll(timeout=seconds)


def delivered(records: list[Record] | Batch) -> list[tuple[int, int]]:
    return [(record.offset, record.delivery_count) for record in records]


def values(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]
