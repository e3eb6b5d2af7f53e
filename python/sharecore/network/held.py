"""Connections that stay open while another process takes over from a server that has closed them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

from sharecore.network.connection import Connection


class HeldSockets:
    """Keep the sockets of connections open: clients send nothing elsewhere until `release`.

    A client that loses its connection asks at once for the new leader, and then only now and then. So the
    connection should break once there is one.

    Args:
        connections: those that are about to be closed. What their clients send is not read.
    """

    def __init__(self, connections: Iterable[Connection]) -> None:
        self._descriptors: list[int] = []
        for connection in connections:
            # closed already, of a simulated network, or no descriptor is left: that client notices sooner
            with suppress(OSError):
                self._descriptors.append(os.dup(connection.descriptor))

    def __bool__(self) -> bool:
        return bool(self._descriptors)

    def release(self) -> None:
        """Let the clients notice that their connections are closed."""
        while self._descriptors:
            os.close(self._descriptors.pop())
