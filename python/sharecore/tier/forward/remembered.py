"""A cache for clients, bounded in bytes: clients choose the length of names."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

NAME_BYTES = 100
"""Approximate overhead of a name."""


class Remembered(Generic[Key, Value]):
    """Values by key; the least recently used are evicted first.

    Args:
        bytes_max: total memory. A larger value is not cached at all.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._entries: OrderedDict[Key, tuple[Value, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> Value | None:
        """Return a value, and mark it as most recently used."""
        found = self._entries.get(key)
        if found is None:
            return None
        self._entries.move_to_end(key)
        return found[0]

    def put(self, key: Key, value: Value, size: int) -> None:
        """Cache a value with its approximate size, including its key."""
        self.pop(key)
        if size > self._bytes_max:
            return
        self._entries[key] = value, size
        self._bytes += size
        while self._bytes > self._bytes_max:
            _, (_, freed) = self._entries.popitem(last=False)
            self._bytes -= freed

    def pop(self, key: Key) -> None:
        """Remove a value."""
        _, freed = self._entries.pop(key, (None, 0))
        self._bytes -= freed
