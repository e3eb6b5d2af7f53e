"""Looks at what somebody else has put between two batches of a slot's owner.

A stranger with rights on the cluster can write to a slot's partition, and a transaction that adds it leaves a
marker there: the owner's next batch then stands further behind than it should. It counts all the same where
nothing that was written before is lost, and nothing in between takes the slot.
"""

from __future__ import annotations

from collections.abc import Callable

from sharecore.tier.claims import Batch, Claim, SlotHistory, cut_batches
from sharecore.tier.replay import Reading, replay


async def read_between(
    reading: Reading,
    place: tuple[str, int],
    begin: int,
    expected: int,
    found: int,
    follows: Callable[[Batch | None], bool],
    take: Callable[[bytes], object],
) -> bool:
    """Return whether a partition is as it was up to an offset, and pass on what stands behind that.

    Args:
        place: topic and partition.
        begin: within the batch before `expected`, or `expected` where there is none.
        expected, found: where a batch should stand, and where it does.
        follows: called with the batch before `expected`; whether it is the one that was there.
        take: called with the batches of `[expected, found)`, some at a time.

    Raises:
        KafkaError: it cannot be read.
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
    """What the owner of a slot has to know of batches that it has not written.

    Args:
        name: of the partition.
        claim: the owner's.
        sequence: of the batch that stands too far behind.
    """

    def __init__(self, name: str, claim: Claim, sequence: int) -> None:
        self._history = SlotHistory(name)
        self._history.claim = claim
        self._claim, self._sequence = claim, sequence
        self._is_contradicted = False

    def follows(self, before: Batch | None) -> bool:
        """Return whether the owner's last batch is still there."""
        if before is None or before.producer != self._claim.producer:
            return False
        self._history.take(before.data)
        return before.following_sequence == self._sequence

    def take(self, batches: bytes) -> None:
        """Take batches that follow on it; raises ValueError where one that counts cannot be read."""
        counted = self._history.take(batches)
        is_owned = self._history.claim is not None and self._history.claim.producer == self._claim.producer
        self._is_contradicted |= bool(counted) or not is_owned or self._history.release is not None

    @property
    def holds(self) -> bool:
        """Whether nothing in between counts, or takes the slot."""
        return not self._is_contradicted
