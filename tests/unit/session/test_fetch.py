"""Which fetch sessions are cached."""

from __future__ import annotations

import pytest

from sharecore.errors import ErrorCode, KafkaError
from sharecore.session import NO_SESSION, FetchPartition, FetchSessionCache, Place

START = Place(0, 1, -1, -1)


def partitions(count: int, first: int = 0) -> list[FetchPartition]:
    return [FetchPartition(("t", index), "t", START) for index in range(first, count)]


class Clock:
    now_ms = 0

    def __call__(self) -> int:
        return self.now_ms


def test_a_full_cache_gives_no_session() -> None:
    sessions = FetchSessionCache(1, Clock())
    assert sessions.open(partitions(1), by_id=True) > 0
    assert sessions.open(partitions(9), by_id=True) == NO_SESSION
    assert len(sessions) == 1


def test_an_idle_session_gives_way() -> None:
    clock = Clock()
    sessions = FetchSessionCache(2, clock)
    idle, busy = (sessions.open(partitions(5), by_id=True) for _ in range(2))
    clock.now_ms = 120_001
    assert sessions.resume(busy, 1, (), (), by_id=True)
    assert sessions.open(partitions(1), by_id=True) > 0
    with pytest.raises(KafkaError) as refused:
        sessions.resume(idle, 1, (), (), by_id=True)
    assert refused.value.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert sessions.resume(busy, 2, (), (), by_id=True)


def test_an_old_session_gives_way_to_a_larger_one() -> None:
    clock = Clock()
    sessions = FetchSessionCache(1, clock)
    old = sessions.open(partitions(3), by_id=True)
    clock.now_ms = 100_000
    assert sessions.resume(old, 1, (), (), by_id=True)
    clock.now_ms = 130_000
    assert sessions.open(partitions(3), by_id=True) == NO_SESSION
    assert sessions.open(partitions(4), by_id=True) > 0
    assert len(sessions) == 1


def test_a_session_of_ids_takes_no_names() -> None:
    sessions = FetchSessionCache(1, Clock())
    opened = sessions.open(partitions(1), by_id=True)
    with pytest.raises(KafkaError) as refused:
        sessions.resume(opened, 1, (), (), by_id=False)
    assert refused.value.code is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_no_slots_keep_nothing() -> None:
    assert FetchSessionCache(0, Clock()).open(partitions(1), by_id=True) == NO_SESSION


def test_sessions_are_bounded_in_memory() -> None:
    """sharecore.fetch.sessions.bytes.max"""
    clock = Clock()
    sessions = FetchSessionCache(10, clock, bytes_max=100 * 700)
    first = sessions.open(partitions(60), by_id=True)
    assert first != NO_SESSION
    assert sessions.open(partitions(60), by_id=True) == NO_SESSION
    assert sessions.open(partitions(200), by_id=True) == NO_SESSION
    assert len(sessions) == 1
    clock.now_ms += 130_000
    second = sessions.open(partitions(60), by_id=True)
    assert second != NO_SESSION, "what is idle makes room"
    assert len(sessions) == 1
    with pytest.raises(KafkaError) as grown:
        sessions.resume(second, 1, partitions(200, 60), [], by_id=True)
    assert grown.value.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(sessions) == 0
    third = sessions.open(partitions(60), by_id=True)
    session = sessions.resume(third, 1, [], [each.key for each in partitions(59)], by_id=True)
    assert session is not None
    assert sessions.open(partitions(90), by_id=True) != NO_SESSION, "what is forgotten is given back"
