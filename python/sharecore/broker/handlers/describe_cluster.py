"""DescribeCluster: the brokers of the cluster."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import NOT_REQUESTED, RequestContext
from sharecore.errors import ErrorCode
from sharecore.security.acl import Operation, ResourceType

_BROKERS, _CONTROLLERS = 1, 2


def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    if request.endpoint_type == _CONTROLLERS:
        return {
            "error_code": ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "error_message": "this is a broker's endpoint; the request asks for controllers",
        }
    if request.endpoint_type != _BROKERS:
        return {
            "error_code": ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            "error_message": f"Unsupported endpoint type {request.endpoint_type}",
        }
    broker = context.broker
    return {
        "endpoint_type": _BROKERS,
        "error_message": None,
        "cluster_id": broker.identity.cluster_id,
        "controller_id": broker.cluster.controller(),
        "brokers": [
            {"broker_id": node_id, "host": host, "port": port, "rack": rack}
            for node_id, host, port, rack in broker.cluster.nodes(context.connection.listener)
        ],
        "cluster_authorized_operations": (
            _operations(context) if request.include_cluster_authorized_operations else NOT_REQUESTED
        ),
    }


def _operations(context: RequestContext) -> int:
    if not context.may(Operation.DESCRIBE, ResourceType.CLUSTER):
        return 0
    return context.operations(ResourceType.CLUSTER)
