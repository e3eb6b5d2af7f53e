"""Nodes of a tier: members of an upstream group, whose leader assigns the slots."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Collection, Mapping
from uuid import uuid4

from sharecore.broker.cluster import NOBODY, Node
from sharecore.clock import Clock
from sharecore.errors import KafkaError
from sharecore.tier.membership.assignor import assign
from sharecore.tier.slots.leadership import Leadership, Role
from sharecore.tier.slots.log import Right
from sharecore.tier.slots.ownership import (
    UNKNOWN,
    Assignment,
    MemberFields,
    NodeFields,
    Ownership,
    Report,
    pack_assignments,
    unpack_assignments,
)
from sharecore.upstream import GroupMember

logger = logging.getLogger("sharecore.tier")

_GATHER_MS = 100
"""Delay that batches changes of several slots into one join."""
_PAUSE_MS = 1_000
"""Minimum time between joins requested by this node, as each makes every node rejoin."""

Endpoints = Mapping[str, tuple[str, int]]
"""Host and port by listener name."""


class Nodes:
    """Live nodes and slot owners, as distributed by the group leader (`upstream.Listener`).

    A node reports the slots that it owns and awaits when it joins. Until the next assignment it may take over
    the slots that it awaits, and it releases those it is asked to. So the leader knows which node may act as
    the owner of each slot, and never assigns a slot that another node may own. A silent node is removed from
    the group only after its own lease has expired, when it no longer acts as an owner.

    Args:
        node_id: this node's id.
        endpoints: its addresses for clients.
        clock: measures the time between joins.
        rejoin: makes this node rejoin with a new report.
        watch: follows slots being handed over between other nodes; `seen` receives their claims.
        pins: returns preferred nodes by slot.

    Attributes:
        ownerships: known owners of slots.
        leaving: whether this node is shutting down.
        drained: whether operators want it to own no slots.
        moved: called with a slot that another node has claimed, or is about to claim.
    """

    def __init__(
        self,
        node_id: int,
        endpoints: Callable[[], Endpoints],
        rack: str | None,
        leadership: Leadership,
        clock: Clock,
        *,
        rejoin: Callable[[], object],
        watch: Callable[[Collection[int]], object],
        pins: Callable[[], Mapping[int, int]] = dict,
    ) -> None:
        self.known = asyncio.Event()
        self.ownerships = [UNKNOWN] * len(leadership.slots)
        self.leaving = self.drained = False
        self.moved: Callable[[int], object] = lambda slot: None
        self._node_id = node_id
        self._endpoints = endpoints
        self._rack = rack
        self._leadership = leadership
        self._clock = clock
        self._rejoin = rejoin
        self._watch = watch
        self._pins = pins
        self._life = uuid4().hex
        self._joins = 0
        self._others: dict[int, NodeFields] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._joined_ms = -_PAUSE_MS
        self._said_leaving = False
        self._left = asyncio.Event()

    def live(self, listener: str) -> dict[int, Node]:
        """Return the nodes by id, with their addresses on a listener."""
        nodes = self._others | {self._node_id: self._own()}
        found = {}
        for node_id, each in sorted(nodes.items()):
            if listener in each["endpoints"]:
                host, port = each["endpoints"][listener]
                found[node_id] = Node(node_id, host, port, each["rack"])
        return found

    def is_live(self, node_id: int) -> bool:
        """Return whether a node is live, as far as known."""
        return node_id in self._others or node_id == self._node_id

    @property
    def others(self) -> list[int]:
        """The other live nodes, as far as known."""
        return sorted(self._others.keys() - {self._node_id})

    async def leave(self) -> None:
        """Hand this node's slots to others; end once their successors are assigned."""
        self.leaving = True
        self._leadership.decline()
        self._rejoin()
        await self._left.wait()

    def drain(self, drained: bool) -> None:
        """Drain this node, or undo it; takes effect with the next join."""
        self.drained = drained
        if drained:
            self._leadership.decline()

    def report(self) -> None:
        """Schedule a rejoin with a new report."""
        if self._timer is None:
            since_ms = self._clock.monotonic_ms() - self._joined_ms
            delay_ms = max(_GATHER_MS, _PAUSE_MS - since_ms)
            self._timer = asyncio.get_running_loop().call_later(delay_ms / 1000, self._join_again)

    def _join_again(self) -> None:
        self._timer = None
        self._rejoin()

    def close(self) -> None:
        """Stop reporting."""
        self._watch(())
        if self._timer is not None:
            self._timer.cancel()

    def changed(self, slot: int, ownership: Ownership) -> None:
        """Update the ownership of a slot after a change on this node."""
        known = self.ownerships[slot]
        if ownership.epoch < known.epoch and known.node_id == self._node_id:
            # other nodes believe that this node owns it, but it cannot claim it with its right
            self.report()
        if ownership.epoch < known.epoch or ownership == known:
            return
        self.ownerships[slot] = ownership
        if ownership.node_id != self._node_id:
            self.moved(slot)
        self.report()

    def seen(self, slot: int, ownership: Ownership) -> None:
        """Update the ownership of a slot claimed by another node, which reports it itself."""
        if ownership.node_id == self._node_id:
            return
        self._leadership.seen(slot, ownership.epoch)
        if ownership.epoch > self.ownerships[slot].epoch:
            self.ownerships[slot] = ownership
            self.moved(slot)

    # the group (`upstream.Listener`)

    def _own(self) -> NodeFields:
        return {"endpoints": dict(self._endpoints()), "rack": self._rack, "life": self._life}

    def metadata(self) -> bytes:
        # the leader ignores a member with an unchanged report: the others keep their assignment
        self._joins += 1
        self._joined_ms = self._clock.monotonic_ms()
        self._said_leaving = self.leaving
        report = Report(
            self._node_id, self.ownerships, self._leadership.awaited, self.leaving or self.drained
        )
        fields: MemberFields = {**self._own(), **report.pack(), "joins": self._joins}
        return _pack(fields)

    def assign(self, generation: int, members: list[GroupMember]) -> dict[str, bytes]:
        reported: dict[str, MemberFields] = {
            member.member_id: json.loads(member.metadata) for member in members
        }
        nodes: dict[str, NodeFields] = {
            str(each["node_id"]): {
                "endpoints": each["endpoints"],
                "rack": each["rack"],
                "life": each["life"],
            }
            for each in reported.values()
        }
        reports = [Report.unpack(each) for each in reported.values()]
        assignments = assign(reports, len(self.ownerships), self._pins())
        return dict.fromkeys(reported, _pack({"nodes": nodes, **pack_assignments(assignments)}))

    def assigned(self, generation: int, assignment: bytes) -> None:
        decoded = json.loads(assignment)
        self._others = {int(node_id): each for node_id, each in decoded["nodes"].items()}
        own = self._others.get(self._node_id)
        # an assignment for an earlier run of this node ignores later changes by others
        fresh = own is not None and own["life"] == self._life
        assignments = unpack_assignments(decoded)
        roles = {
            slot: role
            for slot, each in enumerate(assignments)
            if (role := self._role_in(slot, each, fresh=fresh)) is not None
        }
        logger.info(
            "%d nodes; this one has %d of %d slots, gives up %d and gets %d",
            len(self._others),
            sum(role.next_id == NOBODY and not role.awaits for role in roles.values()),
            len(assignments),
            sum(role.next_id != NOBODY for role in roles.values()),
            sum(role.awaits for role in roles.values()),
        )
        moving = [
            slot
            for slot, each in enumerate(assignments)
            if each.next_id not in (NOBODY, self._node_id) and not (slot in roles and roles[slot].awaits)
        ]
        # before this node claims one of the slots that it has followed
        self._watch(moving)
        self._leadership.assign(roles)
        if not fresh:
            self.report()
        elif self._said_leaving:
            self._left.set()
        self.known.set()

    def _role_in(self, slot: int, assignment: Assignment, *, fresh: bool) -> Role | None:
        """Return this node's role for a slot, after updating its ownership."""
        known = self.ownerships[slot]
        if assignment.epoch < known.epoch:
            # assigned before the others learned of a later change
            self.report()
            return self._leadership.slots[slot].role
        self.ownerships[slot] = Ownership(assignment.node_id, assignment.epoch)
        if assignment.epoch > known.epoch and assignment.node_id != self._node_id:
            self.moved(slot)
        if assignment.node_id == self._node_id:
            return Role(assignment.epoch, Right.ANY if fresh else Right.OWN, assignment.next_id)
        if assignment.next_id == self._node_id:
            return Role(assignment.epoch + 1, Right.GIVEN)
        return None

    def lost(self, error: KafkaError) -> None:
        # the other nodes are unchanged, as far as known: clients are redirected to them
        logger.warning("this node is not a member of the tier now; giving up its slots: %s", error)
        self._watch(())
        self._leadership.close()
        # another node may be assigned them with the same epochs, and be claiming them when this one returns
        self.ownerships = [
            Ownership(NOBODY, each.epoch) if each.node_id == self._node_id else each
            for each in self.ownerships
        ]


def _pack(message: Mapping[str, object]) -> bytes:
    return json.dumps(message, sort_keys=True).encode()
