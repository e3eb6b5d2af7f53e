"""The slots that this node has: taken by a claim, given up when told so or when another has taken them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Protocol

from sharecore.clock import Clock
from sharecore.errors import ErrorCode, KafkaError
from sharecore.tier.lease import Lease
from sharecore.tier.slot_log import SlotLog
from sharecore.tier.slot_views import GroupView, StateView
from sharecore.tier.upkeep import Upkeep

logger = logging.getLogger(__name__)

_RETRY_S = 1.0


class Duties(Protocol):
    """What a node does with its slots."""

    def take_over(self, slot: int) -> None:
        """Goes on where the slot's last owner was; raises KafkaError where its records cannot be read."""

    def resign(self, slot: int) -> None:
        """Forgets all that belongs to the slot; another may have it."""


class _State(Enum):
    FREE = "free"
    TAKING = "taking"
    OWNED = "owned"


class Slot:
    """One slot of this node's, or another's.

    Attributes:
        log: its partition.
        state, groups: as coordinators see it.
        wanted_epoch: the least epoch of its next claim.
    """

    def __init__(self, log: SlotLog, clock: Clock) -> None:
        self.log = log
        self.state, self.groups = StateView(log), GroupView(log)
        self.upkeep = Upkeep(log, self.state, self.groups, clock)
        self.standing = _State.FREE
        self.wanted_epoch = 0
        self.task: asyncio.Task[None] | None = None


class Leadership:
    """Takes slots and gives them up.

    Args:
        slots: all there are, by number.
        lease: whether the node may act as an owner at all.
    """

    def __init__(self, slots: Sequence[Slot], lease: Lease) -> None:
        self.slots = slots
        self._lease = lease
        self._wanted: set[int] = set()
        self._duties: Duties | None = None

    def begin(self, duties: Duties) -> None:
        """Says what there is to do with slots; before any is assigned."""
        self._duties = duties

    def assign(self, epochs: Mapping[int, int]) -> None:
        """These slots and no others are this node's from now on.

        Args:
            epochs: the least epoch of a claim, by slot.
        """
        for index in self._wanted - epochs.keys():
            self._give_up(index)
        self._wanted = set(epochs)
        for index, epoch in epochs.items():
            slot = self.slots[index]
            slot.wanted_epoch = epoch
            if slot.standing is _State.FREE:
                self._take(slot)

    def lost(self, log: SlotLog, error: KafkaError) -> None:
        """Another node has written a slot's partition, or it cannot be known what stands in it."""
        slot = self.slots[log.index]
        logger.warning("%s is given up: %s", log.name, error)
        # not in the middle of whoever found out
        asyncio.get_running_loop().call_soon(self._resign, slot)

    def check(self, index: int) -> None:
        """Raises KafkaError(NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS) unless this node has a slot."""
        standing = self.slots[index].standing
        if standing is _State.TAKING and index in self._wanted:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        if standing is not _State.OWNED or not self.slots[index].log.owned or not self._lease.holds:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)

    def owns(self, index: int) -> bool:
        """Whether this node has a slot."""
        return self.slots[index].standing is _State.OWNED

    async def settled(self) -> None:
        """Waits until each slot that is this node's is taken."""
        while tasks := [slot.task for slot in self.slots if slot.task is not None]:
            await asyncio.gather(*tasks, return_exceptions=True)

    async def upkeep(self) -> None:
        """Lets go of records of the slots that nobody needs."""
        for slot in self.slots:
            if slot.standing is _State.OWNED:
                await slot.upkeep.look()

    def close(self) -> None:
        """Gives up all."""
        for index in list(self._wanted):
            self._give_up(index)
        self._wanted = set()

    def _take(self, slot: Slot) -> None:
        slot.standing = _State.TAKING
        slot.task = asyncio.get_running_loop().create_task(self._claim(slot), name=f"claim {slot.log.name}")

    async def _claim(self, slot: Slot) -> None:
        assert self._duties is not None
        while True:
            try:
                records = await slot.log.claim(slot.wanted_epoch)
                slot.state.claimed(records)
                slot.groups.claimed(records)
                slot.standing = _State.OWNED
                self._duties.take_over(slot.log.index)
            except (KafkaError, ValueError) as error:
                logger.error("%s cannot be taken, which is tried again: %s", slot.log.name, error)
                if slot.standing is _State.OWNED:
                    self._duties.resign(slot.log.index)
                slot.standing = _State.TAKING
                slot.log.resign()
                await asyncio.sleep(_RETRY_S)
                continue
            slot.task = None
            return

    def _give_up(self, index: int) -> None:
        slot = self.slots[index]
        self._wanted.discard(index)
        if slot.task is not None:
            slot.task.cancel()
            slot.task = None
        self._resign(slot)

    def _resign(self, slot: Slot) -> None:
        before, slot.standing = slot.standing, _State.FREE
        slot.log.resign()
        if before is _State.OWNED and self._duties is not None:
            self._duties.resign(slot.log.index)
        if slot.log.index in self._wanted:
            with contextlib.suppress(RuntimeError):
                asyncio.get_running_loop().call_later(_RETRY_S, self._take_again, slot)

    def _take_again(self, slot: Slot) -> None:
        if slot.log.index in self._wanted and slot.standing is _State.FREE:
            self._take(slot)


def all_slots(slots: Iterable[Slot], epoch: int) -> dict[int, int]:
    """Every slot, for a node that is alone."""
    return {slot.log.index: epoch for slot in slots}
