"""ListTransactions: transactional ids by state, producer, age and pattern (KIP-664, KIP-1152)."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.coordinator.transactions import TransactionState
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Steps


def handle(context: RequestContext, request: Any) -> Result:
    return context.run(_list(context, request))


def _list(context: RequestContext, request: Any) -> Steps[dict[str, Any]]:
    broker = context.broker
    known = {state.kafka_name for state in TransactionState}
    states = {state for state in request.state_filters if state in known}
    unknown = [state for state in dict.fromkeys(request.state_filters) if state not in known]
    producers = set(request.producer_id_filters)
    now_ms = broker.clock.now_ms()
    found = broker.groups.transactions.all(request.transactional_id_pattern or "")
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
