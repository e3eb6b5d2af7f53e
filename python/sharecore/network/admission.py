"""Who may connect: how many in all, at a listener and from an address, and how fast (KIP-402, KIP-612)."""

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
_COUNT_S, _COUNT_EACH, _MANY = 0.1, 16, 1 << 30
_UNLIMITED = 2147483647
_ADDRESSES_MAX = 10_000
_SAY_AGAIN_MS = 60_000


class Admission:
    """Counts the connections that are open and those that came recently.

    Args:
        limits: returns the bounds.
        rate_of: how many connections a second an address may open; None for any number.
        now_ms: the time, which never goes back.
        spare: closes a connection that does nothing, where descriptors run out; says whether there was one.
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
        """Connections that are inside."""
        self._at_listener: Counter[str] = Counter()
        self._from_host: Counter[str] = Counter()
        self._rates: dict[str, tuple[Rate, Window]] = {}
        """Of the broker under an empty name, of a listener under its own."""
        self._host_rates: Recent[str, Rate] = Recent(lambda: Rate(limits().window), _ADDRESSES_MAX)
        self._room: list[Callable[[], None]] = []
        self._said_at_ms: float | None = None

    def on_room(self, room: Callable[[], None]) -> None:
        """Has `room` called when a connection has gone, or the limits have changed."""
        self._room.append(room)

    def look_again(self) -> None:
        """The limits may have changed."""
        for room in self._room:
            room()

    def delay_ms(self, listener: str) -> int:
        """Count a connection that is about to be accepted; return how long it has to wait before."""
        limits, now_ms = self._limits(), self._now_ms()
        bounds = {
            "": limits.creation_rate_max,
            listener: self._of(listener, limits).creation_rate_max,
        }
        return max(self._delay_ms(name, bound, limits.window, now_ms) for name, bound in bounds.items())

    def host_delay_ms(self, host: str) -> int:
        """Count a connection of an address; more than 0 where it must not come in, and how long it waits to
        hear so.
        """
        bound = self._rate_of(host)
        if bound is None:
            return 0
        now_ms, window = self._now_ms(), self._limits().window
        rate = self._host_rates[host]
        rate.record(1, now_ms)
        delay_ms = min(rate.throttle_ms(bound, now_ms), window.sample_ms)
        if delay_ms:
            rate.record(-1, now_ms)  # it does not come in
        return delay_ms

    def has_room(self, listener: str) -> bool:
        """Whether one more connection may be open at a listener."""
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
        """Close connections that do nothing; return whether there was one.

        It is two for each that comes: so their number falls, however many come at once.
        """
        return sum(self._spare() for _ in range(2)) > 0

    def enter(self, listener: str, host: str) -> Callable[[], None]:
        """Count a connection as open; return a function that counts it as closed.

        Raises:
            TooManyConnections: its address has as many as it may have.
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
    """About how many file descriptors the process has open; counting them takes some time."""

    def __init__(self) -> None:
        self._counted = self._since = 0
        self._at_s = -_COUNT_S

    def about(self) -> int:
        """Return the number, and take it that one more is open than at the last call."""
        self._since += 1
        now_s = time.monotonic()
        if self._since >= _COUNT_EACH or now_s - self._at_s >= _COUNT_S:
            try:
                self._counted = len(os.listdir("/dev/fd"))
            except OSError as error:  # there is none, or none left to list them with
                self._counted = _MANY if error.errno in (errno.EMFILE, errno.ENFILE) else 0
            self._since, self._at_s = 0, now_s
        return self._counted + self._since


_descriptors = _Descriptors()


def has_descriptors(*, for_few: bool = False) -> bool:
    """Return whether the process keeps enough file descriptors: a tenth of all, but no more than 500.

    Args:
        for_few: for a listener of few connections half of that is enough: who looks after the broker gets
            through when its clients have taken all that they may.
    """
    if resource is None:
        return True
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY:
        return True
    kept = min(most // 10, _DESCRIPTORS_KEPT_MAX)
    return _descriptors.about() < most - (kept // 2 if for_few else kept)


class TooManyConnections(Exception):
    """An address has as many connections as it is allowed."""
