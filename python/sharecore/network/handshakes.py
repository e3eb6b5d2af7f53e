"""TLS handshakes, limited in time and number."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable

from sharecore.logs import once_a_minute
from sharecore.network.attach import Attached, attach
from sharecore.network.peer import Peer

_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "RECORD_LAYER_FAILURE")
"""OpenSSL's errors for a first message that is not TLS."""
log = logging.getLogger("sharecore.network")

ContextSource = Callable[[], ssl.SSLContext]


class Handshakes:
    """Pending handshakes on all TLS listeners.

    At the limit the oldest one is cancelled: a normal handshake takes milliseconds, and so is rarely the
    oldest.

    Args:
        timeout_ms: handshake timeout.
        handshakes_max: maximum number of pending handshakes.
    """

    def __init__(self, timeout_ms: int, handshakes_max: int) -> None:
        self.timeout_ms = timeout_ms
        self.handshakes_max = handshakes_max
        self._open: dict[asyncio.Task[None], Peer] = {}
        self._strangers = once_a_minute()

    def __len__(self) -> int:
        return len(self._open)

    def begin(
        self,
        peer: socket.socket,
        address: Peer,
        context: ssl.SSLContext,
        make: Callable[[], Attached],
        leave: Callable[[], None],
    ) -> None:
        """Start the handshake with an accepted client.

        Args:
            peer: its socket.
            address: its address.
            context: keys and certificates.
            make: creates its protocol, used once the handshake has succeeded.
            leave: called when it has disconnected, before or after the handshake.
        """
        while len(self._open) >= self.handshakes_max:
            self.give_up_oldest(f"{self.handshakes_max} are pending (sharecore.handshakes.max)")
        task = asyncio.get_running_loop().create_task(self._shake_hands(peer, address, context, make, leave))
        self._open[task] = address

        def ended(done: asyncio.Task[None]) -> None:
            self._open.pop(done, None)
            if done.cancelled():  # cancelled, perhaps before it began
                peer.close()
                leave()

        task.add_done_callback(ended)

    def give_up_oldest(self, reason: str) -> bool:
        """Cancel the oldest handshake; return whether there was one."""
        for oldest, address in self._open.items():
            del self._open[oldest]
            oldest.cancel()
            log.warning("cancelling the TLS handshake of %s: %s", address, reason)
            return True
        return False

    def abort(self) -> None:
        """Cancel all handshakes."""
        for task in self._open:
            task.cancel()
        self._open.clear()

    async def _shake_hands(
        self,
        peer: socket.socket,
        address: Peer,
        context: ssl.SSLContext,
        make: Callable[[], Attached],
        leave: Callable[[], None],
    ) -> None:
        try:
            await attach(peer, make, leave, ssl=context, ssl_handshake_timeout=self.timeout_ms / 1000)
        except OSError as error:  # includes ssl.SSLError
            reason = getattr(error, "reason", None) or str(error) or type(error).__name__
            # a client that disconnects at once was probing the port
            level = logging.DEBUG if isinstance(error, ConnectionResetError) else logging.WARNING
            if reason in _NO_TLS:
                # such a client retries forever: limit the log lines
                warns = self._strangers.allows(address.host)
                level = logging.WARNING if warns else logging.DEBUG
                reason = (
                    "it speaks no TLS, which this listener needs: set its security.protocol to SSL or "
                    "SASL_SSL, or connect it to a listener without TLS"
                )
            log.log(level, "the TLS handshake of %s failed: %s", address, reason)
