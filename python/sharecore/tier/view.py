"""The tier as clients see it: its live nodes are the brokers, and each leads what lies in its slots."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from sharecore.broker.cluster import NOBODY, Leader, Node
from sharecore.errors import ErrorCode, KafkaError
from sharecore.tier.leadership import Leadership
from sharecore.tier.slots import slot_of_group, slot_of_partition

FIRST_NODE_ID = 1_000_000
"""Nodes are told to clients from this number on, so that none is taken for a broker of the cluster."""


class Standing(NamedTuple):
    """Who has a slot, as far as is known here; `NOBODY` while that changes."""

    node_id: int
    epoch: int


class TierView:
    """Nodes and slots.

    Args:
        node_id: this node's, as clients know it.
        nodes: all live ones by id, with their addresses for clients of a listener.
        leadership: of this node.
    """

    def __init__(
        self,
        node_id: int,
        nodes: Callable[[str], Mapping[int, Node]],
        leadership: Leadership,
    ) -> None:
        self._node_id = node_id
        self._nodes = nodes
        self._leadership = leadership
        self._others: Sequence[Standing] = [Standing(NOBODY, -1)] * len(leadership.slots)

    def assigned(self, standings: Sequence[Standing]) -> None:
        """Takes in who has which slot."""
        self._others = standings

    def nodes(self, listener: str) -> Sequence[Node]:
        return list(self._nodes(listener).values())

    def controller(self) -> int:
        return self._node_id

    def leader(self, topic_id: UUID, partition: int) -> Leader:
        return self._leader_of(self._slot(topic_id, partition))

    def coordinator(self, group_id: str) -> int:
        return self._leader_of(slot_of_group(group_id, len(self._others))).node_id

    def check_leader(self, topic_id: UUID, partition: int) -> None:
        try:
            self._leadership.check(self._slot(topic_id, partition))
        except KafkaError:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER) from None

    def check_coordinator(self, group_id: str) -> None:
        self._leadership.check(slot_of_group(group_id, len(self._others)))

    def _slot(self, topic_id: UUID, partition: int) -> int:
        return slot_of_partition(topic_id, partition, len(self._others))

    def _leader_of(self, slot: int) -> Leader:
        if self._leadership.owns(slot):
            return Leader(self._node_id, self._leadership.slots[slot].log.epoch)
        other = self._others[slot]
        return Leader(NOBODY if other.node_id == self._node_id else other.node_id, other.epoch)
