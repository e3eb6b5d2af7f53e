"""WriteShareGroupState: persists a change of a share-partition leader (KIP-932)."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.broker.share_state_calls import each_partition
from sharecore.sharestate.keys import SharePartitionKey
from sharecore.sharestate.records import pack_batches
from sharecore.waiting import Done


def handle(context: RequestContext, request: Any) -> Result:
    coordinator = context.broker.share.coordinator

    def write(key: SharePartitionKey, asked: Any, done: Done) -> None:
        batches = pack_batches(tuple(batch) for batch in asked.state_batches)
        coordinator.write(
            key,
            asked.state_epoch,
            asked.leader_epoch,
            asked.start_offset,
            asked.delivery_complete_count,
            batches,
            done,
        )

    return each_partition(context, request, write)
