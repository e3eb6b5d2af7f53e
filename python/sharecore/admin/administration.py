"""Settings and connections that all administrators of a cluster share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from sharecore.client.settings import read_connection_settings
from sharecore.client.wire.transport import Transport


class Administration:
    """Connections to a cluster.

    Settings have confluent-kafka's names: `{"bootstrap.servers": "localhost:9092"}`, or as keywords with `_`
    for each dot. It connects with its first request; `async with` closes it.

    Raises:
        ConfigError: an unknown, missing or invalid setting.
    """

    def __init__(self, config: Mapping[str, object] | None = None, /, **keywords: object) -> None:
        self._transport = Transport(read_connection_settings(config, **keywords))

    @classmethod
    def over(cls, transport: Transport) -> Self:
        """Return an administrator on existing connections; closing it closes them."""
        made = cls.__new__(cls)
        made._transport = transport
        return made

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End all connections."""
        await self._transport.close()
