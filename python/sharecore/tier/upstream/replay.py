"""Reader of an upstream partition between two offsets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Protocol

from sharecore.errors import ErrorCode, KafkaError
from sharecore.upstream import EARLIEST, LATEST, Fetched, ListedOffset

_READ_BYTES = 8 << 20


class Reading(Protocol):
    """Requests to the cluster (`upstream.Administration`)."""

    async def list_offsets(
        self, wanted: Mapping[tuple[str, int], int], *, committed: bool = False
    ) -> dict[tuple[str, int], ListedOffset | KafkaError]: ...

    async def read(self, topic: str, partition: int, offset: int, max_bytes: int) -> Fetched: ...


async def bounds_of(reading: Reading, topic: str, partition: int) -> tuple[int, int]:
    """Return start and end offset of a partition; raise KafkaError."""
    start, end = await asyncio.gather(
        start_of(reading, topic, partition), _offset(reading, topic, partition, LATEST)
    )
    return start, end


async def start_of(reading: Reading, topic: str, partition: int) -> int:
    """Return the start offset of a partition; raise KafkaError."""
    return await _offset(reading, topic, partition, EARLIEST)


async def _offset(reading: Reading, topic: str, partition: int, which: int) -> int:
    found = (await reading.list_offsets({(topic, partition): which}))[topic, partition]
    if isinstance(found, KafkaError):
        raise found
    return found.offset


async def replay(reading: Reading, topic: str, partition: int, start: int, end: int) -> AsyncIterator[bytes]:
    """Yield whole record batches of the offsets `[start, end)`, in parts.

    Raises:
        KafkaError: the cluster cannot be read, or has lost records.
    """
    while start < end:
        fetched = await reading.read(topic, partition, start, _READ_BYTES)
        if fetched.end <= start:
            text = f"{topic}-{partition} ends at {start} upstream, and not at {end}: records of it are lost"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, text)
        yield fetched.records
        start = fetched.end
