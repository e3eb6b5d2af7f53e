"""Addresses that are listened on beside the listeners of clients."""

from __future__ import annotations

import re

_ADDRESS = re.compile(r"(?P<host>\[[^\]]+\]|[^:\[\]]*):(?P<port>\d+)")


def parse_address(text: str) -> tuple[str | None, int]:
    """Host, None for every address of the machine, and port; raises ValueError for what is no address."""
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise ValueError("not an address")
    return match["host"].strip("[]") or None, int(match["port"])
