"""Numbers of idempotent producers, never given twice."""

from __future__ import annotations

from sharecore.storage import Catalogue

_KEY = b"producer-ids"
_BLOCK = 1000


class ProducerIds:
    """Takes blocks of numbers from the catalogue, so that a restart skips what a block had left.

    Args:
        catalogue: where the first number that no block holds is written down.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._next = self._end = int(catalogue.get(_KEY) or b"0")

    async def ensure(self) -> None:
        """Sees to it that `take` has a number; raises KafkaError when it cannot be kept."""
        while self._next == self._end:
            end = self._end + _BLOCK
            await self._catalogue.put(_KEY, str(end).encode())
            # another caller may have taken the same block meanwhile: it is counted once
            if self._end < end:
                self._next, self._end = self._end, end

    def take(self) -> int:
        """A number that no producer has, once `ensure` has seen to it."""
        assert self._next < self._end
        number = self._next
        self._next += 1
        return number

    async def next(self) -> int:
        """A number that no producer has; raises KafkaError(KAFKA_STORAGE_ERROR) when it cannot be kept."""
        await self.ensure()
        return self.take()
