"""From a socket that was accepted to a connection that speaks on it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sharecore.network.connection import Connection


async def attach(
    peer: socket.socket, make: Callable[[], Connection], leave: Callable[[], None], **options: Any
) -> None:
    """Begins with a client.

    Args:
        peer: its socket; closed where it does not come to a connection.
        make: makes what speaks to it, once a handshake has succeeded where there is one.
        leave: called when the client has gone, or when it does not come to a connection.
        options: of `loop.connect_accepted_socket`.

    Raises:
        OSError: the client has gone, or its handshake has failed.
    """
    made: list[Connection] = []

    def protocol() -> Connection:
        made.append(make())
        return made[0]

    try:
        # what it gives back is not always what was made: with TLS uvloop's own protocol stands before it
        await asyncio.get_running_loop().connect_accepted_socket(protocol, peer, **options)
    except BaseException:
        peer.close()
        leave()
        raise
    made[0].on_close(leave)
