"""SaslHandshake of a client that is already authenticated, or needs no authentication."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.errors import ErrorCode


def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    return {"error_code": ErrorCode.ILLEGAL_SASL_STATE, "mechanisms": []}
