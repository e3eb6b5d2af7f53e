"""Produce: appends batches, and answers when they are durable.

`_core.Produce` does so; what is here decides where batches go, and about those of transactions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from sharecore._core import Produce
from sharecore.broker.context import RequestContext
from sharecore.broker.topic_rules import INTERNAL_TOPICS
from sharecore.broker.transactional import admit
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.storage import Log

if TYPE_CHECKING:
    from sharecore.broker.services import Services


def begin(broker: Services) -> Produce:
    """The handler of one broker."""
    produce = Produce(broker.clock.now_ms, _place, _admit, may_begin)
    broker.topics.on_change(lambda change, topic: produce.forget())
    return produce


def _place(context: RequestContext, topic: UUID | str | None, index: int) -> tuple[Log, bool]:
    """The log that batches of a partition go to, and whether that holds for all clients until topics change.

    Raises:
        KafkaError: there is none, or the client may not write to it.
    """
    broker = context.broker
    if isinstance(topic, str):
        if broker.authorizer is not None:
            context.require(Operation.WRITE, ResourceType.TOPIC, topic)
        found = broker.topics.get(topic)
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    else:
        found = None if topic is None else broker.topics.by_id(topic)
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        if broker.authorizer is not None:
            context.require(Operation.WRITE, ResourceType.TOPIC, found.name)
    if not 0 <= index < len(found.partitions):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if found.name in INTERNAL_TOPICS:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {found.name}")
    return found.partitions[index], broker.authorizer is None


def _admit(context: RequestContext, log: Log, records: bytes, transactional_id: str, now_ms: int) -> None:
    admit(context.broker.groups, log, records, transactional_id, context.api_version, now_ms)


def may_begin(context: RequestContext, transactional_id: str | None) -> bool:
    """Whether the client may use the transactional id of a request with batches of a transaction."""
    return transactional_id is not None and context.may(
        Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id
    )
