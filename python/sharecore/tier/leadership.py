"""The slots that this node has: taken by a claim, given up when told so or when another has taken them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from sharecore.broker.cluster import NOBODY
from sharecore.clock import Clock
from sharecore.errors import ErrorCode, KafkaError
from sharecore.tier.lease import Lease
from sharecore.tier.ownership import Ownership
from sharecore.tier.slot_figures import SlotFigures
from sharecore.tier.slot_log import Read, Right, SlotLog, Taken
from sharecore.tier.slot_views import GroupView, StateView
from sharecore.tier.sources import Fetching
from sharecore.tier.successor import Successor
from sharecore.tier.upkeep import Upkeep
from sharecore.upstream import Trouble

logger = logging.getLogger(__name__)

_RETRY_S = 1.0
_CLAIM_S = 3.0
"""How long fetches of a slot that was released wait for its claim."""


class Duties(Protocol):
    """What a node does with its slots."""

    def look(self) -> Awaitable[None]:
        """Learns what topics there are now: what lies in a slot may be of one that was made a moment ago."""

    def take_over(self, slot: int, *, was_released: bool) -> None:
        """Goes on where the slot's last owner was; raises KafkaError where its records cannot be read.

        Args:
            was_released: nobody owned it, or its last owner gave it up.
        """

    def resign(self, slot: int) -> None:
        """Forgets all that belongs to the slot; another may have it."""

    async def rest(self, slot: int) -> None:
        """Leases nothing more of the slot; ends when nothing is leased, or when that has taken long."""

    def resume(self, slot: int) -> None:
        """Leases again."""


class Role(NamedTuple):
    """What a node is to do with a slot.

    Attributes:
        epoch: the least of its next claim.
        right: by what right it claims it; GIVEN: it is another's, which gives it up for this node.
        next_id: the node to give it up for; `NOBODY` where it stays.
    """

    epoch: int
    right: Right = Right.OWN
    next_id: int = NOBODY

    @property
    def awaits(self) -> bool:
        """Whether another node is to give the slot up first."""
        return self.right is Right.GIVEN


class _Phase(Enum):
    FREE = "free"
    AWAITED = "awaited"
    TAKING = "claiming"
    OWNED = "owned"
    RELEASED = "released"


class Slot:
    """One slot of this node's, or another's.

    Attributes:
        log: its partition.
        state, groups: as coordinators see it.
        role: what is to be done with it; None where it is another's.
        claimed: set once the node for which it was released has claimed it.
    """

    def __init__(self, log: SlotLog, clock: Clock) -> None:
        self.log = log
        self.state, self.groups = StateView(log), GroupView(log)
        self.upkeep = Upkeep(log, self.state, self.groups, clock)
        self.phase = _Phase.FREE
        self.role: Role | None = None
        self.task: asyncio.Task[None] | None = None
        self.leaving: asyncio.Task[None] | None = None
        self.claimed = asyncio.Event()
        self.trouble = Trouble(logger, f"{log.name} cannot be taken", logging.ERROR)

    @property
    def is_being_taken(self) -> bool:
        """Whether a claim of this node is under way."""
        return self.phase is _Phase.TAKING and self.task is not None and not self.task.done()

    @property
    def is_leaving(self) -> bool:
        """Whether it is being given up for another node."""
        return self.leaving is not None and not self.leaving.done()

    def stop(self) -> None:
        """End what is being done to get it or to give it up."""
        for task in (self.task, self.leaving):
            if task is not None and task is not asyncio.current_task():
                task.cancel()
        self.task = self.leaving = None


class Leadership:
    """Takes slots and gives them up.

    Args:
        slots: all there are, by number.
        lease: whether the node may act as an owner at all.
        node_id: this node's.
        fetching: follows the partitions of slots that others give up.
        changed: called with a slot and its ownership when this node changed or learned it.

    Attributes:
        figures: of what was done with slots so far.
    """

    def __init__(
        self,
        slots: Sequence[Slot],
        lease: Lease,
        node_id: int,
        fetching: Callable[[], Fetching],
        changed: Callable[[int, Ownership], object] = lambda slot, ownership: None,
    ) -> None:
        self.slots = slots
        self.figures = SlotFigures()
        self._lease = lease
        self._node_id = node_id
        self._fetching = fetching
        self._changed = changed
        self._duties: Duties | None = None

    def begin(self, duties: Duties, changed: Callable[[int, Ownership], object]) -> None:
        """Says what there is to do with slots, and who is told; before any is assigned."""
        self._duties, self._changed = duties, changed

    def assign(self, roles: Mapping[int, Role]) -> None:
        """What there is to do with each slot from now on; those that are not named are others'."""
        for index, slot in enumerate(self.slots):
            role = roles.get(index)
            if role is None:
                if slot.role is not None:
                    slot.role = None
                    self._resign(slot)
                continue
            slot.role = role
            if role.next_id != NOBODY:
                self._leave(slot, role)
            elif slot.phase is _Phase.RELEASED and not role.awaits:
                # given back before the node that it was released for has claimed it
                self._drop(slot)
                self._take(slot)
            elif not slot.is_leaving:
                if self._is_to_be_taken(slot):
                    self._take(slot)
            elif slot.log.owned and slot.leaving is not None:
                slot.leaving.cancel()
                slot.leaving = None
                self._do.resume(index)

    def _is_to_be_taken(self, slot: Slot) -> bool:
        assert slot.role is not None
        return slot.phase is _Phase.FREE or (slot.phase is _Phase.AWAITED and not slot.role.awaits)

    @property
    def _do(self) -> Duties:
        assert self._duties is not None
        return self._duties

    def decline(self) -> None:
        """Wants nothing of what others are to give up."""
        for slot in self.slots:
            if slot.phase is _Phase.AWAITED:
                slot.role = None
                self._resign(slot)

    def seen(self, index: int, epoch: int) -> None:
        """Another node has claimed a slot."""
        slot = self.slots[index]
        if epoch > slot.log.epoch:
            slot.claimed.set()

    def lost(self, log: SlotLog, error: KafkaError) -> None:
        """Another node has written a slot's partition, or it cannot be known what stands in it."""
        slot = self.slots[log.index]
        logger.warning("%s is given up: %s", log.name, error)
        self.figures.lost += 1
        # not in the middle of whoever found out
        asyncio.get_running_loop().call_soon(self._resign, slot)

    def check(self, index: int) -> None:
        """Raise KafkaError(NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS) unless this node has a slot."""
        slot = self.slots[index]
        if slot.phase is _Phase.TAKING:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        if slot.phase is not _Phase.OWNED or not slot.log.owned or not self.may_act:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)

    @property
    def may_act(self) -> bool:
        """Whether this node may act as the owner of what it has."""
        return self._lease.holds

    def owns(self, index: int) -> bool:
        """Whether this node has a slot."""
        slot = self.slots[index]
        return slot.phase is _Phase.OWNED and slot.log.owned

    def parts(self, index: int) -> bool:
        """Whether this node releases a slot, or has, and the next node has not claimed it yet."""
        slot = self.slots[index]
        releases = slot.phase is _Phase.OWNED and slot.is_leaving and not slot.log.owned
        return (releases or slot.phase is _Phase.RELEASED) and self.may_act

    def count(self) -> Counter[str]:
        """How many slots this node has, takes, awaits and gives up."""
        return Counter(
            "given_up" if slot.is_leaving else slot.phase.value
            for slot in self.slots
            if slot.phase is not _Phase.FREE
        )

    @property
    def awaited(self) -> list[int]:
        """Slots that this node takes as soon as others have given them up, and may be taking already."""
        return [
            index
            for index, slot in enumerate(self.slots)
            if slot.phase in (_Phase.AWAITED, _Phase.TAKING) and slot.role and slot.role.awaits
        ]

    async def settled(self) -> None:
        """Wait until each slot that is this node's is taken."""
        while tasks := [slot.task for slot in self.slots if slot.is_being_taken and slot.task]:
            await asyncio.wait(tasks)

    async def left(self) -> None:
        """Wait until each slot that is to be given up for another node is."""
        while tasks := [slot.leaving for slot in self.slots if slot.leaving and slot.is_leaving]:
            await asyncio.gather(*tasks, return_exceptions=True)

    async def rest(self) -> None:
        """Leases nothing of any slot; ends when nothing is leased, or when that has taken long."""
        owned = [index for index in range(len(self.slots)) if self.owns(index)]
        await asyncio.gather(*(self._do.rest(index) for index in owned))

    async def upkeep(self) -> None:
        """Lets go of records of the slots that nobody needs."""
        for slot in self.slots:
            if slot.phase is _Phase.OWNED:
                await slot.upkeep.look()

    def close(self) -> None:
        """Give up all."""
        self.assign({})
        for slot in self.slots:
            if slot.phase is _Phase.RELEASED:
                self._resign(slot)

    # taking

    def _take(self, slot: Slot) -> None:
        assert slot.role is not None
        slot.stop()
        slot.phase = _Phase.AWAITED if slot.role.awaits else _Phase.TAKING
        slot.task = asyncio.get_running_loop().create_task(self._claim(slot), name=f"claim {slot.log.name}")

    async def _claim(self, slot: Slot) -> None:
        successor = Successor(slot.log, self._fetching)
        while (role := slot.role) is not None:
            try:
                read = None
                if role.awaits:
                    read = await successor.released(role.epoch)
                    slot.phase = _Phase.TAKING
                await self._claim_once(slot, role, read)
            except Taken as taken:  # noqa: PERF203
                slot.phase = _Phase.AWAITED if role.awaits else _Phase.FREE
                if not role.awaits:
                    logger.info("%s", taken)
                    slot.task, slot.role = None, None
                    self._changed(slot.log.index, Ownership(taken.claim.node_id, taken.claim.epoch))
                    return
            except (KafkaError, ValueError) as error:
                slot.trouble.goes_on(error)
                if slot.phase is _Phase.OWNED:
                    self._do.resign(slot.log.index)
                slot.phase = _Phase.AWAITED if role.awaits else _Phase.TAKING
                slot.log.resign()
                await asyncio.sleep(_RETRY_S)
            else:
                slot.trouble.is_over()
                slot.task = None
                self._changed(slot.log.index, Ownership(self._node_id, slot.log.epoch))
                return

    async def _claim_once(self, slot: Slot, role: Role, read: Read | None) -> None:
        began = self.figures.now()
        records = await slot.log.claim(role.epoch, role.right, read)
        await self._do.look()
        slot.state.claimed(records)
        slot.groups.claimed(records)
        slot.phase = _Phase.OWNED
        self._do.take_over(slot.log.index, was_released=slot.log.was_released)
        logger.info("%s is this node's, which took %.3f s", slot.log.name, self.figures.claimed(began))

    # giving up

    def _leave(self, slot: Slot, role: Role) -> None:
        """Give a slot up for another node, once nothing of it is leased."""
        if slot.phase is not _Phase.OWNED:
            self._give_up(slot, role)
        elif not slot.is_leaving:
            slot.leaving = asyncio.get_running_loop().create_task(
                self._hand_over(slot), name=f"hand over {slot.log.name}"
            )

    async def _hand_over(self, slot: Slot) -> None:
        began = self.figures.now()
        await self._do.rest(slot.log.index)
        role = slot.role
        assert role is not None
        slot.claimed.clear()
        try:
            await slot.log.release(role.next_id)
        except KafkaError as error:
            logger.warning(
                "%s: node %d hears late that it was given up: %s", slot.log.name, role.next_id, error
            )
            self._give_up(slot, role)
        took = self.figures.handed_over(began)
        logger.info("%s was handed over to node %d, which took %.3f s", slot.log.name, role.next_id, took)
        if slot.phase is _Phase.OWNED:
            await self._part(slot, role)

    async def _part(self, slot: Slot, role: Role) -> None:
        """Keep fetches waiting until the other node has claimed a slot: who comes there too soon is refused,
        and tries again much later than the claim takes.
        """
        slot.role, slot.phase = None, _Phase.RELEASED
        self._notify_successor(slot, role)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLAIM_S):
                await slot.claimed.wait()
        self._resign(slot)

    def _give_up(self, slot: Slot, role: Role) -> None:
        slot.role = None
        self._resign(slot)
        self._notify_successor(slot, role)

    def _notify_successor(self, slot: Slot, role: Role) -> None:
        self._changed(slot.log.index, Ownership(role.next_id, max(slot.log.epoch, role.epoch) + 1))

    def _drop(self, slot: Slot) -> None:
        before, slot.phase = slot.phase, _Phase.FREE
        slot.stop()
        slot.log.resign()
        if before in (_Phase.OWNED, _Phase.RELEASED):
            self._do.resign(slot.log.index)

    def _resign(self, slot: Slot) -> None:
        self._drop(slot)
        if slot.role is not None:
            with contextlib.suppress(RuntimeError):
                asyncio.get_running_loop().call_later(_RETRY_S, self._take_again, slot)

    def _take_again(self, slot: Slot) -> None:
        if slot.role is not None and slot.phase is _Phase.FREE:
            if not slot.role.awaits:
                # who has it now, if anybody, has had a better right
                slot.role = Role(slot.role.epoch)
            self._take(slot)
