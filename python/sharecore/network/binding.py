"""Bind the addresses of a host."""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence

Address = tuple[int, int, int, str, tuple[str | int | bytes, ...]]
"""Family, kind, protocol, canonical name and address of a socket, as `getaddrinfo` gives them."""

_NO_SUCH_ADDRESS = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


def bind_all(
    found: Sequence[Address], send_buffer_bytes: int = -1, *, ports_tried: int = 20
) -> list[socket.socket]:
    """Return sockets bound to the addresses of a host, all to the same port.

    Addresses that the machine does not have are left out: `localhost` is often also `::1` in /etc/hosts where
    IPv6 is disabled, as in many containers.

    Args:
        found: the addresses.
        send_buffer_bytes: send buffer of each connection's socket; negative for the system's default.
        ports_tried: how many ports of the system's choice to try: a free port of the first address may be
            taken at another one.

    Raises:
        OSError: an address is not available, or the machine has none of them.
    """
    try:
        return _bind(found, send_buffer_bytes)
    except OSError as error:
        is_chosen = not found[0][4][1]
        if error.errno != errno.EADDRINUSE or not is_chosen or ports_tried <= 1:
            raise
    return bind_all(found, send_buffer_bytes, ports_tried=ports_tried - 1)


def bind_first(found: Sequence[Address]) -> socket.socket:
    """Return a socket bound to the first of a host's addresses that the machine has.

    Raises:
        OSError: this address is not available, or the machine has none of them.
    """
    each, *others = found
    try:
        return bind_all([each])[0]
    except OSError as error:
        if not others or error.errno not in _NO_SUCH_ADDRESS:
            raise
    return bind_first(others)


def _bind(found: Sequence[Address], send_buffer_bytes: int) -> list[socket.socket]:
    bound: list[socket.socket] = []
    missing: OSError | None = None
    try:
        for family, kind, protocol, _, (host, port, *rest) in dict.fromkeys(found):
            if bound:
                port = bound[0].getsockname()[1]
            try:
                bound.append(_bind_one(family, kind, protocol, (host, port, *rest), send_buffer_bytes))
            except OSError as error:
                if error.errno not in _NO_SUCH_ADDRESS:
                    raise
                missing = error
    except OSError:
        for listening in bound:
            listening.close()
        raise
    if not bound and missing is not None:
        raise missing
    return bound


def _bind_one(
    family: int, kind: int, protocol: int, address: tuple[str | int | bytes, ...], send_buffer_bytes: int
) -> socket.socket:
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if send_buffer_bytes >= 0:
            # connection sockets inherit it
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
        listening.setblocking(False)
        listening.bind(address)
    except OSError:
        listening.close()
        raise
    return listening
