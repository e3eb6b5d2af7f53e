"""ReadShareGroupState: loads state for a share-partition leader (KIP-932)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.broker.share_state_calls import each_partition
from sharecore.errors import KafkaError
from sharecore.sharestate.coordinator import ReadState
from sharecore.sharestate.keys import SharePartitionKey
from sharecore.sharestate.records import unpack_batches


def handle(context: RequestContext, request: Any) -> Result:
    coordinator = context.broker.share.coordinator

    def read(key: SharePartitionKey, asked: Any, done: Callable[[ReadState | KafkaError], None]) -> None:
        coordinator.read(key, asked.leader_epoch, done)

    return each_partition(context, request, read, _describe)


def _describe(state: ReadState) -> dict[str, Any]:
    return {
        "state_epoch": state.state_epoch,
        "start_offset": state.start_offset,
        "state_batches": [
            {"first_offset": first, "last_offset": last, "delivery_state": kind, "delivery_count": count}
            for first, last, kind, count in unpack_batches(state.batches)
        ],
    }
