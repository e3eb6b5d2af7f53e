"""Share partitions whose leaders return errors in place of records, and since when."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sharecore.client.wire.cluster import TopicIdPartition
from sharecore.errors import KafkaError

_GAP_MS = 5_000
"""A refused partition is retried sooner than this; after a longer silence it has recovered."""


class Refusal(NamedTuple):
    """A leader's error in place of records.

    Args:
        error: the last one.
        for_ms: how long the leader has returned it.
    """

    error: KafkaError
    for_ms: int


class Refusals:
    """The current refusals.

    Args:
        now_ms: the clock.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._seen: dict[TopicIdPartition, tuple[KafkaError, int, int]] = {}
        """The last error, and the times of the first and last one."""

    def add(self, key: TopicIdPartition, error: KafkaError) -> None:
        """Record a leader's error."""
        now_ms = self._now_ms()
        seen = self._seen.get(key)
        first_ms = seen[1] if seen is not None and now_ms - seen[2] <= _GAP_MS else now_ms
        self._seen[key] = error, first_ms, now_ms

    def clear(self, key: TopicIdPartition) -> None:
        """Record that records arrived."""
        self._seen.pop(key, None)

    def now(self) -> dict[TopicIdPartition, Refusal]:
        """Return the share partitions that are currently refused."""
        now_ms = self._now_ms()
        return {
            key: Refusal(error, last_ms - first_ms)
            for key, (error, first_ms, last_ms) in self._seen.items()
            if now_ms - last_ms <= _GAP_MS
        }
