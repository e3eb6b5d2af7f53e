"""State of share partitions, for the leaders of other brokers (KIP-932).

InitializeShareGroupState: creates or resets share-partition state (KIP-932).
ReadShareGroupState: loads state for a share-partition leader (KIP-932).
WriteShareGroupState: persists a change of a share-partition leader (KIP-932).
DeleteShareGroupState: deletes share-partition state (KIP-932).
ReadShareGroupStateSummary: start offsets of share partitions, without their batches (KIP-932, KIP-1226).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.broker.share_state_calls import each_partition
from sharecore.errors import KafkaError
from sharecore.sharestate.coordinator import ReadState, StateSummary, check_epochs
from sharecore.sharestate.keys import SharePartitionKey
from sharecore.sharestate.records import pack_batches, unpack_batches
from sharecore.waiting import Done


def initialize_share_group_state(context: RequestContext, request: Any) -> Result:
    share, cluster = context.broker.share, context.broker.cluster

    def initialize(key: SharePartitionKey, asked: Any, done: Done) -> None:
        check_epochs(state_epoch=asked.state_epoch)
        cluster.check_asker(key.group_id, request.coordinator_epoch)
        share.check_exists(key)
        share.coordinator.initialize(key, asked.state_epoch, asked.start_offset, done)
        share.state_restarted(key)

    return each_partition(context, request, initialize, may_be_empty=True)


def read_share_group_state(context: RequestContext, request: Any) -> Result:
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


def write_share_group_state(context: RequestContext, request: Any) -> Result:
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


def delete_share_group_state(context: RequestContext, request: Any) -> Result:
    share, cluster = context.broker.share, context.broker.cluster

    def delete(key: SharePartitionKey, _asked: Any, done: Done) -> None:
        cluster.check_asker(key.group_id, request.coordinator_epoch)
        share.check_exists(key)
        share.coordinator.delete(key, done)
        share.state_restarted(key)

    return each_partition(context, request, delete)


def read_share_group_state_summary(context: RequestContext, request: Any) -> Result:
    share = context.broker.share

    def read(key: SharePartitionKey, _asked: Any, done: Callable[[StateSummary | KafkaError], None]) -> None:
        share.check_exists(key)
        share.coordinator.summary(key, done)

    return each_partition(context, request, read, StateSummary._asdict)
