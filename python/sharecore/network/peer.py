"""Address of a client."""

from __future__ import annotations

from typing import NamedTuple


class Peer(NamedTuple):
    """Address of a client, as it was when its connection was accepted.

    The system forgets the address of a connection that was reset, while its requests can still be read.

    Args:
        host: its IP address.
        port: its port; 0 for a client of this process.
    """

    host: str
    port: int = 0

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"
