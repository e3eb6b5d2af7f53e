"""What every request passes: the names the page answers to, its size, and the headers of every answer."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
BODY_BYTES_MAX = 64 << 10


class Guard:
    """Refuse requests under a foreign host name, and set each answer's headers.

    A page of an attacker can have its own name point here (DNS rebinding): so names must be known.

    Args:
        hosts: names that the page answers to, besides localhost and IP addresses.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self._app = app
        self._hosts = {host.lower().strip("[]") for host in hosts} | {"localhost"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            return
        secure = scope["scheme"] == "https"

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
                if secure:
                    headers["strict-transport-security"] = "max-age=31536000"
            await send(message)

        name = host_name(Headers(scope=scope).get("host", ""))
        if not self._knows(name):
            text = (
                f"this page does not answer to {name!r:.100}; add the name to sharecore.page.hosts, "
                "or to --host of sharecore dashboard\n"
            )
            await PlainTextResponse(text, 421)(scope, receive, with_headers)
            return
        await self._app(scope, receive, with_headers)

    def _knows(self, name: str) -> bool:
        if name in self._hosts:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def host_name(host: str) -> str:
    """Return the name in a Host header, without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def comes_from_here(request: Request, csrf: str | None) -> bool:
    """Whether a page of this server has made a request that changes something.

    Args:
        csrf: the token that it must prove; None: there is no session yet.
    """
    headers = request.headers
    if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        return False
    if headers.get("sec-fetch-site", "same-origin") != "same-origin":
        return False
    origin = headers.get("origin")
    if origin is not None and origin != f"{request.url.scheme}://{headers.get('host', '')}":
        return False
    return csrf is None or hmac.compare_digest(headers.get("x-csrf-token", "").encode(), csrf.encode())
