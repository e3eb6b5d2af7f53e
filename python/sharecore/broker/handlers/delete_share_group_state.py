"""DeleteShareGroupState: deletes share-partition state (KIP-932)."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.broker.share_state_calls import each_partition
from sharecore.sharestate.keys import SharePartitionKey
from sharecore.waiting import Done


def handle(context: RequestContext, request: Any) -> Result:
    share, cluster = context.broker.share, context.broker.cluster

    def delete(key: SharePartitionKey, _asked: Any, done: Done) -> None:
        cluster.check_asker(key.group_id, request.coordinator_epoch)
        share.check_exists(key)
        share.coordinator.delete(key, done)
        share.state_restarted(key)

    return each_partition(context, request, delete)
