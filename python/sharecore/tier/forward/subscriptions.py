"""ConsumerGroupHeartbeat: members cannot subscribe to hidden topics, or without DESCRIBE.

The cluster would resolve a regular expression with the permissions of the node's user, over all of its
topics. So the node resolves it and subscribes the member to the names, again with each heartbeat, as topics
and permissions change. Clients send an expression once, and again after a reconnect or a change of
coordinator, as they then send all fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sharecore.broker.requests.context import RequestContext
from sharecore.coordinator.consumer import Heartbeat
from sharecore.coordinator.expressions import matches
from sharecore.security.acl import Operation, ResourceType
from sharecore.tier.forward.by_coordinator import GROUP, ByCoordinator, group
from sharecore.tier.forward.forwarder import RequestForwarder
from sharecore.tier.forward.remembered import NAME_BYTES, Remembered
from sharecore.tier.forward.shapes import Message

if TYPE_CHECKING:
    from sharecore.protocol import messages

_GOOD_FOR_MS = 1_000
"""New topics are visible after some seconds; the members of a group share a lookup."""
_MATCHING_BYTES_MAX = 16 << 20


@dataclass(frozen=True, slots=True)
class Subscription:
    """A member's subscription.

    Attributes:
        names: topics subscribed by name.
        expression: its regular expression.
        sent: all names last sent to the cluster; None if unknown.
    """

    names: frozenset[str]
    expression: str
    sent: frozenset[str] | None = None


class Heartbeats:
    """Forwards the heartbeats of consumer groups.

    Args:
        bytes_max: memory for members with an expression; beyond it, the longest silent ones are dropped.
    """

    def __init__(self, bytes_max: int = 64 << 20) -> None:
        self._route: ByCoordinator[messages.ConsumerGroupHeartbeatRequest, Message] = ByCoordinator(
            GROUP, "group_id", group(Operation.READ)
        )
        self._members: Remembered[tuple[str, str], Subscription] = Remembered(bytes_max)
        self._matching: Remembered[str, tuple[int, list[str]]] = Remembered(_MATCHING_BYTES_MAX)

    def get(self, group_id: str, member_id: str) -> Subscription | None:
        """Return the subscription of a member that uses an expression and this node."""
        return self._members.get((group_id, member_id))

    async def handle(
        self,
        forwarder: RequestForwarder,
        context: RequestContext,
        request: messages.ConsumerGroupHeartbeatRequest,
    ) -> Mapping[str, object]:
        """Forward a heartbeat."""
        forwarder.check(context, Operation.READ, ResourceType.GROUP, request.group_id)
        for name in request.subscribed_topic_names or ():
            context.require(Operation.DESCRIBE, ResourceType.TOPIC, name)
        key = request.group_id, request.member_id
        known = self._members.get(key)
        if request.member_epoch < 0:
            self._members.pop(key)
            return await self._route.handle(forwarder, context, request)
        subscription = _updated(known, request)
        names = subscription.names | self._resolved(forwarder, context, subscription.expression)
        sent = _cluster_names(forwarder, names)
        message = request
        is_resolved = known is not None or bool(subscription.expression)
        if request.subscribed_topic_names is not None or (is_resolved and sent != subscription.sent):
            message = message._replace(subscribed_topic_names=sorted(sent))
        if request.subscribed_topic_regex is not None:
            message = message._replace(subscribed_topic_regex="")
        if known is not None:
            # until the cluster has responded, it is unknown whether it accepted the names
            self._remember(key, replace(subscription, sent=None))
        answer = await self._route.handle(forwarder, context, message)
        if not answer["error_code"]:
            self._remember(key, replace(subscription, sent=sent))
        return answer

    def _resolved(
        self, forwarder: RequestForwarder, context: RequestContext, expression: str
    ) -> frozenset[str]:
        if not expression:
            return frozenset()
        return frozenset(
            name
            for name in self._matches(forwarder, context, expression)
            if context.may(Operation.DESCRIBE, ResourceType.TOPIC, name, quiet=True)
        )

    def _matches(self, forwarder: RequestForwarder, context: RequestContext, expression: str) -> list[str]:
        now_ms = forwarder.upstream.clock.monotonic_ms()
        known = self._matching.get(expression)
        if known is not None and now_ms - known[0] < _GOOD_FOR_MS:
            return known[1]
        found = matches(expression, context.broker.topics.names())
        # the name strings are shared with the topics
        self._matching.put(expression, (now_ms, found), NAME_BYTES + 4 * len(expression) + 8 * len(found))
        return found

    def _remember(self, key: tuple[str, str], subscription: Subscription) -> None:
        if not subscription.expression:
            self._members.pop(key)
            return
        self._members.put(key, subscription, _size(key, subscription))


def _size(key: tuple[str, str], subscription: Subscription) -> int:
    """Return the approximate memory of a member."""
    texts = [*key, subscription.expression, *subscription.names, *(subscription.sent or ())]
    return NAME_BYTES * (len(texts) + 2) + 4 * sum(map(len, texts))


def _updated(known: Subscription | None, request: messages.ConsumerGroupHeartbeatRequest) -> Subscription:
    """Return a member's subscription after a heartbeat, which omits unchanged fields.

    Raises:
        KafkaError: INVALID_REGULAR_EXPRESSION.
    """
    before = known or Subscription(frozenset(), "")
    names, expression = request.subscribed_topic_names, request.subscribed_topic_regex
    if expression:
        Heartbeat(
            request.group_id, request.member_id, request.member_epoch, subscribed_regex=expression
        ).check_expression()
    return Subscription(
        before.names if names is None else frozenset(names),
        before.expression if expression is None else expression,
        before.sent,
    )


def _cluster_names(forwarder: RequestForwarder, names: Iterable[str]) -> frozenset[str]:
    """Return topics by their names in the cluster, without those that clients must not read."""
    own = forwarder.own
    return frozenset(
        own.shown.get(name, name) for name in names if not own.hides(name) and name not in own.closed
    )
