"""A node's work with its slots: coordinate groups, lead share partitions, and stop in order."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from uuid import UUID

from sharecore.broker.coordinators.groups import Coordinators
from sharecore.broker.coordinators.share import ShareServices
from sharecore.clock import Clock
from sharecore.errors import KafkaError
from sharecore.sharestate.keys import SharePartitionKey

logger = logging.getLogger("sharecore.tier")

_SETTLING_S = 0.01
_CHECK_S = 5.0
"""Delay before group state is checked after slots have moved.

An unclean upstream election may lose state. The slot's owner reads what is left, and the group's coordinator
may be another node.
"""


class SlotDuties:
    """Implementation of `leadership.Duties`.

    Args:
        groups, share: services of the node.
        slot_of, slot_of_group: return the slot of a topic partition, and of a group.
        drain_ms: how long members may take to acknowledge records of a slot being released.
        look: refreshes the cluster's topics.
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
        """Take over the groups and share partitions of a slot.

        Args:
            was_released: whether it had no owner, or its last owner released it.
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
        """Schedule a check of group state in a slot that another node has taken."""
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
        """Cancel scheduled checks."""
        if self._timer is not None:
            self._timer.cancel()

    def resign(self, slot: int) -> None:
        """Discard the groups and share partitions of a slot."""
        self._share.resign(slot, self._holds(slot))

    async def rest(self, slot: int) -> None:
        """Stop acquiring records of a slot, and wait until members have acknowledged theirs."""
        until_ms = self._clock.monotonic_ms() + self._drain_ms
        leaders = self._share.rest(slot, self._holds(slot))
        while leaders := [leader for leader in leaders if leader.holds]:
            if self._clock.monotonic_ms() >= until_ms:
                logger.warning(
                    "slot %d: %d share partitions have acquired records after the timeout",
                    slot,
                    len(leaders),
                )
                return
            await asyncio.sleep(_SETTLING_S)

    def resume(self, slot: int) -> None:
        """Resume acquiring records."""
        self._share.resume(slot)

    def lease_ended(self) -> None:
        """Time out pending writes: another node may lead by the time they end."""
        self._groups.records.expire()
        self._share.coordinator.expire()

    def topic_gone(self, topic_id: UUID) -> None:
        """Drop the state of a deleted topic, as coordinators on other nodes may not know it any more."""
        coordinator = self._share.coordinator
        for shard in coordinator.shards:
            for key in [key for key in shard.states if key.topic_id == topic_id]:
                with contextlib.suppress(KafkaError):
                    coordinator.delete(key, lambda error: None)

    def _holds(self, slot: int) -> Callable[[UUID, int], bool]:
        slot_of = self._slot_of
        return lambda topic_id, partition: slot_of(topic_id, partition) == slot
