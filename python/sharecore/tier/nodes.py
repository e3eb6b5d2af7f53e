"""The nodes of a tier: members of a group upstream, of which one has all slots and the others stand by."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

from sharecore.broker.cluster import NOBODY, Node
from sharecore.errors import KafkaError
from sharecore.tier.leadership import Leadership, all_slots
from sharecore.upstream import GroupMember

logger = logging.getLogger(__name__)

Endpoints = Mapping[str, tuple[str, int]]
"""Host and port by the name of the listener."""


class Nodes:
    """Who there is, and who has the slots; told by the group's leader to all (`upstream.Listener`).

    Whoever has the slots keeps them as long as it is a member. A node that has fallen silent is a member no
    more once nobody can take it for the owner: its own lease has run out by then.

    Args:
        node_id: this node's.
        endpoints: where its clients find it.
        assigned: called with the node that has the slots, and with the epoch under which it has them.
    """

    def __init__(
        self,
        node_id: int,
        endpoints: Callable[[], Endpoints],
        rack: str | None,
        leadership: Leadership,
        assigned: Callable[[int, int], object],
    ) -> None:
        self.known = asyncio.Event()
        self._node_id = node_id
        self._endpoints = endpoints
        self._rack = rack
        self._leadership = leadership
        self._tell_assigned = assigned
        self._others: dict[int, dict[str, Any]] = {}
        self._owner, self._epoch = NOBODY, -1

    def live(self, listener: str) -> dict[int, Node]:
        """The nodes by their ids, with their addresses for clients of a listener."""
        nodes = self._others | {self._node_id: self._own()}
        found = {}
        for node_id, each in sorted(nodes.items()):
            if listener in each["endpoints"]:
                host, port = each["endpoints"][listener]
                found[node_id] = Node(node_id, host, port, each["rack"])
        return found

    def _own(self) -> dict[str, Any]:
        endpoints = {name: list(address) for name, address in self._endpoints().items()}
        return {"endpoints": endpoints, "rack": self._rack}

    def metadata(self) -> bytes:
        epoch = max([self._epoch, *(slot.log.epoch for slot in self._leadership.slots)])
        owns = self._owner == self._node_id
        return _pack(self._own() | {"node_id": self._node_id, "owns": owns, "epoch": epoch})

    def assign(self, generation: int, members: list[GroupMember]) -> dict[str, bytes]:
        told = {member.member_id: json.loads(member.metadata) for member in members}
        epoch = max([generation, *(each["epoch"] for each in told.values())])
        owners = [each for each in told.values() if each["owns"]]
        owner = (
            max(owners, key=lambda each: int(each["epoch"]))
            if owners
            else min(told.values(), key=lambda each: int(each["node_id"]))
        )
        nodes = {
            str(each["node_id"]): {"endpoints": each["endpoints"], "rack": each["rack"]}
            for each in told.values()
        }
        answer = {"nodes": nodes, "owner": owner["node_id"], "epoch": epoch if owners else epoch + 1}
        return dict.fromkeys(told, _pack(answer))

    def assigned(self, generation: int, assignment: bytes) -> None:
        told = json.loads(assignment)
        self._others = {int(node_id): each for node_id, each in told["nodes"].items()}
        self._owner, self._epoch = told["owner"], told["epoch"]
        logger.info(
            "node %d has the slots, of %d nodes, epoch %d", self._owner, len(self._others), self._epoch
        )
        self._tell_assigned(self._owner, self._epoch)
        mine = self._owner == self._node_id
        self._leadership.assign(all_slots(self._leadership.slots, self._epoch) if mine else {})
        self.known.set()

    def lost(self, error: KafkaError) -> None:
        logger.error("this node is no member of the tier any more: %s", error)
        self._others, self._owner = {}, NOBODY
        self._tell_assigned(NOBODY, self._epoch)
        self._leadership.assign({})


def _pack(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message, sort_keys=True).encode()
