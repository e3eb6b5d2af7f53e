"""TLS handshakes: each has a deadline, and there are only so many at a time."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable

from sharecore.logs import once_a_minute
from sharecore.network.attach import Attached, attach

_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "RECORD_LAYER_FAILURE")
"""What OpenSSL calls a first message that is none of TLS."""
log = logging.getLogger("sharecore.network")

ContextSource = Callable[[], ssl.SSLContext]


class Handshakes:
    """The handshakes under way, on all listeners that encrypt.

    Where there are too many the oldest is given up: one that means well takes milliseconds, and so never is
    the oldest for long.

    Args:
        timeout_ms: a handshake that takes longer is given up.
        handshakes_max: how many may be under way.
    """

    def __init__(self, timeout_ms: int, handshakes_max: int) -> None:
        self.timeout_ms = timeout_ms
        self.handshakes_max = handshakes_max
        self._open: dict[asyncio.Task[None], str] = {}
        self._strangers = once_a_minute()

    def __len__(self) -> int:
        return len(self._open)

    def begin(
        self,
        peer: socket.socket,
        address: str,
        context: ssl.SSLContext,
        make: Callable[[], Attached],
        leave: Callable[[], None],
    ) -> None:
        """Shakes hands with a client that was accepted.

        Args:
            peer: its socket.
            address: what the log calls it.
            context: keys and certificates.
            make: makes the protocol that serves it once the handshake has succeeded.
            leave: called when it is gone, whether the handshake had succeeded or not.
        """
        while len(self._open) >= self.handshakes_max:
            self.give_up_oldest(f"{self.handshakes_max} are under way (sharecore.handshakes.max)")
        task = asyncio.get_running_loop().create_task(self._shake_hands(peer, address, context, make, leave))
        self._open[task] = address

        def ended(done: asyncio.Task[None]) -> None:
            self._open.pop(done, None)
            if done.cancelled():  # perhaps before it began
                peer.close()
                leave()

        task.add_done_callback(ended)

    def give_up_oldest(self, reason: str) -> bool:
        """Give up the oldest handshake; return whether one is under way."""
        for oldest, address in self._open.items():
            del self._open[oldest]
            oldest.cancel()
            log.warning("giving up the handshake of %s: %s", address, reason)
            return True
        return False

    def abort(self) -> None:
        """Give all of them up."""
        for task in self._open:
            task.cancel()
        self._open.clear()

    async def _shake_hands(
        self,
        peer: socket.socket,
        address: str,
        context: ssl.SSLContext,
        make: Callable[[], Attached],
        leave: Callable[[], None],
    ) -> None:
        try:
            await attach(peer, make, leave, ssl=context, ssl_handshake_timeout=self.timeout_ms / 1000)
        except OSError as error:  # ssl.SSLError is one
            reason = getattr(error, "reason", None) or str(error) or type(error).__name__
            # who goes away at once has only looked whether somebody listens
            level = logging.DEBUG if isinstance(error, ConnectionResetError) else logging.WARNING
            if reason in _NO_TLS:
                # it tries again and again
                is_told = self._strangers.allows(address.rpartition(":")[0])
                level = logging.WARNING if is_told else logging.DEBUG
                reason = (
                    "it speaks no TLS, which this listener needs: set its security.protocol to SSL or "
                    "SASL_SSL, or have it connect to a listener without TLS"
                )
            log.log(level, "the TLS handshake of %s failed: %s", address, reason)
