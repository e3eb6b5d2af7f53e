"""Produce: appends batches, and answers once they are durable.

`_core.Produce` implements it; this module finds the logs and handles transactional batches.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from sharecore._core import Produce, ProduceWork
from sharecore.broker.context import EVERY_NAME, RequestContext
from sharecore.broker.topic_rules import INTERNAL_TOPICS
from sharecore.broker.transactional import admit
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.storage import Log, Topics
from sharecore.waiting import Steps, exhaust

if TYPE_CHECKING:
    from sharecore.broker.services import Services

_Place = tuple[Sequence[Log], KafkaError | None]
"""The logs of a topic, and the error if nothing may be appended to them."""
_Placed = tuple[Callable[[Any], _Place], bool]
"""Finds the logs of a topic for a request, and whether the result holds for all clients."""


def make_produce(broker: Services) -> Produce:
    """Return the handler of one broker."""
    produce = Produce(broker.clock.now_ms, _places, _in_turns, _admit, may_begin)
    broker.topics.on_change(lambda change, topic: produce.forget())
    return produce


def _places(context: RequestContext, asked: Sequence[UUID | str | None]) -> _Placed:
    return exhaust(_look_up(context, asked))


def _in_turns(context: RequestContext, work: ProduceWork) -> Any:
    """Return the answer to a request with many partitions, computed in several event-loop turns."""
    return context.run(_take(context, work))


def _take(context: RequestContext, work: ProduceWork) -> Steps[Any]:
    place, stays = yield from _look_up(context, map(work.topic, range(work.topic_count)))
    work.learn(place, stays)
    while work.step():
        yield
    return work.end()


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
