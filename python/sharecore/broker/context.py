"""What a handler knows about the request besides its body."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from sharecore.broker.broker import Broker
    from sharecore.network import Connection

Result = dict[str, Any] | Awaitable[dict[str, Any] | None] | None
"""What a handler gives back (see `sharecore.broker.handlers`)."""


class RequestContext(NamedTuple):
    """One request's surroundings."""

    broker: Broker
    connection: Connection
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
