"""The brokers of the cluster: what they serve, coordinate and store."""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
import shutil
from collections.abc import Container, Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from sharecore.broker.cluster import Cluster
from sharecore.broker.features import SUPPORTED, FeatureUpdate
from sharecore.broker.requests.context import EVERY_NAME, NOT_REQUESTED, REFUSALS, RequestContext, Result
from sharecore.errors import DENIED, ErrorCode
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Steps

if TYPE_CHECKING:
    from sharecore.protocol import messages

_FEATURES_FROM_ZERO_SINCE = 4
_BROKER_NAMED_SINCE = 5
_NO_NODE = -1
_SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_BROKERS, _CONTROLLERS = 1, 2
_GROUP, _TRANSACTION, _SHARE = 0, 1, 2
_SHARE_SINCE_VERSION = 6
_KEYS_SINCE_VERSION = 4
_RESOURCES = {_GROUP: ResourceType.GROUP, _TRANSACTION: ResourceType.TRANSACTIONAL_ID}
_NUMBER = re.compile(r"[+-]?[0-9]+")
_TOPIC = "__cluster_metadata"
_EPOCH, _END_OFFSET = 1, 0
"""The leader never changes, and metadata has no log: it is in the store."""
_NOT_HERE = "This server does not host this topic-partition."
_NO_ERROR = "NONE"


def api_versions(
    context: RequestContext, request: messages.ApiVersionsRequest
) -> messages.ApiVersionsResponse:
    """Return the served APIs with their versions, and feature levels; note the client's software."""
    if context.api_version >= 3:
        software = (request.client_software_name, request.client_software_version)
        if not all(_SOFTWARE_NAME.fullmatch(part) for part in software):
            return {"error_code": ErrorCode.INVALID_REQUEST}
        context.connection.client_software = software
    refused = _refusal(context, request)
    if refused is not None:
        return {"error_code": refused}
    features = context.broker.features
    return {
        "api_keys": [
            {
                "api_key": key,
                "min_version": (
                    served.min_version if served.offered_min_version is None else served.offered_min_version
                ),
                "max_version": served.max_version,
            }
            for key, served in sorted(context.broker.served.items())
        ],
        "supported_features": [
            {"name": name, "min_version": low, "max_version": high}
            for name, (low, high) in SUPPORTED.items()
            # clients before version 4 reject a lowest version of 0 (KIP-1022)
            if low > 0 or context.api_version >= _FEATURES_FROM_ZERO_SINCE
        ],
        "finalized_features_epoch": features.epoch,
        "finalized_features": [
            {"name": name, "min_version_level": level, "max_version_level": level}
            for name, level in features.levels.items()
        ],
    }


def _refusal(context: RequestContext, request: messages.ApiVersionsRequest) -> ErrorCode | None:
    """Return the error for a client that expects another broker (KIP-1242); None otherwise."""
    if context.api_version < _BROKER_NAMED_SINCE:
        return None
    named = request.cluster_id is not None, request.node_id != _NO_NODE
    if not any(named):
        return None
    if not all(named):
        return ErrorCode.INVALID_REQUEST
    identity = context.broker.identity
    is_meant = (request.cluster_id, request.node_id) == (identity.cluster_id, identity.node_id)
    return None if is_meant else ErrorCode.REBOOTSTRAP_REQUIRED


def describe_cluster(
    context: RequestContext, request: messages.DescribeClusterRequest
) -> messages.DescribeClusterResponse:
    """Return the brokers of the cluster."""
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


def find_coordinator(
    context: RequestContext, request: messages.FindCoordinatorRequest
) -> Result[messages.FindCoordinatorResponse]:
    """Return the coordinator of groups, transactional ids or share-partition state."""
    return context.run(_answer(context, request))


