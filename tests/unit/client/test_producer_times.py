"""Delivery times and times to live as headers."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sharecore.client.producing.times import timed_headers


def test_times_become_headers_behind_those_of_the_record() -> None:
    at = datetime(2026, 11, 26, 12, 0, 0, 1, tzinfo=UTC)
    assert timed_headers({"a": b"b"}, deliver_at=at, ttl=timedelta(seconds=1.5)) == [
        ("a", b"b"),
        ("deliver-at", str(int(at.timestamp()) * 1000 + 1)),
        ("ttl", "1500"),
    ]
    assert timed_headers(None, deliver_at=7) == [("deliver-at", "7")]
    assert timed_headers(None, ttl=0) == [("ttl", "0")]
    assert timed_headers({"a": b"b"}) == {"a": b"b"}


def test_a_delay_is_counted_from_now() -> None:
    before_ms = time.time() * 1000
    found = timed_headers(None, delay=60)
    after_ms = time.time() * 1000
    assert found is not None
    ((name, value),) = list(dict(found).items())
    assert name == "deliver-at"
    assert before_ms + 60_000 <= int(str(value)) <= after_ms + 60_001


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ({"deliver_at": 7, "delay": 1}, "one delivery time"),
        ({"deliver_at": datetime(2026, 1, 1)}, "without a zone"),
        ({"deliver_at": -1}, "after 1970"),
        ({"deliver_at": "soon"}, "pass a datetime"),
        ({"delay": -1}, "0 seconds or more"),
        ({"delay": float("nan")}, "0 seconds or more"),
        ({"delay": True}, "pass seconds"),
        ({"ttl": "1h"}, "pass seconds"),
        ({"ttl": float("inf")}, "0 seconds or more"),
    ],
)
def test_what_is_no_time_is_refused(times: dict[str, Any], said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        timed_headers(None, **times)


def test_a_header_that_is_there_already_is_not_written_twice() -> None:
    with pytest.raises(ValueError, match="has a header 'ttl' already"):
        timed_headers([("ttl", b"1")], ttl=1)
