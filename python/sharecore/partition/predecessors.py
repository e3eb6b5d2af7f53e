"""Former leaders that ended while members held records: their leases are not persisted."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple
from uuid import UUID

from sharecore.clock import Clock
from sharecore.persister import SharePartitionKey

_FORGET_MS = 3_600_000
"""The longest possible lock."""


class _Lost(NamedTuple):
    """Leaders that ended at the same time.

    Args:
        which: selects the partitions that they led.
        groups: whose members held records; None if any group's may have.
        since_ms: a time by which they had ended, by the monotonic clock.
    """

    which: Callable[[UUID, int], bool]
    groups: Collection[str] | None
    since_ms: int


class Predecessors:
    """Since when leaders do not know which records members hold (`share.ordering.takeover.wait`)."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lost: dict[int, _Lost] = {}
        self._failed: dict[SharePartitionKey, int] = {}

    def lost(
        self,
        part: int,
        which: Callable[[UUID, int], bool],
        *,
        groups: Collection[str] | None = None,
        ago_ms: int = 0,
    ) -> None:
        """Record leaders that ended without a release.

        Args:
            part: identifies them.
            which: selects their partitions.
            groups: whose members held records; None if any group's may have.
            ago_ms: the minimum time since they ended.
        """
        self._lost[part] = _Lost(which, groups, self._clock.monotonic_ms() - ago_ms)

    def released(self, part: int) -> None:
        """Forget those leaders: they ended after their members held nothing."""
        self._lost.pop(part, None)

    def failed(self, key: SharePartitionKey) -> None:
        """Record a leader of this process that ended while its members may have held records."""
        now_ms = self._clock.monotonic_ms()
        self._failed = {each: at for each, at in self._failed.items() if now_ms - at < _FORGET_MS}
        self._failed[key] = now_ms

    def since_ms(self, key: SharePartitionKey) -> int | None:
        """Return since when members may hold records unknown to the share partition's leader."""
        found = [
            lost.since_ms
            for lost in self._lost.values()
            if (lost.groups is None or key.group_id in lost.groups)
            and lost.which(key.topic_id, key.partition)
        ]
        if key in self._failed:
            found.append(self._failed[key])
        return max(found, default=None)
