"""Settings of the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from sharecore.config.address import parse_address
from sharecore.config.keys import Kind, setting

ACTIONS = ("users", "everyone", "none")
_SECURE, _PLAIN = "https://", "http://"


class PageAddress(NamedTuple):
    """Where a page is served.

    Args:
        host: None for every address of the machine.
    """

    host: str | None
    port: int
    tls: bool


def parse_page_listener(text: str) -> PageAddress:
    """Return an address as host:port, with https:// before it where it encrypts; raise ValueError."""
    tls = text.startswith(_SECURE)
    host, port = parse_address(text.removeprefix(_SECURE).removeprefix(_PLAIN))
    return PageAddress(host, port, tls)


def check_page_listener(text: str) -> None:
    """Allow empty, or an address as host:port or https://host:port"""
    if text:
        parse_page_listener(text)


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class PageSettings:
    """The page of share groups, for browsers."""

    sharecore_page_listener: str = setting(
        Kind.STRING,
        "",
        "Address of the web page as host:port, or https://host:port with `listener.name.page.ssl.*` or "
        "`ssl.*`; empty: off.",
        check=check_page_listener,
    )
    sharecore_page_actions: str = setting(
        Kind.STRING,
        "users",
        "Who may reset, delete and redrive on the page, if ACLs allow it: users who have logged in, "
        "everyone, or nobody.",
        choices=ACTIONS,
    )
    sharecore_page_hosts: tuple[str, ...] = setting(
        Kind.LIST,
        (),
        "Host names of the page, besides localhost, the listeners' names and IP addresses.",
    )
    sharecore_page_sessions_max: int = setting(
        Kind.INT, 50, "Maximum number of users logged in on the page.", low=1
    )
    sharecore_page_session_idle_ms: int = setting(
        Kind.INT, 1_800_000, "Log users of the page out after this time without a request.", low=1000
    )
    sharecore_page_connections_max: int = setting(
        Kind.INT,
        256,
        "Maximum number of connections to the page; beyond it the oldest idle one is closed.",
        low=1,
    )
    sharecore_page_request_max_bytes: int = setting(
        Kind.INT, 16384, "Maximum size of request line and headers for the page.", low=1024
    )
    sharecore_page_request_timeout_ms: int = setting(
        Kind.INT,
        15_000,
        "Close connections to the page that do not finish a request in this time.",
        low=100,
    )
