"""Leaders of share partitions that ended while members held records: nothing of their leases is persisted."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple
from uuid import UUID

from sharecore.clock import Clock
from sharecore.persister import SharePartitionKey

_FORGET_MS = 3_600_000
"""No lock lasts longer."""


class _Lost(NamedTuple):
    """Leaders that ended at the same time.

    Args:
        which: chooses the partitions of topics that they led.
        groups: whose members held records; None if any group's may have.
        since_ms: when they had ended, by the monotonic clock.
    """

    which: Callable[[UUID, int], bool]
    groups: Collection[str] | None
    since_ms: int


class Predecessors:
    """Since when no leader knows what members hold (`share.ordering.takeover.wait`)."""

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
        """Note leaders that ended without a release.

        Args:
            part: a number for them.
            which: chooses their partitions of topics.
            groups: whose members held records; None if any group's may have.
            ago_ms: how long ago they ended, at least.
        """
        self._lost[part] = _Lost(which, groups, self._clock.monotonic_ms() - ago_ms)

    def released(self, part: int) -> None:
        """Forget those leaders: they ended once their members held nothing."""
        self._lost.pop(part, None)

    def failed(self, key: SharePartitionKey) -> None:
        """Note a leader of this process that ended while its members may have held records."""
        now_ms = self._clock.monotonic_ms()
        self._failed = {each: at for each, at in self._failed.items() if now_ms - at < _FORGET_MS}
        self._failed[key] = now_ms

    def since_ms(self, key: SharePartitionKey) -> int | None:
        """Return since when members may hold records of a share partition unknown to its leader."""
        found = [
            lost.since_ms
            for lost in self._lost.values()
            if (lost.groups is None or key.group_id in lost.groups)
            and lost.which(key.topic_id, key.partition)
        ]
        if key in self._failed:
            found.append(self._failed[key])
        return max(found, default=None)
