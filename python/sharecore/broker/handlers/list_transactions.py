"""ListTransactions: transactional ids by state, producer, age and pattern (KIP-664, KIP-1152)."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.coordinator.expressions import is_quick, matches
from sharecore.coordinator.transactions import Transaction, TransactionState
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Steps

_AT_ONCE = 1000
"""Maximum transactional ids matched in the event loop."""


def handle(context: RequestContext, request: Any) -> Result:
    pattern = request.transactional_id_pattern or ""
    known = context.broker.groups.transactions.all()
    if not pattern:
        return context.run(_list(context, request, known))
    names = [transaction.transactional_id for transaction in known]
    if is_quick((pattern,)) and len(names) <= _AT_ONCE:
        return context.run(_list(context, request, _chosen(context, _matching(pattern, names))))
    return _list_apart(context, request, pattern, names)


async def _list_apart(context: RequestContext, request: Any, pattern: str, names: list[str]) -> Any:
    """Match a pattern in a thread."""
    work = partial(_matching, pattern, names)
    found = await context.broker.long_work.run(context.connection.owner, work)
    return await context.finish(_list(context, request, _chosen(context, found)))


def _matching(pattern: str, names: list[str]) -> list[str]:
    try:
        return matches(pattern, names)
    except ValueError as error:
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION) from error


def _chosen(context: RequestContext, names: list[str]) -> list[Transaction]:
    """Return the transactional ids that still exist."""
    get = context.broker.groups.transactions.get
    return [found for name in names if (found := get(name)) is not None]


def _list(context: RequestContext, request: Any, found: Collection[Transaction]) -> Steps[dict[str, Any]]:
    broker = context.broker
    known = {state.kafka_name for state in TransactionState}
    states = {state for state in request.state_filters if state in known}
    unknown = [state for state in dict.fromkeys(request.state_filters) if state not in known]
    producers = set(request.producer_id_filters)
    now_ms = broker.clock.now_ms()
    names = (transaction.transactional_id for transaction in found)
    seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, names, quiet=True)
    listed = []
    for transaction in found:
        if (
            transaction.transactional_id in seen
            and (not request.state_filters or transaction.state.kafka_name in states)
            and (not producers or transaction.producer_id in producers)
            and (
                request.duration_filter < 0
                or (transaction.is_open and now_ms - transaction.start_ms > request.duration_filter)
            )
        ):
            listed.append(
                {
                    "transactional_id": transaction.transactional_id,
                    "producer_id": transaction.producer_id,
                    "transaction_state": transaction.state.kafka_name,
                }
            )
        yield
    return {"unknown_state_filters": unknown, "transaction_states": listed}
