"""Requests are counted and timed whether they are answered at once or later."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sharecore.metrics.requests import RequestTimes
from sharecore.network import Answer, Connection, Disconnect, Pending

CONNECTION = cast(Connection, SimpleNamespace())
FETCH = b"\x00\x01\x00\x11"


def test_an_answer_at_once() -> None:
    times = RequestTimes(lambda connection, frame: [b"four", b"five!"])
    for _ in range(3):
        assert times.on_frame(CONNECTION, FETCH + b"rest") == [b"four", b"five!"]
    (figures,) = times.by_api.values()
    assert (figures.count, figures.request_bytes, figures.response_bytes) == (3, 24, 27)
    assert sum(figures.times.buckets) == 3
    assert figures.times.total_ns == figures.local_ns


def test_an_answer_later() -> None:
    async def asked() -> None:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        times = RequestTimes(lambda connection, frame: Pending(future, lambda done: [done.result()]))
        answer = times.on_frame(CONNECTION, FETCH)
        assert isinstance(answer, Pending)
        figures = times.by_api[FETCH]
        assert (figures.count, sum(figures.times.buckets)) == (1, 0)
        future.set_result(b"late")
        assert answer.finish(future) == [b"late"]
        assert sum(figures.times.buckets) == 1
        assert figures.times.total_ns >= figures.local_ns
        assert figures.response_bytes == 4

    asyncio.run(asked())


def test_what_is_no_request_is_not_counted() -> None:
    def refuse(connection: Connection, frame: bytes) -> Answer:
        raise Disconnect("not served")

    times = RequestTimes(refuse)
    with pytest.raises(Disconnect):
        times.on_frame(CONNECTION, FETCH)
    assert times.by_api == {}


def test_strangers_cannot_fill_the_memory_with_versions() -> None:
    times = RequestTimes(lambda connection, frame: [])
    for version in range(5000):
        times.on_frame(CONNECTION, b"\x00\x12" + version.to_bytes(2, "big"))
    assert len(times.by_api) <= 1001
    assert sum(figures.count for figures in times.by_api.values()) == 5000
