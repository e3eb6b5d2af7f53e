"""APIs of a standby: it names the leading broker to clients, and refuses everything else.

A refusal names the leader if the API can. If an API's answer has no field for the whole request's error, or
if clients would ask the same broker again, the connection is closed: clients then choose another broker.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn
from uuid import UUID

from sharecore.broker.handlers import SERVED
from sharecore.broker.handlers.cluster.metadata import metadata
from sharecore.broker.requests.context import RequestContext, Result
from sharecore.broker.served import Handler, Served
from sharecore.errors import ErrorCode, KafkaError
from sharecore.network import Connection, Disconnect
from sharecore.protocol import ApiKey

if TYPE_CHECKING:
    from sharecore.protocol import messages

_SAME = (
    ApiKey.FIND_COORDINATOR,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.API_VERSIONS,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.LIST_CONFIG_RESOURCES,
    ApiKey.DESCRIBE_ACLS,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    ApiKey.DESCRIBE_CLIENT_QUOTAS,
)
"""Answered as by the leader, from the catalog."""
_OF_EACH_BROKER = (ApiKey.LIST_GROUPS, ApiKey.LIST_TRANSACTIONS, ApiKey.DESCRIBE_LOG_DIRS)
"""Clients ask every broker: this one has nothing."""
_OF_COORDINATORS = (
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.SHARE_GROUP_HEARTBEAT,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.END_TXN,
)
_TOPIC_IDS_SINCE = 13
"""Version of Produce and Fetch."""
_ANY_TOPIC = UUID(int=0)
"""One broker leads all of them."""


def lobby_apis() -> dict[ApiKey, Served]:
    """Return the APIs on offer: those of the leader, so that clients take a standby for a broker."""
    handlers: dict[ApiKey, Handler] = {}
    handlers |= dict.fromkeys(_OF_EACH_BROKER, _nothing)
    handlers |= dict.fromkeys(_OF_COORDINATORS, _not_coordinator)
    handlers[ApiKey.METADATA] = Introduction().handle
    handlers[ApiKey.PRODUCE] = _produce
    handlers[ApiKey.FETCH] = _fetch
    handlers[ApiKey.SHARE_FETCH] = handlers[ApiKey.SHARE_ACKNOWLEDGE] = _share
    return {
        key: served
        if key in _SAME
        else replace(served, is_factory=False, handler=handlers.get(key, _ask_another))
        for key, served in SERVED.items()
    }


class Introduction:
    """Metadata: as the leader answers, but no topic is created.

    A client that asks for an unknown topic gets the brokers, once. It would ask the same broker again, to
    which it is connected; that connection is closed, so that the leader is asked, which may create the topic.
    """

    def __init__(self) -> None:
        self._asked: set[Connection] = set()

    def handle(
        self, context: RequestContext, request: messages.MetadataRequest
    ) -> Result[messages.MetadataResponse]:
        topics, connection = context.broker.topics, context.connection
        names = [topic.name for topic in request.topics or () if topic.name is not None]
        if any(topics.get(name) is None for name in names):
            if connection in self._asked:
                raise Disconnect("a topic is not known to this standby")
            self._asked.add(connection)
            connection.on_close(lambda: self._asked.discard(connection))
            if hasattr(request, "allow_auto_topic_creation"):
                request = request._replace(allow_auto_topic_creation=False)
        return metadata(context, request)


def _nothing(context: RequestContext, request: object) -> dict[str, object]:
    return {}


def _not_coordinator(context: RequestContext, request: object) -> NoReturn:
    raise KafkaError(ErrorCode.NOT_COORDINATOR)


def _ask_another(context: RequestContext, request: object) -> NoReturn:
    raise Disconnect("another broker leads this home")


def _produce(context: RequestContext, request: messages.ProduceRequest) -> dict[str, object]:
    if request.acks == 0:
        raise Disconnect("another broker leads this home")
    refusal = _refusal(context) | {"base_offset": -1}
    return _answer(
        context,
        (
            {
                **_named(context, topic, "name"),
                "partition_responses": [{"index": each.index, **refusal} for each in topic.partition_data],
            }
            for topic in request.topic_data
        ),
    )


def _fetch(context: RequestContext, request: messages.FetchRequest) -> dict[str, object]:
    refusal = _refusal(context) | {"high_watermark": -1}
    return _answer(
        context,
        (
            {
                **_named(context, topic, "topic"),
                "partitions": [{"partition_index": each.partition, **refusal} for each in topic.partitions],
            }
            for topic in request.topics
        ),
    )


def _share(
    context: RequestContext, request: messages.ShareFetchRequest | messages.ShareAcknowledgeRequest
) -> dict[str, object]:
    # a closing session (-1) may acknowledge: an answer without an error would confirm that
    if request.share_session_epoch != 0:
        raise KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND)
    refusal = _refusal(context)
    return _answer(
        context,
        (
            {
                "topic_id": topic.topic_id,
                "partitions": [
                    {"partition_index": each.partition_index, **refusal} for each in topic.partitions
                ],
            }
            for topic in request.topics
        ),
    )


def _named(
    context: RequestContext, topic: messages.TopicProduceData | messages.FetchRequestFetchTopic, name: str
) -> dict[str, object]:
    if context.api_version >= _TOPIC_IDS_SINCE:
        return {"topic_id": topic.topic_id}
    return {name: getattr(topic, name)}


def _refusal(context: RequestContext) -> dict[str, object]:
    leader = context.broker.cluster.leader(_ANY_TOPIC, 0)
    current = {"leader_id": leader.node_id, "leader_epoch": leader.epoch}
    return {"error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER, "current_leader": current}


def _answer(context: RequestContext, responses: Iterable[dict[str, object]]) -> dict[str, object]:
    cluster = context.broker.cluster
    leader_id = cluster.controller()
    nodes = cluster.nodes(context.connection.listener)
    endpoints = [node._asdict() for node in nodes if node.node_id == leader_id]
    return {"responses": list(responses), "node_endpoints": endpoints}
