"""Connections that stay open while another process takes over from a server that has closed them."""

from __future__ import annotations

import os

from sharecore.network.connection import Connection


class HeldSockets:
    """Keep the sockets of connections open: clients do not look for another broker until `release`.

    A client that loses its connection asks at once for the new leader, and then only now and then. So the
    connection should break once there is one. What clients send meanwhile is not read.
    """

    def __init__(self) -> None:
        self._descriptors: list[int] = []

    def hold(self, connection: Connection) -> bool:
        """Keep the socket of a connection that is about to be closed; return whether that is possible.

        It is not if the connection has no socket, as in a simulation, or no descriptor is left.
        """
        try:
            self._descriptors.append(os.dup(connection.descriptor))
        except OSError:
            return False
        return True

    def __bool__(self) -> bool:
        return bool(self._descriptors)

    def release(self) -> None:
        """Let the clients notice that their connections are closed."""
        while self._descriptors:
            os.close(self._descriptors.pop())
