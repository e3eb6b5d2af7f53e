"""What a request costs the broker by the number of its entries, for each list of each API."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from tests.abuse.peer import Peer
from tests.abuse.subject import Subject
from tests.harness.plausible import Names, lists, message, variants

from sharecore.broker.handlers import SERVED, TELEMETRY
from sharecore.protocol import ApiKey

RATIO_MAX = 3.0
"""Ten times as many entries may cost so many times more each."""
_LOGIN = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
APIS = {api: served for api, served in {**SERVED, **TELEMETRY}.items() if api not in _LOGIN}
_TRIES = 3
_SETTLE_S = 0.004
"""The kernel counts the time of a thread that runs now and then, and exactly when it has gone to sleep."""
_NOISE_S = 0.0005
_numbers = count()


@dataclass(frozen=True)
class Growing:
    """A list of a request that grows.

    Attributes:
        path: of the list in the newest version of the API.
        fixed: fields that make a variant of the request.
    """

    api: ApiKey
    version: int
    path: str
    fixed: tuple[tuple[str, object], ...]

    @property
    def title(self) -> str:
        about = "".join(f" {name}={value}" for name, value in self.fixed)
        return f"{self.api.name.lower()} {self.path}{about}"


@dataclass(frozen=True)
class Growth:
    """CPU seconds an entry of the broker's process."""

    few_s: float
    many_s: float

    @property
    def ratio(self) -> float:
        return self.many_s / self.few_s


def growing(subject: Subject, api: ApiKey, *, every_variant: bool = True) -> Iterator[Growing]:
    """Return each list of an API that is offered, in each variant of its requests or in the first."""
    version = subject.newest(api, APIS[api].max_version)
    for path in lists(api, version) if version >= 0 else ():
        for fixed in variants(api)[: None if every_variant else 1]:
            if all(value is not None or name not in path.split(".") for name, value in fixed.items()):
                yield Growing(api, version, path, tuple(fixed.items()))


def measure(subject: Subject, peer: Peer, what: Growing, entries: int) -> Growth:
    """Send requests of `entries` and of ten times as many; try again where the many seem to cost too much."""
    few, many = _cost(subject, peer, what, entries), _cost(subject, peer, what, entries * 10)
    for _ in range(_TRIES - 1):
        if many / 10 <= max(few, _NOISE_S) * RATIO_MAX:
            break
        few = max(few, _cost(subject, peer, what, entries))
        many = min(many, _cost(subject, peer, what, entries * 10))
    return Growth(max(few, _NOISE_S) / entries, many / entries / 10)


def _cost(subject: Subject, peer: Peer, what: Growing, entries: int) -> float:
    """Return the CPU seconds of one request."""
    word = f"g{next(_numbers)}"
    names = Names(f"{word}-t", uuid.UUID(int=1 << 64), f"{word}-g", f"{word}-x", f"{word}-u")
    request = message(what.api, what.version, names, dict(what.fixed), {what.path: entries})
    frame = peer.frame(what.api.name.lower(), what.version, **request)
    before = _cpu_seconds(subject.pid)
    peer.send(frame)
    peer.receive()
    time.sleep(_SETTLE_S)
    return _cpu_seconds(subject.pid) - before


def _cpu_seconds(pid: int) -> float:
    """Return user and system time of a process (clock_getcpuclockid)."""
    return time.clock_gettime(~pid << 3 | 2)
