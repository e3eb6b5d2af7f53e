"""Attach a protocol to an accepted socket."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any, Protocol


class Attached(Protocol):
    """The protocol of a connection."""

    def on_close(self, hook: Callable[[], None], /) -> None:
        """Call `hook` once when the connection has closed."""


async def attach(
    peer: socket.socket, make: Callable[[], Attached], leave: Callable[[], None], **options: Any
) -> None:
    """Start serving a client.

    Args:
        peer: its socket; closed if the connection fails.
        make: creates its protocol, before any handshake.
        leave: called when the connection has closed or failed; perhaps twice.
        options: options of `loop.connect_accepted_socket`.

    Raises:
        OSError: the client has disconnected, or its handshake has failed.
    """

    def protocol() -> Any:
        made = make()
        # immediately: the connection may be lost before this coroutine continues
        made.on_close(leave)
        return made

    try:
        # the returned object may differ from the created one: for TLS, uvloop wraps it in its own protocol
        await asyncio.get_running_loop().connect_accepted_socket(protocol, peer, **options)
    except BaseException:
        peer.close()
        leave()
        raise
