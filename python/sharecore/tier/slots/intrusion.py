"""Check of foreign batches between two batches of a slot's owner.

A client with write permission can append to a slot's partition, and a transaction that includes it leaves a
marker there. The owner's next batch then has a higher offset than expected. It is valid nevertheless if no
earlier record is lost, and no batch in between claims the slot.
"""

from __future__ import annotations

from collections.abc import Callable

from sharecore.tier.slots.claims import Claim, SlotHistory
from sharecore.tier.upstream.batches import Batch, cut_batches
from sharecore.tier.upstream.replay import Reading, replay


async def read_between(
    reading: Reading,
    place: tuple[str, int],
    begin: int,
    expected: int,
    found: int,
    follows: Callable[[Batch | None], bool],
    take: Callable[[bytes], object],
) -> bool:
    """Return whether a partition is unchanged up to an offset, and pass on the batches after it.

    Args:
        place: topic and partition.
        begin: an offset in the batch before `expected`, or `expected` without one.
        expected, found: expected and actual offset of a batch.
        follows: called with the batch before `expected`; returns whether it is unchanged.
        take: called with the batches of `[expected, found)`, in parts.

    Raises:
        KafkaError: the partition cannot be read.
        ValueError: raised by `take`.
    """
    before: Batch | None = None
    is_judged = False
    async for some in replay(reading, *place, begin, found):
        for batch in cut_batches(some):
            if batch.base_offset < expected:
                before = batch
                continue
            if batch.base_offset >= found:
                break
            if not is_judged and not follows(before):
                return False
            is_judged = True
            take(batch.data)
    return is_judged


class OwnersView:
    """The owner's check of foreign batches.

    Args:
        name: the partition's name.
        claim: the owner's claim.
        sequence: sequence of the displaced batch.
    """

    def __init__(self, name: str, claim: Claim, sequence: int) -> None:
        self._history = SlotHistory(name)
        self._history.claim = claim
        self._claim, self._sequence = claim, sequence
        self._is_contradicted = False

    def follows(self, before: Batch | None) -> bool:
        """Return whether the owner's last batch is still in the log."""
        if before is None or before.producer != self._claim.producer:
            return False
        self._history.take(before.data)
        return before.following_sequence == self._sequence

    def take(self, batches: bytes) -> None:
        """Process the batches after it; raise ValueError if a valid one cannot be read."""
        counted = self._history.take(batches)
        is_owned = self._history.claim is not None and self._history.claim.producer == self._claim.producer
        self._is_contradicted |= bool(counted) or not is_owned or self._history.release is not None

    @property
    def holds(self) -> bool:
        """Whether no batch in between is valid or claims the slot."""
        return not self._is_contradicted
