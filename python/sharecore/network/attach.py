"""From a socket that was accepted to a connection that speaks on it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any, Protocol


class Attached(Protocol):
    """What speaks on a connection."""

    def on_close(self, hook: Callable[[], None], /) -> None:
        """Call `hook` once when the connection is gone."""


async def attach(
    peer: socket.socket, make: Callable[[], Attached], leave: Callable[[], None], **options: Any
) -> None:
    """Begins with a client.

    Args:
        peer: its socket; closed where it does not come to a connection.
        make: makes what speaks to it, before any handshake.
        leave: called when the client has gone, or does not come to a connection; perhaps twice.
        options: of `loop.connect_accepted_socket`.

    Raises:
        OSError: the client has gone, or its handshake has failed.
    """

    def protocol() -> Any:
        made = make()
        # at once: the connection may be lost before this coroutine continues
        made.on_close(leave)
        return made

    try:
        # what it gives back is not always what was made: with TLS uvloop's own protocol stands before it
        await asyncio.get_running_loop().connect_accepted_socket(protocol, peer, **options)
    except BaseException:
        peer.close()
        leave()
        raise
