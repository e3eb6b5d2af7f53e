"""Ids of idempotent producers; none is assigned twice."""

from __future__ import annotations

from sharecore.storage import PRODUCER_IDS, Catalogue

_BLOCK = 1000


class ProducerIds:
    """Takes blocks of numbers from the catalogue, so that a restart skips what a block had left.

    Args:
        catalogue: where the first number that no block holds is written down.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._next = self._end = int(catalogue.get(PRODUCER_IDS) or b"0")

    async def ensure(self) -> None:
        """Reserves an id for `take`; raises KafkaError when that cannot be stored."""
        while self._next == self._end:
            end = self._end + _BLOCK
            await self._catalogue.put(PRODUCER_IDS, str(end).encode())
            # another caller may have taken the same block meanwhile: it is counted once
            if self._end < end:
                self._next, self._end = self._end, end

    def take(self) -> int:
        """Return an id that no producer has, reserved by `ensure`."""
        assert self._next < self._end
        number = self._next
        self._next += 1
        return number

    async def next(self) -> int:
        """Return an id that no producer has; raise KafkaError(KAFKA_STORAGE_ERROR) when it cannot be
        stored.
        """
        await self.ensure()
        return self.take()
