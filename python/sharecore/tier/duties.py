"""What a node does with its slots: coordinate groups, lead share partitions, and stop in good order."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from uuid import UUID

from sharecore.broker.coordinators import Coordinators
from sharecore.broker.share import ShareServices
from sharecore.clock import Clock
from sharecore.errors import KafkaError
from sharecore.sharestate.keys import SharePartitionKey

logger = logging.getLogger(__name__)

_SETTLING_S = 0.01
_CHECK_S = 5.0
"""How long after slots have moved it is asked whether all state that groups have noted is there: an unclean
election upstream takes state away, the owner reads what is left, and who coordinates the group may be another
node.
"""


class SlotDuties:
    """As `leadership.Duties` has them.

    Args:
        groups, share: the services of the node.
        slot_of, slot_of_group: in which slot a partition of a topic lies, and a group.
        drain_ms: how long members are waited for, to settle what they hold of a slot that is given up.
        look: asks the cluster what topics it has now.
    """

    def __init__(
        self,
        groups: Coordinators,
        share: ShareServices,
        clock: Clock,
        slot_of: Callable[[UUID, int], int],
        slot_of_group: Callable[[str], int],
        drain_ms: int,
        look: Callable[[], Awaitable[None]],
    ) -> None:
        self._groups, self._share = groups, share
        self._clock = clock
        self._slot_of, self._slot_of_group = slot_of, slot_of_group
        self._drain_ms = drain_ms
        self.look = look
        self._taken: set[int] = set()
        self._moved: set[int] = set()
        self._timer: asyncio.TimerHandle | None = None

    def take_over(self, slot: int, *, was_released: bool) -> None:
        """Goes on with the groups and the share partitions of a slot.

        Args:
            was_released: nobody owned it, or its last owner gave it up.
        """
        predecessors = self._share.partitions.predecessors
        if was_released:
            predecessors.released(slot)
        else:
            predecessors.lost(slot, self._holds(slot))
        self._groups.records.load_partition(slot)
        self._share.take_over(slot)
        self._taken.add(slot)
        self._check_later()

    def moved(self, slot: int) -> None:
        """Another node has a slot: what it found there may not be all that groups here have noted."""
        self._moved.add(slot)
        self._check_later()

    def _check_later(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_CHECK_S, self._check)

    def _check(self) -> None:
        self._timer = None
        taken, self._taken = self._taken, set()
        moved, self._moved = self._moved, set()

        def doubted(key: SharePartitionKey) -> bool:
            if self._slot_of_group(key.group_id) in taken:
                return True
            return self._slot_of(key.topic_id, key.partition) in moved

        self._share.groups.check_states(doubted)

    def close(self) -> None:
        """Look after nothing any longer."""
        if self._timer is not None:
            self._timer.cancel()

    def resign(self, slot: int) -> None:
        """Forgets the groups and the share partitions of a slot."""
        self._share.resign(slot, self._holds(slot))

    async def rest(self, slot: int) -> None:
        """Leases nothing more of a slot, and waits until members have settled what they hold of it."""
        until_ms = self._clock.monotonic_ms() + self._drain_ms
        leaders = self._share.rest(slot, self._holds(slot))
        while leaders := [leader for leader in leaders if leader.holds]:
            if self._clock.monotonic_ms() >= until_ms:
                logger.warning("slot %d: %d share partitions are not settled in time", slot, len(leaders))
                return
            await asyncio.sleep(_SETTLING_S)

    def resume(self, slot: int) -> None:
        """Leases again."""
        self._share.resume(slot)

    def lease_ended(self) -> None:
        """Has nobody wait for what is under way: others may lead by the time when it has ended."""
        self._groups.records.expire()
        self._share.coordinator.expire()

    def topic_gone(self, topic_id: UUID) -> None:
        """Drop the state of a topic that was deleted: coordinators elsewhere may not name it any more."""
        coordinator = self._share.coordinator
        for shard in coordinator.shards:
            for key in [key for key in shard.states if key.topic_id == topic_id]:
                with contextlib.suppress(KafkaError):
                    coordinator.delete(key, lambda error: None)

    def _holds(self, slot: int) -> Callable[[UUID, int], bool]:
        slot_of = self._slot_of
        return lambda topic_id, partition: slot_of(topic_id, partition) == slot
