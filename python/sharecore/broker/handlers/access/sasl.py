"""SASL requests of clients that are already authenticated, or need no authentication.

SaslHandshake of a client that is already authenticated, or needs no authentication.
SaslAuthenticate of a client that is already authenticated, or needs no authentication.
"""

from __future__ import annotations

from typing import Any

from sharecore.broker.requests.context import RequestContext
from sharecore.errors import ErrorCode


def sasl_handshake(context: RequestContext, request: Any) -> dict[str, Any]:
    return {"error_code": ErrorCode.ILLEGAL_SASL_STATE, "mechanisms": []}


def sasl_authenticate(context: RequestContext, request: Any) -> dict[str, Any]:
    return {
        "error_code": ErrorCode.ILLEGAL_SASL_STATE,
        "error_message": "SaslAuthenticate request received after successful authentication",
    }
