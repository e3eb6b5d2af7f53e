"""The tier as clients see it: live nodes are brokers, and each leads its slots' partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

from sharecore.broker.cluster import NOBODY, Leader, Node
from sharecore.errors import ErrorCode, KafkaError
from sharecore.tier.membership.nodes import Nodes
from sharecore.tier.slots import slot_of_group
from sharecore.tier.slots.leadership import Leadership

FIRST_NODE_ID = 1_000_000
"""Offset of node ids for clients, so that none equals a broker id of the cluster."""


class TierView:
    """Nodes and slots.

    A node with an expired lease has outdated knowledge, and others may lead its slots. It redirects its
    clients: it names itself neither as a leader nor, if there are others, as a broker.

    Args:
        node_id: this node's id for clients.
        nodes: the live nodes and their slots.
        leadership: this node's slots.
        slot_of: returns the slot of a topic partition.
    """

    leads_all = False
    leases_always = True

    def __init__(
        self, node_id: int, nodes: Nodes, leadership: Leadership, slot_of: Callable[[UUID, int], int]
    ) -> None:
        self._node_id = node_id
        self._nodes = nodes
        self._leadership = leadership
        self._slot_of = slot_of
        self._slots = len(leadership.slots)
        self._asked = [-1] * self._slots
        """Highest coordinator epoch of requests from other nodes, by slot."""

    def nodes(self, listener: str) -> Sequence[Node]:
        live = self._nodes.live(listener)
        if not self._leadership.may_act and len(live) > 1:
            live.pop(self._node_id, None)
        return list(live.values())

    def controller(self) -> int:
        if self._leadership.may_act:
            return self._node_id
        return min(self._nodes.others, default=self._node_id)

    def leader(self, topic_id: UUID, partition: int) -> Leader:
        slot = self._slot_of(topic_id, partition)
        if self._leadership.parts(slot):
            return Leader(self._node_id, self._leadership.slots[slot].log.epoch)
        return self.owner(slot)

    def keeper(self, topic_id: UUID, partition: int) -> Leader:
        """Return the node with the state of a topic partition's share partitions, or its successor."""
        return self.owner(self._slot_of(topic_id, partition))

    def coordinator(self, group_id: str) -> int:
        return self.owner(slot_of_group(group_id, self._slots)).node_id

    def may_lease(self) -> bool:
        # `check_leader` asks for the lease of each slot
        return True

    def check_leader(self, topic_id: UUID, partition: int) -> None:
        try:
            self._leadership.check(self._slot_of(topic_id, partition))
        except KafkaError:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER) from None

    def check_coordinator(self, group_id: str) -> None:
        self._leadership.check(slot_of_group(group_id, self._slots))

    def check_asker(self, group_id: str, epoch: int) -> None:
        slot = slot_of_group(group_id, self._slots)
        known = max(self._asked[slot], self._nodes.ownerships[slot].epoch)
        if self._leadership.owns(slot):
            known = max(known, self._leadership.slots[slot].log.epoch)
        if 0 <= epoch < known:
            text = f"Group {group_id} is coordinated under epoch {known}, and no longer under {epoch}."
            raise KafkaError(ErrorCode.NOT_COORDINATOR, text)
        self._asked[slot] = max(self._asked[slot], epoch)

    def term(self, group_id: str) -> int:
        """Return the epoch of this node's last claim of a group's slot, valid or not."""
        return self._leadership.slots[slot_of_group(group_id, self._slots)].log.epoch

    def owner(self, slot: int) -> Leader:
        """Return the owner of a slot, which leads and coordinates its contents."""
        if self._leadership.owns(slot):
            node_id = self._node_id if self._leadership.may_act else NOBODY
            return Leader(node_id, self._leadership.slots[slot].log.epoch)
        other = self._nodes.ownerships[slot]
        there = other.node_id != self._node_id and self._nodes.is_live(other.node_id)
        return Leader(other.node_id if there else NOBODY, other.epoch)
