"""Time lease: how long a node may act as a slot owner without a confirmation from the cluster."""

from __future__ import annotations

from collections.abc import Callable

from sharecore.waiting import Timer, Timers

LEASE_MS = 7_000
"""Shorter than the group session, so that no other node leads before it ends."""
_LOOK_S = 0.5


class Lease:
    """Lease of this node.

    Acquisitions are not persisted, so only time prevents two nodes from acquiring the same record. A node
    without confirmed heartbeats for so long that its slots may be reassigned must not acquire records.

    Args:
        confirmed_ms: returns the send time of the last confirmed heartbeat, by `now_ms`; None without one.
        now_ms: a monotonic clock that includes suspensions of the process.
        lease_ms: validity of a confirmation.
    """

    def __init__(
        self,
        confirmed_ms: Callable[[], int | None],
        now_ms: Callable[[], int],
        lease_ms: int = LEASE_MS,
    ) -> None:
        self._confirmed_ms = confirmed_ms
        self._now_ms = now_ms
        self._lease_ms = lease_ms

    @property
    def holds(self) -> bool:
        """Whether the node may act as an owner now."""
        return self.left_ms >= 0

    @property
    def left_ms(self) -> int:
        """Remaining lease time; negative if it has expired."""
        confirmed_ms = self._confirmed_ms()
        return -1 if confirmed_ms is None else confirmed_ms + self._lease_ms - self._now_ms()


class LeaseEnd:
    """Notifier of each lease expiry.

    Args:
        ended: called when a lease expires.
        timers: schedules the check.
    """

    def __init__(self, lease: Lease, ended: Callable[[], object], timers: Timers) -> None:
        self._lease = lease
        self._ended = ended
        self._timers = timers
        self._timer: Timer | None = None
        self._held = False

    def start(self) -> None:
        """Start checking."""
        self._look()

    def stop(self) -> None:
        """Stop checking."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        left_ms = self._lease.left_ms
        held, self._held = self._held, left_ms >= 0
        delay = (left_ms + 1) / 1000 if self._held else _LOOK_S
        self._timer = self._timers.call_later(delay, self._look)
        if held and not self._held:
            self._ended()
