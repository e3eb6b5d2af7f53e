"""What every route needs: the cluster, the connections of clients to it, and the names they may see."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from sharecore.broker.requests.context import RequestContext, refusal
from sharecore.errors import NO_SUCH_PARTITION, NO_SUCH_TOPIC_ID, ErrorCode, KafkaError
from sharecore.network import Connection
from sharecore.protocol import ApiKey
from sharecore.security.acl import ResourceType
from sharecore.tier.forward.coordinators import UpstreamCoordinators
from sharecore.tier.forward.lines import Lines, Lost
from sharecore.tier.forward.shapes import Key
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
"""Errors after which the metadata of the cluster is asked for anew."""


class Own(NamedTuple):
    """Names on the cluster that belong to the tier: clients neither see nor touch what has them.

    Args:
        groups: consumer groups.
        is_transactional_id: whether a transactional id is one.
        shown: topics that clients see under another name, and may only read: that name, and the cluster's.
        closed: topics that clients see, to find coordinators by, and can neither read nor write.
        topics: topics of the tier, as the cluster names them.
    """

    groups: Collection[str]
    is_transactional_id: Callable[[str], bool]
    shown: Mapping[str, str]
    closed: Collection[str] = ()
    topics: Collection[str] = ()

    def has(self, resource_type: int, name: str) -> bool:
        """Whether a group or a transactional id belongs to the tier."""
        if resource_type == ResourceType.GROUP:
            return name in self.groups
        return self.is_transactional_id(name)

    @property
    def named(self) -> dict[str, str]:
        """By the cluster's names the ones that clients see."""
        return {there: here for here, there in self.shown.items()}

    def client_name(self, name: str) -> str | None:
        """Return what clients call a topic of the cluster; None where they must not reach it."""
        known = self.named.get(name)
        if known is not None:
            return known
        return None if name in self.shown or self.hides(name) else name

    def hides(self, name: str) -> bool:
        """Return whether clients must not reach a topic under a name, whether or not it exists."""
        return name not in self.shown and (name.startswith(INTERNAL_PREFIX) or name in self.topics)


class RequestForwarder:
    """The cluster, as the requests of clients are sent on to it.

    Args:
        spoken: versions of the APIs that are forwarded.
    """

    def __init__(self, upstream: Upstream, own: Own, spoken: Mapping[ApiKey, tuple[int, int]]) -> None:
        self.upstream = upstream
        self.own = own
        self.coordinators = UpstreamCoordinators(upstream)
        self._spoken = spoken
        self._lines: dict[int, Lines] = {}

    # requests

    def lines(self, connection: Connection, client_id: str | None) -> Lines:
        """Return the lines of a client, which end with its connection."""
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
        """End the lines of all clients."""
        for connection_id in list(self._lines):
            self._gone(connection_id)

    def send(
        self, context: RequestContext, node: int, message: Any, *, wait_ms: int = 0, purpose: str = ""
    ) -> asyncio.Future[Any]:
        """Has a broker answer a client's request, or a part of it; the future fails with `Lost`."""
        line = self.lines(context.connection, context.client_id).to(node, purpose)
        return line.send(ApiKey(context.api_key), context.api_version, message, wait_ms)

    # who answers

    def any_node(self, context: RequestContext) -> int:
        """Return a broker that can be asked anything; one client asks the same one."""
        nodes = sorted(self.upstream.metadata.nodes)
        if not nodes:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "No broker of the cluster is known.")
        return nodes[context.connection.id % len(nodes)]

    def controller(self, context: RequestContext) -> int:
        """Return the broker that changes topics: any one passes that on where none is named."""
        controller = self.upstream.metadata.controller
        return controller if controller in self.upstream.metadata.nodes else self.any_node(context)

    def leader(self, topic: str, partition: int) -> int:
        """Return the broker that leads a partition of a topic of the cluster; raise LEADER_NOT_AVAILABLE."""
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
        """Return what a client is told where the controller has not answered, so that it tries again."""
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
        """Return the name on the cluster of a topic that the client may use so.

        Args:
            key: its name or its id, as the client has it.
            allowed: the names, as the client has them, that it may use so (see `allowed_topics`).
            writes: it is to be changed.
            must_exist: whether this node must know the topic. Without it the cluster judges a name that this
                node does not know. An id must be known in any case: rights are on names.
            said: whether Kafka says in words, too, that the right is missing.

        Raises:
            KafkaError: it may not, or does not see such a topic.
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
        """Return the names of those topics with which the client may do something."""
        topics = context.broker.topics

        def names() -> Iterator[str]:
            for key in keys:
                if isinstance(key, str):
                    yield key
                elif key is not None and (topic := topics.by_id(key)) is not None:
                    yield topic.name

        return (yield from context.may_each(right, ResourceType.TOPIC, names()))

    def check(self, context: RequestContext, right: int, resource_type: int, name: str) -> None:
        """Raise KafkaError unless the client may do something with a group or a transactional id."""
        context.require(right, resource_type, name)
        if self.own.has(resource_type, name):
            raise refusal(resource_type)


def throttle_of(response: Any) -> int:
    """For how many milliseconds a broker throttles; the oldest versions of answers do not say it."""
    throttle_ms: int = getattr(response, "throttle_time_ms", 0)
    return throttle_ms


def code_of(error: KafkaError, *, unsent: ErrorCode, sent: ErrorCode) -> ErrorCode:
    """Return what a client is told of a request that was not answered, so that it tries again.

    Args:
        unsent: where no broker can have seen it.
        sent: where one may have done it.
    """
    if isinstance(error, Lost):
        return sent if error.sent else unsent
    return error.code
