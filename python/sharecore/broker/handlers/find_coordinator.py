"""FindCoordinator: the coordinator of a group, a transactional id or share-partition state."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Container, Iterable
from typing import Any
from uuid import UUID

from sharecore.broker.cluster import Cluster
from sharecore.broker.context import EVERY_NAME, REFUSALS, RequestContext, Result
from sharecore.errors import DENIED, ErrorCode
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Steps

_GROUP, _TRANSACTION, _SHARE = 0, 1, 2
_SHARE_SINCE_VERSION = 6
_KEYS_SINCE_VERSION = 4
_RESOURCES = {_GROUP: ResourceType.GROUP, _TRANSACTION: ResourceType.TRANSACTIONAL_ID}
_NUMBER = re.compile(r"[+-]?[0-9]+")


def handle(context: RequestContext, request: Any) -> Result:
    return context.run(_answer(context, request))


def _answer(context: RequestContext, request: Any) -> Steps[dict[str, Any]]:
    has_keys = context.api_version >= _KEYS_SINCE_VERSION
    keys = request.coordinator_keys if has_keys else [request.key]
    is_known = request.key_type != _SHARE or context.api_version >= _SHARE_SINCE_VERSION
    seen = (yield from _seen(context, request.key_type, keys)) if is_known else EVERY_NAME
    if has_keys:
        coordinators = []
        for key in keys:
            coordinators.append({"key": key} | _find(context, request.key_type, key, seen))
            yield
        return {"coordinators": coordinators}
    answer = _find(context, request.key_type, request.key, seen)
    # versions with a single coordinator always have a message
    said = "NONE"
    if "error_code" in answer:
        said = DENIED.get(answer["error_code"], "No coordinator has such a key.")
    return {"error_message": said} | answer


def _seen(context: RequestContext, key_type: int, keys: Iterable[str]) -> Steps[Container[str]]:
    """Return the keys whose coordinator the client may see."""
    if key_type in _RESOURCES:
        return (yield from context.may_each(Operation.DESCRIBE, _RESOURCES[key_type], keys))
    if key_type == _SHARE and context.may(Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
        return EVERY_NAME
    return ()


def _find(context: RequestContext, key_type: int, key: str, seen: Container[str]) -> dict[str, Any]:
    refusal = {"node_id": -1, "host": "", "port": -1, "error_code": ErrorCode.INVALID_REQUEST}
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
