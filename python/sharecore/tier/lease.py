"""Lease in time: how long a node may act as the owner of its slots without a word from the cluster."""

from __future__ import annotations

from collections.abc import Callable

from sharecore.waiting import Timer, Timers

LEASE_MS = 7_000
"""Shorter than the session that the cluster gives a node, so that nobody else leads yet when it ends."""
_LOOK_S = 0.5


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


class LeaseEnd:
    """Tells each time that a lease has run out.

    Args:
        ended: is told.
        timers: wait for it.
    """

    def __init__(self, lease: Lease, ended: Callable[[], object], timers: Timers) -> None:
        self._lease = lease
        self._ended = ended
        self._timers = timers
        self._timer: Timer | None = None
        self._held = False

    def start(self) -> None:
        """Look from now on."""
        self._look()

    def stop(self) -> None:
        """Look no longer."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        left_ms = self._lease.left_ms
        held, self._held = self._held, left_ms >= 0
        delay = (left_ms + 1) / 1000 if self._held else _LOOK_S
        self._timer = self._timers.call_later(delay, self._look)
        if held and not self._held:
            self._ended()
