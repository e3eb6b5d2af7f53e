"""Requests that every broker answers for its part, such as lists of groups and transactions.

Clients ask each node of the tier, so each node asks a part of the brokers, and all nodes together ask each
broker once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from sharecore.broker.requests.context import RequestContext
from sharecore.errors import ErrorCode, KafkaError
from sharecore.tier.forward.forwarder import RequestForwarder, throttle_of
from sharecore.tier.forward.shapes import Fields, Message, field_of, list_of

Listed_contra = TypeVar("Listed_contra", bound=Message, contravariant=True)
Shown = Callable[[RequestForwarder, RequestContext, Listed_contra], bool]
"""Whether an entry is visible to the client."""


@dataclass(frozen=True)  # generic classes with slots cannot be called with their types
class Everywhere(Generic[Listed_contra]):
    """An API that lists what the brokers coordinate.

    Args:
        listed: the field of the response with the list.
        shown: whether an entry is visible to the client.
    """

    listed: str
    shown: Shown[Listed_contra]

    async def handle(self, forwarder: RequestForwarder, context: RequestContext, request: Message) -> Fields:
        """Forward a request."""
        sent = [forwarder.send(context, node, request) for node in _brokers_of(forwarder, context)]
        merged: Fields = {}
        found: list[Message] = []
        throttle_ms = code = 0
        for answer in sent:
            try:
                response = await answer
            except KafkaError:
                forwarder.upstream.stale()
                code = ErrorCode.COORDINATOR_NOT_AVAILABLE
                continue
            code = code or field_of(response, "error_code", int)
            throttle_ms = max(throttle_ms, throttle_of(response))
            listed = cast("Iterable[Listed_contra]", list_of(response, self.listed))
            found += [each for each in listed if self.shown(forwarder, context, each)]
            merged = response._asdict()
        return {**merged, self.listed: found, "error_code": code, "throttle_time_ms": throttle_ms}


def _brokers_of(forwarder: RequestForwarder, context: RequestContext) -> list[int]:
    """Return the brokers that this node asks."""
    broker = context.broker
    nodes = sorted(node.node_id for node in broker.cluster.nodes(context.connection.listener))
    own = broker.identity.node_id
    brokers = sorted(forwarder.upstream.metadata.nodes)
    if own not in nodes:
        return brokers
    return brokers[nodes.index(own) :: len(nodes)]
