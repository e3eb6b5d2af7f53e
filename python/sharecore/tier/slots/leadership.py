"""This node's slots: claimed when assigned, released on request or when another node claims them."""

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
from sharecore.tier.slots.figures import SlotFigures
from sharecore.tier.slots.lease import Lease
from sharecore.tier.slots.log import Read, Right, SlotLog, Taken
from sharecore.tier.slots.ownership import Ownership
from sharecore.tier.slots.successor import Successor
from sharecore.tier.slots.upkeep import Upkeep
from sharecore.tier.slots.views import GroupView, StateView
from sharecore.tier.upstream.sources import Fetching
from sharecore.upstream import Trouble

logger = logging.getLogger("sharecore.tier")

_RETRY_S = 1.0
_CLAIM_S = 3.0
"""How long fetches of a released slot wait for the next claim."""


class Duties(Protocol):
    """A node's work with its slots."""

    def look(self) -> Awaitable[None]:
        """Refresh the topics: a slot may have state of one that was just created."""

    def take_over(self, slot: int, *, was_released: bool) -> None:
        """Resume from the slot's last owner; raise KafkaError if its records cannot be read.

        Args:
            was_released: whether it had no owner, or its last owner released it.
        """

    def resign(self, slot: int) -> None:
        """Discard the state of a slot that another node may own."""

    async def rest(self, slot: int) -> None:
        """Stop acquiring records of the slot; end once none is acquired, or after a timeout."""

    def resume(self, slot: int) -> None:
        """Resume acquiring records."""


class Role(NamedTuple):
    """Assigned role of a node for a slot.

    Attributes:
        epoch: minimum epoch of its next claim.
        right: the right to claim it; GIVEN if another node will release it for this one.
        next_id: the successor; `NOBODY` if it stays.
    """

    epoch: int
    right: Right = Right.OWN
    next_id: int = NOBODY

    @property
    def awaits(self) -> bool:
        """Whether another node must release the slot first."""
        return self.right is Right.GIVEN


class _Phase(Enum):
    FREE = "free"
    AWAITED = "awaited"
    TAKING = "claiming"
    OWNED = "owned"
    RELEASED = "released"


