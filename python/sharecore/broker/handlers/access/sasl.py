"""SASL requests of clients that are already authenticated, or need no authentication."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharecore.broker.requests.context import RequestContext
from sharecore.errors import ErrorCode

if TYPE_CHECKING:
    from sharecore.protocol import messages


def sasl_handshake(
    context: RequestContext, request: messages.SaslHandshakeRequest
) -> messages.SaslHandshakeResponse:
    """Refuse a handshake: the client is already authenticated, or needs no authentication."""
    return {"error_code": ErrorCode.ILLEGAL_SASL_STATE, "mechanisms": []}


def sasl_authenticate(
    context: RequestContext, request: messages.SaslAuthenticateRequest
) -> messages.SaslAuthenticateResponse:
    """Refuse credentials: the client is already authenticated, or needs no authentication."""
    return {
        "error_code": ErrorCode.ILLEGAL_SASL_STATE,
        "error_message": "SaslAuthenticate request received after successful authentication",
    }
