"""Lease in time: how long a node may act as the owner of its slots without a word from the cluster."""

from __future__ import annotations

from collections.abc import Callable

LEASE_MS = 7_000
"""Shorter than the session that the cluster gives a node, so that nobody else leads yet when it ends."""


class Lease:
    """Whether this node may still lease records.

    Acquisitions are written nowhere, so nothing but time keeps two nodes from leasing one record: a node that
    has not been heard for so long that another may have its slots must not lease, however little it knows.

    Args:
        heard_ms: when the last heartbeat was sent that was answered well, by `now_ms`; None without any.
        now_ms: a monotonic clock, which goes on while the process is stopped.
        lease_ms: for how long a word from the cluster is good.
    """

    def __init__(
        self,
        heard_ms: Callable[[], int | None],
        now_ms: Callable[[], int],
        lease_ms: int = LEASE_MS,
    ) -> None:
        self._heard_ms = heard_ms
        self._now_ms = now_ms
        self._lease_ms = lease_ms

    @property
    def holds(self) -> bool:
        """Whether the node may act as an owner at this moment."""
        return self.left_ms >= 0

    @property
    def left_ms(self) -> int:
        """For how long it may, without another word; negative where it may not."""
        heard_ms = self._heard_ms()
        return -1 if heard_ms is None else heard_ms + self._lease_ms - self._now_ms()
