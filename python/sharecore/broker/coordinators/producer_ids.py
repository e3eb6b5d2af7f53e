"""Unique ids of idempotent producers."""

from __future__ import annotations

from sharecore.storage import PRODUCER_IDS, Catalog

_BLOCK = 1000


class ProducerIds:
    """Reserve blocks of ids in the catalog; a restart skips the rest of a block.

    Args:
        catalog: stores the first unreserved id.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._next = self._end = int(catalog.get(PRODUCER_IDS) or b"0")

    async def ensure(self) -> None:
        """Reserve an id for `take`; raise KafkaError if that fails."""
        while self._next == self._end:
            end = self._end + _BLOCK
            await self._catalog.put(PRODUCER_IDS, str(end).encode())
            # another caller may have reserved the same block in the meantime: count it once
            if self._end < end:
                self._next, self._end = self._end, end

    def take(self) -> int:
        """Return an unused id, reserved by `ensure`."""
        assert self._next < self._end
        number = self._next
        self._next += 1
        return number

    async def next(self) -> int:
        """Return an unused id; raise KafkaError(KAFKA_STORAGE_ERROR) if none can be reserved."""
        await self.ensure()
        return self.take()
