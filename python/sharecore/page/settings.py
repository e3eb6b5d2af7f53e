"""What a page runs with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sharecore.config.page import ACTIONS


@dataclass(frozen=True, kw_only=True)
class PageConfig:
    """Bounds and rights of a page.

    Args:
        about: the cluster, to be shown.
        troubles: what is wrong with the broker, to be shown to who may look.
        standby: who leads, if the broker stands by; empty if it serves.
        actions: who may act: `users` who have logged in, `everyone` or `none`.
        hosts: names that browsers may call it by, besides localhost and IP addresses.
        interval_s: between two looks at the cluster; a look that takes long makes it longer.
        sessions_max: users that may be logged in at a time.
        idle_s: a user who asks for nothing so long is logged out.
        life_s: a user is logged out so long after the login, whatever happens.
        streams_max: browsers' windows that follow the cluster at a time, and of these one user may have
            `streams_of_user_max`.
        stream_s: how long a stream lasts; browsers open the next one by themselves.
        login_pause_s: how long an address waits after credentials that were refused.
    """

    about: str
    troubles: Callable[[], Sequence[str]] = tuple
    standby: Callable[[], str] = str
    actions: str = ACTIONS[0]
    hosts: Collection[str] = ()
    interval_s: float = 3.0
    sessions_max: int = 50
    idle_s: float = 1800.0
    life_s: float = 43_200.0
    streams_max: int = 100
    streams_of_user_max: int = 8
    stream_s: float = 600.0
    login_pause_s: float = 1.0


class PageLimits(NamedTuple):
    """Bounds of the page's connections.

    Args:
        connections_max: connections at a time (sharecore.page.connections.max).
        head_bytes_max: a request's line and headers (sharecore.page.request.max.bytes).
        request_ms_max: for a request to come to its end (sharecore.page.request.timeout.ms).
    """

    connections_max: int = 256
    head_bytes_max: int = 16 << 10
    request_ms_max: int = 15_000
