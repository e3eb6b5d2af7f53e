"""What records say about their order and their times, as far as it is known of a log."""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field

from tests.simulation.queues.settings import Queue


@dataclass(frozen=True, slots=True)
class Note:
    """One record.

    Args:
        since: when somebody asked for it to be written, at the earliest.
    """

    key: bytes | None
    headers: dict[str, bytes | None]
    timestamp: int
    since: float

    def number(self, name: str) -> int | None:
        """The number in a header."""
        value = self.headers.get(name) if name else None
        return int(value) if value is not None and value.isdigit() else None

    def key_of(self, queue: Queue) -> bytes | None:
        """What it is ordered by; None if by nothing."""
        if queue.ordering == "partition":
            return b""
        if queue.ordering == "none":
            return None
        key = self.headers.get(queue.key_header) if queue.key_header else self.key
        return None if key is None else b"=" + key

    def expires_ms(self, queue: Queue) -> int | None:
        """When a group gives it up, if it does."""
        ttls = [ttl for ttl in (queue.ttl_ms, self.number(queue.ttl_header)) if ttl is not None and ttl >= 0]
        if not ttls:
            return None
        return max(self.timestamp, self.number(queue.deliver_at) or 0) + min(ttls)


@dataclass
class Notes:
    """The records of one log."""

    by_offset: dict[int, Note] = field(default_factory=dict)
    _orders: dict[tuple[str, str], dict[bytes, list[int]]] = field(default_factory=dict)

    def add(self, offset: int, note: Note) -> None:
        """A record is known to be there."""
        if offset in self.by_offset:
            return
        self.by_offset[offset] = note
        for (ordering, header), keys in self._orders.items():
            self._insert(keys, offset, note, Queue(ordering=ordering, key_header=header))

    @staticmethod
    def _insert(keys: dict[bytes, list[int]], offset: int, note: Note, queue: Queue) -> None:
        key = note.key_of(queue)
        if key is not None:
            insort(keys.setdefault(key, []), offset)

    def of_key(self, queue: Queue, key: bytes) -> list[int]:
        """The records of a key, in order."""
        order = queue.ordering, queue.key_header
        keys = self._orders.get(order)
        if keys is None:
            keys = self._orders[order] = {}
            for offset, note in self.by_offset.items():
                self._insert(keys, offset, note, queue)
        return keys.get(key, [])

    def cut(self, end: int) -> None:
        """The log has lost its records from an offset on."""
        self.by_offset = {offset: note for offset, note in self.by_offset.items() if offset < end}
        self._orders.clear()
