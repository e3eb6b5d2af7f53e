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
    """empty, or an address as host:port or https://host:port"""
    if text:
        parse_page_listener(text)


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class PageSettings:
    """The page of share groups, for browsers."""

    sharecore_page_listener: str = setting(
        Kind.STRING,
        "",
        "Address of the page of share groups, as host:port, or https://host:port with the keys of "
        "`listener.name.page.ssl.*` or else `ssl.*`; empty: none.",
        check=check_page_listener,
    )
    sharecore_page_actions: str = setting(
        Kind.STRING,
        "users",
        "Who may reset, delete and redrive on the page, as far as ACLs allow: users who have logged in, "
        "everyone who can reach it, or none.",
        choices=ACTIONS,
    )
    sharecore_page_hosts: tuple[str, ...] = setting(
        Kind.LIST,
        (),
        "Names that browsers may call the page by, besides localhost, names of listeners and IP addresses.",
    )
    sharecore_page_sessions_max: int = setting(
        Kind.INT, 50, "Users that may be logged in on the page at a time.", low=1
    )
    sharecore_page_session_idle_ms: int = setting(
        Kind.INT, 1_800_000, "A user of the page that asks for nothing so long is logged out.", low=1000
    )
    sharecore_page_connections_max: int = setting(
        Kind.INT,
        256,
        "Connections to the page at a time; for a further one the oldest that waits for no answer is closed.",
        low=1,
    )
    sharecore_page_request_max_bytes: int = setting(
        Kind.INT, 16384, "Bytes of the line and the headers of a request to the page.", low=1024
    )
    sharecore_page_request_timeout_ms: int = setting(
        Kind.INT,
        15_000,
        "A connection to the page that brings no whole request for so long is closed.",
        low=100,
    )
