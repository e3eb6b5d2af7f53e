"""Common to all routes: the cluster, the clients' connections to it, and the names visible to clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from typing import NamedTuple

from sharecore.broker.requests.context import RequestContext, refusal
from sharecore.errors import NO_SUCH_PARTITION, NO_SUCH_TOPIC_ID, ErrorCode, KafkaError
from sharecore.network import Connection
from sharecore.protocol import ApiKey
from sharecore.security.acl import ResourceType
from sharecore.tier.forward.coordinators import UpstreamCoordinators
from sharecore.tier.forward.lines import Lines, Lost
from sharecore.tier.forward.shapes import Fields, Key, Message
from sharecore.tier.upstream.topics import INTERNAL_PREFIX
from sharecore.upstream import Upstream
from sharecore.waiting import Steps

MOVED = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""Errors after which the metadata is refreshed."""


class Own(NamedTuple):
    """Names on the cluster that belong to the tier: hidden from clients, and not accessible to them.

    Args:
        groups: consumer groups.
        is_transactional_id: returns whether a transactional ID belongs to the tier.
        shown: topics that clients see under another name, read-only: that name, and the cluster's.
        closed: topics visible to clients for locating coordinators, but neither readable nor writable.
        topics: topics of the tier, by their names in the cluster.
    """

    groups: Collection[str]
    is_transactional_id: Callable[[str], bool]
    shown: Mapping[str, str]
    closed: Collection[str] = ()
    topics: Collection[str] = ()

    def has(self, resource_type: int, name: str) -> bool:
        """Return whether a group or a transactional ID belongs to the tier."""
        if resource_type == ResourceType.GROUP:
            return name in self.groups
        return self.is_transactional_id(name)

    @property
    def named(self) -> dict[str, str]:
        """The clients' names by the cluster's names."""
        return {there: here for here, there in self.shown.items()}

    def client_name(self, name: str) -> str | None:
        """Return the client's name of a topic of the cluster; None if clients have no access."""
        known = self.named.get(name)
        if known is not None:
            return known
        return None if name in self.shown or self.hides(name) else name

    def hides(self, name: str) -> bool:
        """Return whether a topic name is hidden from clients, whether or not it exists."""
        return name not in self.shown and (name.startswith(INTERNAL_PREFIX) or name in self.topics)


