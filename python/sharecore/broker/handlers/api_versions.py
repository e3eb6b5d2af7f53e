"""ApiVersions: served APIs and versions, and feature levels."""

from __future__ import annotations

import re
from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.broker.features import SUPPORTED
from sharecore.errors import ErrorCode

_FEATURES_FROM_ZERO_SINCE = 4
_BROKER_NAMED_SINCE = 5
_NO_NODE = -1
_SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(context: RequestContext, request: Any) -> dict[str, Any]:
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


def _refusal(context: RequestContext, request: Any) -> ErrorCode | None:
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
