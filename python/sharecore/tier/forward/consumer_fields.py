"""Fields by which a broker distinguishes a replica from a client: clients of a node may not set them.

The node's user may have ClusterAction on the cluster. A follower's fetch under that user would advance the
high watermark, and thus confirm a write with acks=all that no other replica has.
"""

from __future__ import annotations

from sharecore.tier.forward.shapes import Message

_CONSUMER_ID = -1
_NO_EPOCH = _NO_OFFSET = -1
_END_UNKNOWN = 2**63 - 1
_OF_REQUEST: dict[str, object] = {"replica_id": _CONSUMER_ID, "replica_state": None, "cluster_id": None}
_OF_PARTITION: dict[str, object] = {
    # of the tier, so the cluster must not check it
    "current_leader_epoch": _NO_EPOCH,
    "log_start_offset": _NO_OFFSET,
    "replica_directory_id": None,
    "high_watermark": _END_UNKNOWN,
}


def as_consumer(request: Message) -> Message:
    """Return a request as a consumer sends it: without a replica ID or an expected cluster."""
    changes = _present(_OF_REQUEST, request)
    return request._replace(**changes) if changes else request


def partition_as_consumer(part: Message) -> Message:
    """Return a partition of a request as sent by a consumer without leader epochs."""
    changes = _present(_OF_PARTITION, part)
    return part._replace(**changes) if changes else part


def _present(fields: dict[str, object], message: Message) -> dict[str, object]:
    return {name: value for name, value in fields.items() if name in message._fields}
