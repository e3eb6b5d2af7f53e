"""ApiVersions: which APIs and versions are served, and the features that clients look for."""

from __future__ import annotations

import re
from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.broker.features import SUPPORTED
from sharecore.errors import ErrorCode

_FEATURES_FROM_ZERO_SINCE = 4
_SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    if context.api_version >= 3:
        software = (request.client_software_name, request.client_software_version)
        if not all(_SOFTWARE_NAME.fullmatch(part) for part in software):
            return {"error_code": ErrorCode.INVALID_REQUEST}
        context.connection.client_software = software
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
            # clients before version 4 take a lowest version of 0 for an error (KIP-1022)
            if low > 0 or context.api_version >= _FEATURES_FROM_ZERO_SINCE
        ],
        "finalized_features_epoch": features.epoch,
        "finalized_features": [
            {"name": name, "min_version_level": level, "max_version_level": level}
            for name, level in features.levels.items()
        ],
    }