def _answer(
    context: RequestContext, request: messages.FindCoordinatorRequest
) -> Steps[messages.FindCoordinatorResponse]:
    has_keys = context.api_version >= _KEYS_SINCE_VERSION
    keys = request.coordinator_keys if has_keys else [request.key]
    is_known = request.key_type != _SHARE or context.api_version >= _SHARE_SINCE_VERSION
    seen = (yield from _seen(context, request.key_type, keys)) if is_known else EVERY_NAME
    if has_keys:
        coordinators: list[messages.Coordinator] = []
        for key in keys:
            coordinators.append({"key": key, **_find(context, request.key_type, key, seen)})
            yield
        return {"coordinators": coordinators}
    found = _find(context, request.key_type, request.key, seen)
    code = ErrorCode(found.get("error_code", ErrorCode.NONE))
    # versions with a single coordinator always have a message
    said = DENIED.get(code, "No coordinator has such a key.") if code else _NO_ERROR
    return {
        "error_code": code,
        "error_message": found.get("error_message", said),
        "node_id": found["node_id"],
        "host": found["host"],
        "port": found["port"],
    }


def _seen(context: RequestContext, key_type: int, keys: Iterable[str]) -> Steps[Container[str]]:
    """Return the keys whose coordinator the client may see."""
    if key_type in _RESOURCES:
        return (yield from context.may_each(Operation.DESCRIBE, _RESOURCES[key_type], keys))
    if key_type == _SHARE and context.may(Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
        return EVERY_NAME
    return ()


def _find(context: RequestContext, key_type: int, key: str, seen: Container[str]) -> messages.Coordinator:
    refusal: messages.Coordinator = {
        "node_id": -1,
        "host": "",
        "port": -1,
        "error_code": ErrorCode.INVALID_REQUEST,
    }
    if key_type not in (_GROUP, _TRANSACTION, _SHARE):
        return refusal | {"error_message": f"There are no coordinators of type {key_type}."}
    if key_type == _SHARE and key not in seen:
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return refusal | {"error_code": code, "error_message": DENIED[code]}
    if key not in seen:
        return refusal | {"error_code": REFUSALS[_RESOURCES[key_type]]}
    if key_type == _SHARE and not (context.api_version >= _SHARE_SINCE_VERSION and _is_share_key(key)):
        return refusal
    node_id = _coordinator(context.broker.cluster, key_type, key)
    for node in context.broker.cluster.nodes(context.connection.listener):
        if node.node_id == node_id:
            return {"node_id": node_id, "host": node.host, "port": node.port}
    return refusal | {"error_code": ErrorCode.COORDINATOR_NOT_AVAILABLE}


def _coordinator(cluster: Cluster, key_type: int, key: str) -> int:
    if key_type != _SHARE:
        return cluster.coordinator(key)
    _, topic_id, partition = key.rsplit(":", 2)
    return cluster.leader(UUID(bytes=base64.urlsafe_b64decode(topic_id + "==")), int(partition)).node_id


def _is_share_key(key: str) -> bool:
    """Return whether the key is `group:topicId:partition` (KIP-932); group names may contain colons."""
    parts = key.rsplit(":", 2)
    if len(parts) != 3 or not parts[0].strip() or not _NUMBER.fullmatch(parts[2]):
        return False
    try:
        # both can fail on text of the right form: bad padding, or too many digits
        topic_id, partition = base64.urlsafe_b64decode(parts[1] + "=="), int(parts[2])
    except (binascii.Error, ValueError):
        return False
    return len(topic_id) == 16 and partition < 2**31


def describe_quorum(
    context: RequestContext, request: messages.DescribeQuorumRequest
) -> Result[messages.DescribeQuorumResponse]:
    """Return this broker as the only voter; raise KafkaError without DESCRIBE on the cluster."""
    context.require(Operation.DESCRIBE, ResourceType.CLUSTER, said=True)
    if names_quorum(request):
        return {"error_message": "", "topics": [_quorum(context)], "nodes": _nodes(context)}
    return context.run(unknown_quorum(request))


def names_quorum(request: messages.DescribeQuorumRequest) -> bool:
    """Return whether a request names only the metadata log."""
    if len(request.topics) != 1 or request.topics[0].topic_name != _TOPIC:
        return False
    partitions = request.topics[0].partitions
    return len(partitions) == 1 and partitions[0].partition_index == 0


def unknown_quorum(request: messages.DescribeQuorumRequest) -> Steps[messages.DescribeQuorumResponse]:
    """Return the answer for partitions outside of the quorum."""
    topics: list[messages.DescribeQuorumResponseTopicData] = []
    for topic in request.topics:
        partitions: list[messages.DescribeQuorumResponsePartitionData] = []
        for partition in topic.partitions:
            partitions.append(_unknown(partition.partition_index))
            yield
        topics.append({"topic_name": topic.topic_name, "partitions": partitions})
        yield
    return {"error_message": "", "topics": topics, "nodes": []}


def _quorum(context: RequestContext) -> messages.DescribeQuorumResponseTopicData:
    node_id, now_ms = context.broker.identity.node_id, context.broker.clock.now_ms()
    voter: messages.DescribeQuorumReplicaState = {
        "replica_id": node_id,
        "replica_directory_id": None,
        "log_end_offset": _END_OFFSET,
        "last_fetch_timestamp": now_ms,
        "last_caught_up_timestamp": now_ms,
    }
    partition: messages.DescribeQuorumResponsePartitionData = {
        "partition_index": 0,
        "error_message": "",
        "leader_id": node_id,
        "leader_epoch": _EPOCH,
        "high_watermark": _END_OFFSET,
        "current_voters": [voter],
        "observers": [],
    }
    return {"topic_name": _TOPIC, "partitions": [partition]}


def _nodes(context: RequestContext) -> list[messages.Node]:
    listener = context.connection.listener
    return [
        {"node_id": node.node_id, "listeners": [{"name": listener, "host": node.host, "port": node.port}]}
        for node in context.broker.cluster.nodes(listener)
    ]


def _unknown(index: int) -> messages.DescribeQuorumResponsePartitionData:
    return {
        "partition_index": index,
        "error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "error_message": _NOT_HERE,
        "leader_id": 0,
        "leader_epoch": 0,
        "high_watermark": 0,
        "current_voters": [],
        "observers": [],
    }


async def describe_log_dirs(
    context: RequestContext, request: messages.DescribeLogDirsRequest
) -> messages.DescribeLogDirsResponse:
    """Return the sizes of partitions in the data directory, in bytes; needs DESCRIBE on the cluster."""
    broker = context.broker
    if not context.may(Operation.DESCRIBE, ResourceType.CLUSTER):
        return {"error_code": ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "results": []}
    wanted: dict[str, set[int]] = {}
    if request.topics is None:
        wanted = {topic.name: set(range(len(topic.partitions))) for topic in broker.topics}
    else:
        for topic in request.topics:
            wanted.setdefault(topic.topic, set()).update(topic.partitions)
    topics: list[messages.DescribeLogDirsTopic] = []
    pace = broker.turns.pace()
    for name, indexes in wanted.items():
        partitions: list[messages.DescribeLogDirsPartition] = []
        for index in sorted(indexes):
            log = broker.topics.log(name, index)
            if log is not None:
                partitions.append({"partition_index": index, "partition_size": log.size_bytes})
            await pace.step()
        if partitions:
            topics.append({"name": name, "partitions": partitions})
    loop = asyncio.get_running_loop()
    disk = await loop.run_in_executor(None, shutil.disk_usage, broker.config.data_dir)
    return {
        "results": [
            {
                "log_dir": str(Path(broker.config.data_dir).absolute()),
                "topics": topics,
                "total_bytes": disk.total,
                "usable_bytes": disk.free,
            }
        ]
    }


async def update_features(
    context: RequestContext, request: messages.UpdateFeaturesRequest
) -> messages.UpdateFeaturesResponse:
    """Set feature levels, all or none (KIP-584); needs ALTER on the cluster."""
    context.require(Operation.ALTER, ResourceType.CLUSTER)
    # if a feature repeats, the last entry wins
    updates = {
        each.feature: FeatureUpdate(each.feature, each.max_version_level, each.upgrade_type)
        for each in request.feature_updates
    }
    await context.broker.features.update(updates.values(), validate_only=request.validate_only)
    return {
        "error_message": None,
        "results": [
            {"feature": each.feature, "error_message": _NO_ERROR} for each in request.feature_updates
        ],
    }