class RequestForwarder:
    """Sends clients' requests to the cluster.

    Args:
        spoken: versions of the forwarded APIs.
    """

    def __init__(self, upstream: Upstream, own: Own, spoken: Mapping[ApiKey, tuple[int, int]]) -> None:
        self.upstream = upstream
        self.own = own
        self.coordinators = UpstreamCoordinators(upstream)
        self._spoken = spoken
        self._lines: dict[int, Lines] = {}

    # requests

    def lines(self, connection: Connection, client_id: str | None) -> Lines:
        """Return a client's connections to the cluster, which end with its own."""
        found = self._lines.get(connection.id)
        if found is None:
            found = self._lines[connection.id] = Lines(
                lambda node: self.upstream.dial(node, client_id or None, self._spoken), connection
            )
            connection.on_close(lambda: self._gone(connection.id))
        return found

    def _gone(self, connection_id: int) -> None:
        lines = self._lines.pop(connection_id, None)
        if lines is not None:
            lines.close()

    def close(self) -> None:
        """Close the connections of all clients."""
        for connection_id in list(self._lines):
            self._gone(connection_id)

    def send(
        self,
        context: RequestContext,
        node: int,
        message: Message | Fields,
        *,
        wait_ms: int = 0,
        purpose: str = "",
    ) -> asyncio.Future[Message]:
        """Send a client's request, or a part of it, to a broker; the future fails with `Lost`."""
        line = self.lines(context.connection, context.client_id).to(node, purpose)
        return line.send(ApiKey(context.api_key), context.api_version, message, wait_ms)

    def way(self, context: RequestContext, node: int) -> tuple[int, int]:
        """Return a broker, and which connection to it is used: what goes the same way arrives in order."""
        return node, self.lines(context.connection, context.client_id).to(node).course

    # who answers

    def any_node(self, context: RequestContext) -> int:
        """Return any broker; the same one for the same client."""
        nodes = sorted(self.upstream.metadata.nodes)
        if not nodes:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "No broker of the cluster is known.")
        return nodes[context.connection.id % len(nodes)]

    def controller(self, context: RequestContext) -> int:
        """Return the controller, or any broker, which forwards the request."""
        controller = self.upstream.metadata.controller
        return controller if controller in self.upstream.metadata.nodes else self.any_node(context)

    def leader(self, topic: str, partition: int) -> int:
        """Return the leader of a partition of the cluster; raise LEADER_NOT_AVAILABLE."""
        node, _ = self.upstream.metadata.leader(topic, partition)
        if node < 0:
            self.upstream.stale()
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)
        return node

    def noticed(self, code: int) -> None:
        """Refresh the metadata after an error that suggests it is outdated."""
        if code in MOVED:
            self.upstream.stale()

    def unchanged(self, error: KafkaError) -> ErrorCode:
        """Return an error for a request that the controller did not answer, so that the client retries."""
        self.upstream.stale()
        return code_of(error, unsent=ErrorCode.NOT_CONTROLLER, sent=ErrorCode.REQUEST_TIMED_OUT)

    # what clients see

    def topic(
        self,
        context: RequestContext,
        key: Key,
        allowed: Container[str],
        *,
        writes: bool = False,
        must_exist: bool = True,
        said: bool = False,
    ) -> str:
        """Return a topic's name on the cluster, if the client may use it this way.

        Args:
            key: its name or ID, from the client.
            allowed: the topic names, as the client knows them, that it may use this way (see
                `allowed_topics`).
            writes: whether it will be changed.
            must_exist: whether this node must know the topic. Otherwise the cluster judges an unknown name.
                An ID must be known in any case: permissions apply to names.
            said: whether Kafka's error message mentions the missing permission.

        Raises:
            KafkaError: the client lacks permission, or the topic is not visible to it.
        """
        topics = context.broker.topics
        name: str | None = None
        if isinstance(key, str):
            name, topic = key, topics.get(key)
        else:
            topic = None if key is None else topics.by_id(key)
            name = None if topic is None else topic.name
        if name is not None and name not in allowed:
            raise refusal(ResourceType.TOPIC, said=said)
        if topic is not None and self.own.hides(topic.name) and topic.name not in self.own.closed:
            topic = None
        if topic is None and isinstance(key, str) and not must_exist and not self.own.hides(key):
            return key
        if topic is None:
            # it may be new
            self.upstream.stale()
            if isinstance(key, str):
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NO_SUCH_PARTITION)
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, NO_SUCH_TOPIC_ID)
        if topic.name in self.own.closed:
            raise KafkaError(
                ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"{topic.name} only shows who coordinates."
            )
        if writes and topic.name in self.own.shown:
            text = f"{topic.name} is written by the tier alone."
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, text)
        return self.own.shown.get(topic.name, topic.name)

    def allowed_topics(
        self, context: RequestContext, keys: Iterable[Key], right: int
    ) -> Steps[Container[str]]:
        """Return the topic names on which the client is allowed an operation."""
        topics = context.broker.topics

        def names() -> Iterator[str]:
            for key in keys:
                if isinstance(key, str):
                    yield key
                elif key is not None and (topic := topics.by_id(key)) is not None:
                    yield topic.name

        return (yield from context.may_each(right, ResourceType.TOPIC, names()))

    def check(self, context: RequestContext, right: int, resource_type: int, name: str) -> None:
        """Raise KafkaError unless the client is allowed an operation on a group or a transactional ID."""
        context.require(right, resource_type, name)
        if self.own.has(resource_type, name):
            raise refusal(resource_type)


def throttle_of(response: Message) -> int:
    """Return a response's throttle time in milliseconds; 0 for the oldest versions."""
    throttle_ms: int = getattr(response, "throttle_time_ms", 0)
    return throttle_ms


def code_of(error: KafkaError, *, unsent: ErrorCode, sent: ErrorCode) -> ErrorCode:
    """Return the error for an unanswered request, so that the client retries.

    Args:
        unsent: if no broker can have received it.
        sent: if a broker may have executed it.
    """
    if isinstance(error, Lost):
        return sent if error.sent else unsent
    return error.code
