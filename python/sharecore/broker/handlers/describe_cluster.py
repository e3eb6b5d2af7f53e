"""DescribeCluster: a cluster of one."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import NOT_REQUESTED, RequestContext
from sharecore.errors import ErrorCode
from sharecore.security.acl import Operation, ResourceType

_BROKERS = 1


def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    if request.endpoint_type != _BROKERS:
        return {
            "error_code": ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "error_message": "this is a broker's endpoint; the request asks for controllers",
        }
    broker = context.broker
    listener = broker.listeners[context.connection.listener]
    return {
        "endpoint_type": _BROKERS,
        "error_message": None,
        "cluster_id": broker.identity.cluster_id,
        "controller_id": broker.identity.node_id,
        "brokers": [
            {
                "broker_id": broker.identity.node_id,
                "host": listener.advertised_host,
                "port": listener.advertised_port,
                "rack": broker.config.broker_rack,
            }
        ],
        "cluster_authorized_operations": (
            _operations(context) if request.include_cluster_authorized_operations else NOT_REQUESTED
        ),
    }


def _operations(context: RequestContext) -> int:
    if not context.may(Operation.DESCRIBE, ResourceType.CLUSTER):
        return 0
    return context.operations(ResourceType.CLUSTER)