class Slot:
    """A slot, owned by this node or another.

    Attributes:
        log: its partition.
        state, groups: its views for coordinators.
        role: this node's role; None if another node owns it.
        claimed: set once the successor has claimed it.
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
        self.trouble = Trouble(logger, f"{log.name} cannot be claimed", logging.ERROR)

    @property
    def is_being_taken(self) -> bool:
        """Whether this node is claiming it."""
        return self.phase is _Phase.TAKING and self.task is not None and not self.task.done()

    @property
    def is_leaving(self) -> bool:
        """Whether this node is releasing it for another node."""
        return self.leaving is not None and not self.leaving.done()

    def stop(self) -> None:
        """Cancel pending claims and releases."""
        for task in (self.task, self.leaving):
            if task is not None and task is not asyncio.current_task():
                task.cancel()
        self.task = self.leaving = None


class Leadership:
    """Claim and release slots.

    Args:
        slots: all slots by number.
        lease: limits how long the node may act as an owner.
        node_id: this node's id.
        fetching: follows the partitions of slots being released by others.
        changed: called with a slot and its ownership after a change on this node.

    Attributes:
        figures: metrics of claims and releases.
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
        """Set the work with slots and the listener, before any slot is assigned."""
        self._duties, self._changed = duties, changed

    def assign(self, roles: Mapping[int, Role]) -> None:
        """Set the role for each slot; slots without one belong to other nodes."""
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
                # reassigned before the successor has claimed it
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
        """Stop waiting for slots that others would release."""
        for slot in self.slots:
            if slot.phase is _Phase.AWAITED:
                slot.role = None
                self._resign(slot)

    def seen(self, index: int, epoch: int) -> None:
        """Note a claim of another node."""
        slot = self.slots[index]
        if epoch > slot.log.epoch:
            slot.claimed.set()

    def lost(self, log: SlotLog, error: KafkaError) -> None:
        """Release a slot that another node has written, or whose contents are uncertain."""
        slot = self.slots[log.index]
        logger.warning("giving up %s: %s", log.name, error)
        self.figures.lost += 1
        # not while the caller still uses it
        asyncio.get_running_loop().call_soon(self._resign, slot)

    def check(self, index: int) -> None:
        """Raise KafkaError (NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS) unless this node owns a slot."""
        slot = self.slots[index]
        if slot.phase is _Phase.TAKING:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        if slot.phase is not _Phase.OWNED or not slot.log.owned or not self.may_act:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)

    @property
    def may_act(self) -> bool:
        """Whether this node may act as the owner of its slots."""
        return self._lease.holds

    def owns(self, index: int) -> bool:
        """Return whether this node owns a slot."""
        slot = self.slots[index]
        return slot.phase is _Phase.OWNED and slot.log.owned

    def parts(self, index: int) -> bool:
        """Return whether this node releases a slot, or its successor has not claimed it yet."""
        slot = self.slots[index]
        releases = slot.phase is _Phase.OWNED and slot.is_leaving and not slot.log.owned
        return (releases or slot.phase is _Phase.RELEASED) and self.may_act

    def count(self) -> Counter[str]:
        """Return the number of slots by state."""
        return Counter(
            "given_up" if slot.is_leaving else slot.phase.value
            for slot in self.slots
            if slot.phase is not _Phase.FREE
        )

    @property
    def awaited(self) -> list[int]:
        """Slots that this node claims after their release, and may be claiming already."""
        return [
            index
            for index, slot in enumerate(self.slots)
            if slot.phase in (_Phase.AWAITED, _Phase.TAKING) and slot.role and slot.role.awaits
        ]

    async def settled(self) -> None:
        """Wait until all assigned slots are claimed."""
        while tasks := [slot.task for slot in self.slots if slot.is_being_taken and slot.task]:
            await asyncio.wait(tasks)

    async def left(self) -> None:
        """Wait until all slots to be released are released."""
        while tasks := [slot.leaving for slot in self.slots if slot.leaving and slot.is_leaving]:
            await asyncio.gather(*tasks, return_exceptions=True)

    async def rest(self) -> None:
        """Stop acquiring records of all slots; end once none is acquired, or after a timeout."""
        owned = [index for index in range(len(self.slots)) if self.owns(index)]
        await asyncio.gather(*(self._do.rest(index) for index in owned))

    async def upkeep(self) -> None:
        """Delete obsolete records of the slots."""
        for slot in self.slots:
            if slot.phase is _Phase.OWNED:
                await slot.upkeep.look()

    def close(self) -> None:
        """Give up all slots."""
        self.assign({})
        for slot in self.slots:
            if slot.phase is _Phase.RELEASED:
                self._resign(slot)

    # claiming

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
        logger.info("claimed %s in %.3f s", slot.log.name, self.figures.claimed(began))

    # releasing

    def _leave(self, slot: Slot, role: Role) -> None:
        """Release a slot for another node, once no record of it is acquired."""
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
                "%s: release record not written; node %d learns of it late: %s",
                slot.log.name,
                role.next_id,
                error,
            )
            self._give_up(slot, role)
        took = self.figures.handed_over(began)
        logger.info("handed over %s to node %d in %.3f s", slot.log.name, role.next_id, took)
        if slot.phase is _Phase.OWNED:
            await self._part(slot, role)

    async def _part(self, slot: Slot, role: Role) -> None:
        """Keep fetches waiting until the successor has claimed a slot.

        A client that arrives there too soon is refused, and retries much later than the claim.
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
                # the current owner, if any, had the better right
                slot.role = Role(slot.role.epoch)
            self._take(slot)
