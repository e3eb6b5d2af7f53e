"""Host addresses, resolved beside the event loop."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable
from functools import partial

from sharecore.waiting.threads import Blocked, BlockingWork

log = logging.getLogger(__name__)

LOOKUP_SECONDS_MAX = 10.0
"""Timeout of a name lookup."""


class HostAddresses:
    """Addresses of configured hosts. Literal addresses are known at once; names are resolved.

    Args:
        changed: called after names unknown to `of` were resolved.
    """

    def __init__(self, changed: Callable[[], object]) -> None:
        self._changed = changed
        self._addresses: dict[str, str] = {}
        self._lookups = BlockingWork("hosts")
        self._looking: asyncio.Task[None] | None = None

    def of(self, hosts: Iterable[str]) -> dict[str, str]:
        """Return the known addresses by host; resolve the others, and forget all other hosts."""
        wanted = set(hosts)
        self._addresses = {host: at for host, at in self._addresses.items() if host in wanted}
        literal = {host: at for host in wanted if (at := literal_address(host)) is not None}
        unknown = wanted - literal.keys() - self._addresses.keys()
        if unknown and (self._looking is None or self._looking.done()):
            self._looking = asyncio.get_running_loop().create_task(self._look_up(unknown))
        return literal | self._addresses

    async def find(self, host: str) -> str | None:
        """Return and cache the address of a host; None if it has none."""
        known = literal_address(host) or self._addresses.get(host)
        if known is not None:
            return known
        try:
            found = await self._lookups.run(partial(_resolve, host), LOOKUP_SECONDS_MAX)
        except Blocked as error:
            log.warning("cannot resolve %s: %s", host, error)
            return None
        if found is not None:
            self._addresses[host] = found
        return found

    async def _look_up(self, hosts: Iterable[str]) -> None:
        found = [await self.find(host) for host in sorted(hosts)]
        if any(found):
            self._changed()


def literal_address(host: str) -> str | None:
    """Return a literal address in canonical form; None for a name."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.inet_ntop(family, socket.inet_pton(family, host))
    except (OSError, ValueError):
        return None


def _resolve(host: str) -> str | None:
    try:
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except (OSError, UnicodeError, ValueError):
        return None
