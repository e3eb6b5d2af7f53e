"""How the brokers of a home describe themselves in its bucket."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

ANNOUNCE_MS = 600_000
"""How often a broker describes itself anew."""
_STALE_MS = 3 * ANNOUNCE_MS


class Described(NamedTuple):
    """A broker as it describes itself.

    Args:
        node_id: its id.
        listeners: host and port by the listener's name.
        rack: its rack, if any.
        at_ms: when it did, in milliseconds since 1970.
    """

    node_id: int
    listeners: Mapping[str, tuple[str, int]]
    rack: str | None
    at_ms: int

    def is_current(self, now_ms: int) -> bool:
        """Whether the broker has described itself lately; one that was lost has not."""
        return now_ms < self.at_ms + _STALE_MS

    def encode(self) -> bytes:
        """Return the body of the object."""
        return json.dumps(self._asdict()).encode()


def decode_described(body: bytes) -> Described | None:
    """Return what an object says; None if it cannot be read."""
    try:
        found = json.loads(body)
        listeners = {str(name): (str(host), int(port)) for name, (host, port) in found["listeners"].items()}
        rack = None if found["rack"] is None else str(found["rack"])
        return Described(int(found["node_id"]), listeners, rack, int(found["at_ms"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
