"""Produce: appends batches, and answers once they are durable.

`_core.Produce` implements it; this module finds the logs and handles transactional batches.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Iterable, Sequence
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING
from uuid import UUID

from sharecore._core import Produce, Produced, ProduceWork
from sharecore.broker.coordinators.groups import Coordinators
from sharecore.broker.requests.context import EVERY_NAME, RequestContext
from sharecore.coordinator.offset_records import TopicPartition
from sharecore.coordinator.transactions import ProducerState
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.storage import FirstBatch, Log, Topics
from sharecore.topic_names import INTERNAL_TOPICS
from sharecore.waiting import Begun, Steps, exhaust

if TYPE_CHECKING:
    from sharecore.broker.requests.services import Services

_PRODUCER = Struct(">qhi")
_PRODUCER_AT = 43

_ABORTABLE_SINCE = 11
_IMPLICIT_SINCE = 12
_FOR_NOW = (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.INVALID_TXN_STATE)
"""Refusals of the current producer."""

_Place = tuple[Sequence[Log], KafkaError | None]
"""The logs of a topic, and the error if nothing may be appended to them."""
_Placed = tuple[Callable[[UUID | str | None], _Place], bool]
"""Finds the logs of a topic for a request, and whether the result holds for all clients."""


def make_produce(broker: Services) -> Produce:
    """Return the handler of one broker."""
    produce = Produce(broker.clock.now_ms, _places, _in_turns, _admit, may_begin)
    broker.topics.on_change(lambda change, topic: produce.forget())
    return produce


def _places(context: RequestContext, asked: Sequence[UUID | str | None]) -> _Placed:
    return exhaust(_look_up(context, asked))


def _in_turns(context: RequestContext, work: ProduceWork) -> Produced | Awaitable[Produced | None] | None:
    """Return the answer to a request with many partitions, computed in several event-loop turns."""
    return context.run(_take(context, work))


def _take(context: RequestContext, work: ProduceWork) -> Steps[Begun[Produced | None]]:
    place, stays = yield from _look_up(context, map(work.topic, range(work.topic_count)))
    work.learn(place, stays)
    while work.step():
        yield
    answer: Produced | None = work.end()
    return answer


def _look_up(context: RequestContext, asked: Iterable[UUID | str | None]) -> Steps[_Placed]:
    """Decide once per topic whether the client may write to it."""
    topics = context.broker.topics
    if context.broker.authorizer is None:
        return partial(_place, topics, EVERY_NAME), True
    names: dict[str, None] = {}
    for each in asked:
        if isinstance(each, str):
            names[each] = None
        elif each is not None and (topic := topics.by_id(each)) is not None:
            names[topic.name] = None
        yield
    writable = yield from context.may_each(Operation.WRITE, ResourceType.TOPIC, names)
    return partial(_place, topics, writable), False


def _place(topics: Topics, writable: Container[str], asked: UUID | str | None) -> _Place:
    """Return the logs of a topic.

    Raises:
        KafkaError: the topic does not exist, or the client may not write to it.
    """
    if isinstance(asked, str):
        if asked not in writable:
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        found = topics.get(asked)
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    else:
        found = None if asked is None else topics.by_id(asked)
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        if found.name not in writable:
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if found.name in INTERNAL_TOPICS:
        text = f"Cannot append to internal topic {found.name}"
        return found.partitions, KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, text)
    return found.partitions, None


def _admit(context: RequestContext, log: Log, records: bytes, transactional_id: str, now_ms: int) -> None:
    admit(context.broker.groups, log, records, transactional_id, context.api_version, now_ms)


def may_begin(context: RequestContext, transactional_id: str | None) -> bool:
    """Return whether the client may use the transactional id of a transactional request."""
    return transactional_id is not None and context.may(
        Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id
    )


def admit(
    groups: Coordinators, log: Log, records: bytes, transactional_id: str, version: int, now_ms: int
) -> None:
    """Add a batch to its producer's open transaction; the caller appends it at once.

    Args:
        records: a transactional batch with its complete header.
        version: version of Produce; from 12, writing to a partition adds it (KIP-890).

    Raises:
        KafkaError: the producer is fenced, or its transaction is not open or lacks the partition.
    """
    first = FirstBatch(*_PRODUCER.unpack_from(records, _PRODUCER_AT))
    producer = ProducerState(first.producer_id, first.epoch)
    partition = TopicPartition(log.topic, log.index)
    implicit = version >= _IMPLICIT_SINCE
    try:
        groups.transactions.admit(transactional_id, producer, [partition], implicit=implicit)
    except KafkaError as error:
        if error.code in _FOR_NOW:
            log.announce(first, from_zero=implicit, now_ms=now_ms)
        raise _translated(error, version) from None
    log.announce(first, from_zero=implicit, now_ms=now_ms)


def _translated(error: KafkaError, version: int) -> KafkaError:
    """Return a refusal in a form that producers of a version understand."""
    if error.code is ErrorCode.CONCURRENT_TRANSACTIONS:
        # this code makes producers of any version resend the batch without refreshing metadata
        return KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, error.message)
    if error.code is ErrorCode.INVALID_TXN_STATE and version >= _ABORTABLE_SINCE:
        return KafkaError(ErrorCode.TRANSACTION_ABORTABLE, error.message)
    return error
