"""InitializeShareGroupState: creates or resets share-partition state (KIP-932)."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.broker.share_state_calls import each_partition
from sharecore.sharestate.coordinator import check_epochs
from sharecore.sharestate.keys import SharePartitionKey
from sharecore.waiting import Done


def handle(context: RequestContext, request: Any) -> Result:
    share, cluster = context.broker.share, context.broker.cluster

    def initialize(key: SharePartitionKey, asked: Any, done: Done) -> None:
        check_epochs(state_epoch=asked.state_epoch)
        cluster.check_asker(key.group_id, request.coordinator_epoch)
        share.check_exists(key)
        share.coordinator.initialize(key, asked.state_epoch, asked.start_offset, done)
        share.state_restarted(key)

    return each_partition(context, request, initialize, may_be_empty=True)
