from __future__ import annotations

from uuid import UUID

import pytest

from sharecore.errors import ErrorCode, KafkaError
from sharecore.session import FINAL_EPOCH, ShareSession, ShareSessionCache, next_epoch

A, B, C = ((UUID(int=1), index) for index in range(3))


class Closed(list[str]):
    def __call__(self, session: ShareSession) -> None:
        self.append(session.member_id)


def test_epochs_count_up_and_begin_again_at_one() -> None:
    assert next_epoch(0) == 1
    assert next_epoch(7) == 8
    assert next_epoch(2**31 - 1) == 1


def test_a_session_expects_one_epoch_after_the_other() -> None:
    cache = ShareSessionCache(10, Closed())
    session = cache.open("g", "m", "c")
    assert cache.resume("g", "m", 1) is session
    for wrong in (0, 1, 3):
        with pytest.raises(KafkaError) as refused:
            cache.resume("g", "m", wrong)
        assert refused.value.code is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert cache.resume("g", "m", 2) is session


def test_without_a_session_every_epoch_but_zero_is_refused() -> None:
    cache = ShareSessionCache(10, Closed())
    for epoch in (1, 5, FINAL_EPOCH):
        with pytest.raises(KafkaError) as refused:
            cache.resume("g", "m", epoch)
        assert refused.value.code is ErrorCode.SHARE_SESSION_NOT_FOUND


@pytest.mark.parametrize(("group", "member"), [(None, "m"), ("g", ""), ("g", None), ("g", "x" * 37)])
def test_unusable_names_are_refused(group: str | None, member: str | None) -> None:
    cache = ShareSessionCache(10, Closed())
    with pytest.raises(KafkaError) as refused:
        cache.open(group, member, "c")
    assert refused.value.code is ErrorCode.INVALID_REQUEST


class Fetch:
    """A waiting fetch."""

    abandoned = False

    def abandon(self) -> None:
        self.abandoned = True


def test_the_session_of_a_member_that_has_left_goes_on() -> None:
    closed = Closed()
    cache = ShareSessionCache(10, closed)
    session = cache.open("g", "m", "c")
    waiting = Fetch()
    session.fetches[waiting] = None
    assert cache.leave("g", "m") is session
    assert waiting.abandoned
    assert cache.resume("g", "m", FINAL_EPOCH) is session
    assert closed == []
    assert cache.leave("g", "another") is None


def test_a_member_that_comes_again_has_nothing_of_the_one_that_left() -> None:
    closed = Closed()
    cache = ShareSessionCache(1, closed)
    cache.open("g", "m", "one")
    cache.leave("g", "m")
    cache.open("g", "m", "two")
    assert closed == ["m"]
    cache.open("g", "m", "three")
    assert closed == ["m"], "the second one has not left"


def test_a_new_session_takes_over_what_the_member_holds() -> None:
    closed = Closed()
    cache = ShareSessionCache(1, closed)
    first = cache.open("g", "m", "one")
    first.touch(A)
    first.add([A])
    waiting = Fetch()
    first.fetches[waiting] = None
    second = cache.open("g", "m", "two")
    assert second is not first
    assert waiting.abandoned
    assert closed == [], "its leases stay: it may still settle them"
    assert second.held == [], "it has no partition of the first session"
    second.add([A])
    assert second.held == [A]
    assert len(cache) == 1
    cache.close(first)
    cache.connection_lost("one")
    assert len(cache) == 1, "a session that was replaced closes nothing"
    cache.connection_lost("two")
    assert closed == ["m"]


def test_the_cache_is_bounded_over_all_groups() -> None:
    cache = ShareSessionCache(2, Closed())
    first = cache.open("g", "a", "c")
    cache.open("h", "a", "c")
    with pytest.raises(KafkaError) as refused:
        cache.open("g", "b", "c")
    assert refused.value.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    cache.close(first)
    cache.open("g", "b", "c")


def test_sessions_end_with_the_connection_that_they_were_opened_over() -> None:
    closed = Closed()
    cache = ShareSessionCache(10, closed)
    cache.open("g", "a", "one")
    cache.open("g", "b", "one")
    cache.open("g", "c", "two")
    cache.resume("g", "c", 1)
    cache.connection_lost("one")
    assert closed == ["a", "b"]
    cache.connection_lost("two")
    assert closed == ["a", "b", "c"]
    assert len(cache) == 0
    cache.connection_lost("two")


def test_partitions_are_added_and_forgotten_and_take_turns_at_being_first() -> None:
    session = ShareSession("g", "m", "c")
    session.add([A, B])
    session.add([C, A])
    first = []
    for epoch in range(1, 4):
        session.epoch = epoch
        order = session.in_order(session.partitions, session.rotation())
        assert sorted(order) == [A, B, C]
        first.append(order[0])
    assert sorted(first) == [A, B, C]
    assert order == [C, A, B]
    assert session.in_order({B, C}, session.rotation()) == [C, B], "some are served as all would be"
    session.forget([B, (UUID(int=9), 0)])
    assert session.partitions == [A, C]
    assert session.in_order([A, B, C], session.rotation()) == [A, C], "what has left is left out"


def test_a_partition_that_brought_records_goes_behind_the_others() -> None:
    session = ShareSession("g", "m", "c")
    session.add([A, B, C])
    session.report([A, B, C], [], [A])
    assert session.partitions == [A, B, C], "the first answer leaves the order alone"
    session.report([A], [], [A])
    assert session.partitions == [B, C, A]
    session.forget([B])
    session.report([B, C], [], [B, C])
    assert session.partitions == [A, C], "what was forgotten meanwhile stays away"


def test_an_answer_owes_each_partition_once_and_again_after_an_error() -> None:
    session = ShareSession("g", "m", "c")
    session.add([A, B])
    assert session.unreported == [A, B]
    session.report([A], [], [A])
    assert not session.unreported, "what the first answer leaves out is not made up for"
    session.add([A, C])
    assert session.unreported == [C]
    session.report([], [], [])
    assert session.unreported == [C], "it cannot be fetched yet"
    session.report([C, B], [B], [C])
    assert session.unreported == [B]
    session.forget([B])
    session.report([B], [B], [])
    assert not session.unreported


def filled(cache: ShareSessionCache, member: str, count: int) -> ShareSession:
    """Return a session with this many partitions."""
    session = cache.open("g", member, member)
    cache.admit(session, count)
    session.add((UUID(int=1), index) for index in range(count))
    return session


def limit_reached(cache: ShareSessionCache, session: ShareSession, count: int) -> bool:
    with pytest.raises(KafkaError) as refused:
        cache.admit(session, count)
    return refused.value.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED


def test_partitions_of_a_session_are_bounded() -> None:
    """sharecore.share.session.partitions.max"""
    cache = ShareSessionCache(10, Closed(), partitions_max=100)
    session = filled(cache, "m", 90)
    cache.admit(session, 10)
    assert limit_reached(cache, session, 11)


def test_memory_of_all_sessions_is_bounded() -> None:
    """sharecore.share.sessions.bytes.max"""
    closed = Closed()
    cache = ShareSessionCache(10, closed, bytes_max=1280 * 100)
    filled(cache, "one", 60)
    small = filled(cache, "two", 40)
    assert limit_reached(cache, small, 1)
    assert closed == []


def test_a_large_session_gives_way_to_a_small_one() -> None:
    closed = Closed()
    cache = ShareSessionCache(10, closed, bytes_max=1280 * 100)
    filled(cache, "large", 60)
    filled(cache, "small", 30)
    filled(cache, "new", 20)
    assert closed == ["large"]
    assert len(cache) == 2
