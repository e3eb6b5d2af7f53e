"""Share partitions whose leaders refuse to give records, and since when."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sharecore.client.wire.cluster import TopicIdPartition
from sharecore.errors import KafkaError

_GAP_MS = 5_000
"""A refused partition is asked again sooner than this; after a longer silence it has recovered."""


class Refusal(NamedTuple):
    """A leader's answer in place of records.

    Args:
        error: the last one.
        for_ms: how long the leader has answered so.
    """

    error: KafkaError
    for_ms: int


class Refusals:
    """The refusals in force.

    Args:
        now_ms: the time.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._seen: dict[TopicIdPartition, tuple[KafkaError, int, int]] = {}
        """The last error, and when the first and the last came."""

    def add(self, key: TopicIdPartition, error: KafkaError) -> None:
        """Note that a leader refused."""
        now_ms = self._now_ms()
        seen = self._seen.get(key)
        first_ms = seen[1] if seen is not None and now_ms - seen[2] <= _GAP_MS else now_ms
        self._seen[key] = error, first_ms, now_ms

    def clear(self, key: TopicIdPartition) -> None:
        """Note that records came."""
        self._seen.pop(key, None)

    def now(self) -> dict[TopicIdPartition, Refusal]:
        """Return the share partitions that are refused at the moment."""
        now_ms = self._now_ms()
        return {
            key: Refusal(error, last_ms - first_ms)
            for key, (error, first_ms, last_ms) in self._seen.items()
            if now_ms - last_ms <= _GAP_MS
        }
