"""Connection limits: in total, per listener and per address, and their rates (KIP-402, KIP-612)."""

from __future__ import annotations

import errno
import logging
import os
import time
from collections import Counter
from collections.abc import Callable

from sharecore.network.limits import Limits, ListenerLimits
from sharecore.rates import Rate, Recent, Window

try:
    import resource
except ModuleNotFoundError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]

log = logging.getLogger("sharecore.network")

_DESCRIPTORS_KEPT_MAX = 500
_COUNT_S, _COUNT_EACH, _COUNT_PART, _MANY = 0.1, 16, 8, 1 << 30
_UNLIMITED = 2147483647
_ADDRESSES_MAX = 10_000
_SAY_AGAIN_MS = 60_000


class Admission:
    """Count open and recent connections.

    Args:
        limits: returns the limits.
        rate_of: returns an address's connection rate limit in 1/s; None for no limit.
        now_ms: returns the monotonic time.
        spare: closes an idle connection if descriptors run out; returns whether there was one.
    """

    def __init__(
        self,
        limits: Callable[[], Limits],
        rate_of: Callable[[str], float | None],
        now_ms: Callable[[], float],
        spare: Callable[[], bool] = lambda: False,
    ) -> None:
        self._limits = limits
        self._spare = spare
        self._rate_of = rate_of
        self._now_ms = now_ms
        self.total = 0
        """Number of admitted connections."""
        self._at_listener: Counter[str] = Counter()
        self._from_host: Counter[str] = Counter()
        self._rates: dict[str, tuple[Rate, Window]] = {}
        """Rates by listener; the empty name is the broker."""
        self._host_rates: Recent[str, Rate] = Recent(lambda: Rate(limits().window), _ADDRESSES_MAX)
        self._room: list[Callable[[], None]] = []
        self._said_at_ms: float | None = None

    def on_room(self, room: Callable[[], None]) -> None:
        """Call `room` whenever a connection has closed or the limits have changed."""
        self._room.append(room)

    def look_again(self) -> None:
        """Recheck after a change of the limits."""
        for room in self._room:
            room()

    def delay_ms(self, listener: str) -> int:
        """Count a connection about to be accepted; return its delay."""
        limits, now_ms = self._limits(), self._now_ms()
        bounds = {
            "": limits.creation_rate_max,
            listener: self._of(listener, limits).creation_rate_max,
        }
        return max(self._delay_ms(name, bound, limits.window, now_ms) for name, bound in bounds.items())

    def host_delay_ms(self, host: str) -> int:
        """Count a connection of an address; return the delay before its refusal, or 0 to admit it."""
        bound = self._rate_of(host)
        if bound is None:
            return 0
        now_ms, window = self._now_ms(), self._limits().window
        rate = self._host_rates[host]
        rate.record(1, now_ms)
        delay_ms = min(rate.throttle_ms(bound, now_ms), window.sample_ms)
        if delay_ms:
            rate.record(-1, now_ms)  # a refused connection does not count
        return delay_ms

    def has_room(self, listener: str) -> bool:
        """Return whether a listener may have one more open connection."""
        limits = self._limits()
        is_spare = has_descriptors()
        if (
            self.total < limits.connections_max
            and self._at_listener[listener] < self._of(listener, limits).connections_max
            and (is_spare or self.spare())
        ):
            return True
        now_ms = self._now_ms()
        if self._said_at_ms is None or now_ms - self._said_at_ms >= _SAY_AGAIN_MS:
            self._said_at_ms = now_ms
            bound = "max.connections" if is_spare else "file descriptors of the process"
            log.warning("connections wait at listener %s: %d are open (%s)", listener, self.total, bound)
        return False

    def spare(self) -> bool:
        """Close idle connections; return whether there was one.

        It closes two per new connection, so that their number falls at any connection rate.
        """
        return sum(self._spare() for _ in range(2)) > 0

    def enter(self, listener: str, host: str) -> Callable[[], None]:
        """Count a connection as open; return a callback for its end.

        Raises:
            TooManyConnections: its address has reached its limit.
        """
        limits = self._limits()
        bound = limits.connections_max_of.get(host, limits.connections_max_per_ip)
        if self._from_host[host] >= bound:
            raise TooManyConnections(
                f"{self._from_host[host]} connections from its address (max.connections.per.ip)"
            )
        self.total += 1
        self._at_listener[listener] += 1
        self._from_host[host] += 1
        inside = [True]

        def leave() -> None:
            if not inside:
                return
            inside.clear()
            self.total -= 1
            self._at_listener[listener] -= 1
            self._from_host[host] -= 1
            if not self._from_host[host]:
                del self._from_host[host]
            self.look_again()

        return leave

    def _delay_ms(self, name: str, bound: float, window: Window, now_ms: float) -> int:
        if bound >= _UNLIMITED:
            self._rates.pop(name, None)
            return 0
        known = self._rates.get(name)
        if known is None or known[1] != window:
            known = self._rates[name] = Rate(window), window
        known[0].record(1, now_ms)
        return min(known[0].throttle_ms(max(bound, 1e-9), now_ms), window.sample_ms)

    def _of(self, listener: str, limits: Limits) -> ListenerLimits:
        return limits.listeners.get(listener, ListenerLimits())


class _Descriptors:
    """Approximate number of open file descriptors of the process: counting takes time for each of them.

    They are counted again after a while, or when calls may have used an eighth of those that were left.
    """

    def __init__(self) -> None:
        self._counted = self._since = 0
        self._at_s = -_COUNT_S

    def about(self, most: int) -> int:
        """Return the number, assuming one more than at the last call.

        Args:
            most: the number that matters to the caller.
        """
        self._since += 1
        now_s = time.monotonic()
        each = max(_COUNT_EACH, (most - self._counted) // _COUNT_PART)
        if self._since >= each or now_s - self._at_s >= _COUNT_S:
            try:
                self._counted = len(os.listdir("/dev/fd"))
            except OSError as error:  # /dev/fd does not exist, or no descriptor is left to list it
                self._counted = _MANY if error.errno in (errno.EMFILE, errno.ENFILE) else 0
            self._since, self._at_s = 0, now_s
        return self._counted + self._since


_descriptors = _Descriptors()


def has_descriptors(*, for_few: bool = False) -> bool:
    """Return whether enough descriptors are free: a tenth of the limit, or 500.

    Args:
        for_few: half of that is enough for a listener of few connections, so that operators can connect
            when clients have used up their share.
    """
    if resource is None:
        return True
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY:
        return True
    kept = min(most // 10, _DESCRIPTORS_KEPT_MAX)
    most -= kept // 2 if for_few else kept
    return _descriptors.about(most) < most


class TooManyConnections(Exception):
    """An address has reached its connection limit."""
