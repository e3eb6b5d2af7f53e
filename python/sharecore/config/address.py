"""Addresses that are listened on beside the listeners of clients."""

from __future__ import annotations

import re

_ADDRESS = re.compile(r"(?P<host>\[[^\]]+\]|[^:\[\]]*):(?P<port>\d+)")


def parse_address(text: str) -> tuple[str | None, int]:
    """Return host and port of HOST:PORT, None as the host for every address; raise ValueError."""
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise ValueError("not an address")
    return match["host"].strip("[]") or None, int(match["port"])
