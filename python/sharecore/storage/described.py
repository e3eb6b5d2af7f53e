"""How the brokers of a home describe themselves in its bucket."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

ANNOUNCE_MS = 600_000
"""How often a broker describes itself anew."""
_STALE_MS = 3 * ANNOUNCE_MS
_BYTES_MAX = 64 << 10
_LISTENERS_MAX = 100
_PORTS = range(1, 1 << 16)


class CacheUse(NamedTuple):
    """How a broker uses its local disk, in bytes.

    Args:
        bound: `sharecore.bucket.cache.bytes`.
        local: sealed segments on the disk, and pieces of others.
        remote: sealed segments that only the bucket has.
    """

    bound: int
    local: int
    remote: int


class Described(NamedTuple):
    """A broker as it describes itself.

    Args:
        node_id: its id.
        listeners: host and port by the listener's name.
        rack: its rack, if any.
        at_ms: when it did, in milliseconds since 1970.
        epoch: its leader epoch if it leads; 0 if it stands by.
        cache: its local disk; None without a bound, and of a standby.
    """

    node_id: int
    listeners: Mapping[str, tuple[str, int]]
    rack: str | None
    at_ms: int
    epoch: int = 0
    cache: CacheUse | None = None

    def is_current(self, now_ms: int) -> bool:
        """Whether the broker has described itself lately; one that was lost has not.

        A time far in the future is not current either: it would never be old.
        """
        return abs(now_ms - self.at_ms) < _STALE_MS

    def encode(self) -> bytes:
        """Return the body of the object."""
        return json.dumps(self._asdict()).encode()


def decode_described(node_id: int, body: bytes) -> Described | None:
    """Return what an object says; None if it is damaged: anybody with access to the bucket can write it.

    Args:
        node_id: the node that the object is named for.
        body: the object.
    """
    if len(body) > _BYTES_MAX:
        return None
    try:
        found = json.loads(body)
        listeners = {str(name): (str(host), int(port)) for name, (host, port) in found["listeners"].items()}
        rack = None if found["rack"] is None else str(found["rack"])
        # brokers of earlier releases do not write their epoch
        epoch = int(found.get("epoch", 0))
        cache = None if found.get("cache") is None else CacheUse(*map(int, found["cache"]))
        described = Described(int(found["node_id"]), listeners, rack, int(found["at_ms"]), epoch, cache)
        # a lone surrogate cannot be sent
        "".join([rack or "", *listeners, *(host for host, _ in listeners.values())]).encode()
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError):
        return None
    is_sound = described.node_id == node_id and len(listeners) <= _LISTENERS_MAX
    return described if is_sound and all(port in _PORTS for _, port in listeners.values()) else None
