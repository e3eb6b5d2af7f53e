"""ReadShareGroupStateSummary: start offsets of share partitions, without their batches (KIP-932,
KIP-1226).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.broker.share_state_calls import each_partition
from sharecore.errors import KafkaError
from sharecore.sharestate.coordinator import StateSummary
from sharecore.sharestate.keys import SharePartitionKey


def handle(context: RequestContext, request: Any) -> Result:
    share = context.broker.share

    def read(key: SharePartitionKey, _asked: Any, done: Callable[[StateSummary | KafkaError], None]) -> None:
        share.check_exists(key)
        share.coordinator.summary(key, done)

    return each_partition(context, request, read, StateSummary._asdict)
