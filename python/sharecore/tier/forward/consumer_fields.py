"""Fields by which a broker tells a replica from a client: no client of a node may set them.

The node's user may have ClusterAction on the cluster. A follower's fetch under that user moves the high
watermark, so that a write with acks=all would be confirmed although no other replica has it.
"""

from __future__ import annotations

from typing import Any

_CONSUMER_ID = -1
_NO_EPOCH = _NO_OFFSET = -1
_END_UNKNOWN = 2**63 - 1
_OF_REQUEST: dict[str, Any] = {"replica_id": _CONSUMER_ID, "replica_state": None, "cluster_id": None}
_OF_PARTITION: dict[str, Any] = {
    # the tier's, which is not for the cluster to check
    "current_leader_epoch": _NO_EPOCH,
    "log_start_offset": _NO_OFFSET,
    "replica_directory_id": None,
    "high_watermark": _END_UNKNOWN,
}


def as_consumer(request: Any) -> Any:
    """Return a request as a consumer sends it: no replica, and no cluster that it expects."""
    changes = _present(_OF_REQUEST, request)
    return request._replace(**changes) if changes else request


def partition_as_consumer(part: Any) -> Any:
    """Return a partition of a request as a consumer that does not know the cluster's epochs asks for it."""
    changes = _present(_OF_PARTITION, part)
    return part._replace(**changes) if changes else part


def _present(fields: dict[str, Any], message: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name in message._fields}
