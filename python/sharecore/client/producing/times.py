"""Delivery times and times to live, as headers of records."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from sharecore.client.producing.records import Headers, header_pairs

DELIVER_AT_HEADER = "deliver-at"
"""The header with a delivery time; a group names it in `share.deliver.at.header`."""
TTL_HEADER = "ttl"
"""The header with a time to live; a group names it in `share.record.ttl.header`."""
_MS_MAX = 10**19 - 1
"""Brokers read up to 19 digits."""


def timed_headers(
    headers: Headers | None,
    *,
    deliver_at: datetime | int | None = None,
    delay: timedelta | float | None = None,
    ttl: timedelta | float | None = None,
) -> Headers | None:
    """Return headers with those of a delivery time and a time to live added.

    Args:
        headers: of the record.
        deliver_at: a time with a zone, or milliseconds since the epoch.
        delay: the delivery time as a delay, in seconds.
        ttl: in seconds.

    Raises:
        TypeError, ValueError: an invalid time, or two of them; or the record already has such a header.
    """
    if deliver_at is None and delay is None and ttl is None:
        return headers
    pairs = header_pairs(headers) or []
    if deliver_at is not None and delay is not None:
        raise ValueError("a record has one delivery time: pass deliver_at or delay")
    if delay is not None:
        deliver_at = math.ceil(time.time() * 1000) + milliseconds("delay", delay)
    added = []
    if deliver_at is not None:
        added.append((DELIVER_AT_HEADER, _moment(deliver_at)))
    if ttl is not None:
        added.append((TTL_HEADER, milliseconds("ttl", ttl)))
    for name, _ in added:
        if any(name == each for each, _ in pairs):
            raise ValueError(f"the record has a header {name!r} already; leave one of the two out")
    return [*pairs, *((name, str(number)) for name, number in added)]


def milliseconds(name: str, span: timedelta | float, whole: Callable[[float], int] = math.ceil) -> int:
    """Return a span in milliseconds.

    Args:
        whole: rounds it.

    Raises:
        TypeError, ValueError: it is no span, or negative.
    """
    seconds = span.total_seconds() if isinstance(span, timedelta) else span
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise TypeError(f"{name}={span!r}: pass seconds or a timedelta")
    if not 0 <= seconds * 1000 <= _MS_MAX:
        raise ValueError(f"{name}={span!r}: pass 0 seconds or more")
    return whole(seconds * 1000)


def _moment(deliver_at: datetime | int) -> int:
    if isinstance(deliver_at, datetime):
        if deliver_at.tzinfo is None:
            raise ValueError(f"deliver_at={deliver_at}: a time without a zone; pass one with tzinfo")
        deliver_at = math.ceil(deliver_at.timestamp() * 1000)
    if isinstance(deliver_at, bool) or not isinstance(deliver_at, int):
        raise TypeError(f"deliver_at={deliver_at!r}: pass a datetime or milliseconds since the epoch")
    if not 0 <= deliver_at <= _MS_MAX:
        raise ValueError(f"deliver_at={deliver_at}: pass a time after 1970")
    return deliver_at
