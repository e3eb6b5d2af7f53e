"""The partitions that a session's fetches try: only those that may have records."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.unit.partition.bench import LIMITS, Bench
from tests.unit.partition.logs import TOPIC

from sharecore._core import PartitionFetch, ShareSession, WaitingShareFetch, call_by_name
from sharecore.errors import ErrorCode, KafkaError
from sharecore.partition import SharePartition

AT_ONCE = LIMITS._replace(max_wait_ms=0)


class Session:
    """A member whose fetches share a session, as on the broker."""

    def __init__(self, bench: Bench, member: str) -> None:
        self.bench = bench
        self.ready = ShareSession("g", member, None)
        self.ready.add((TOPIC, at) for at in range(len(bench.logs)))
        self.looked_at: list[int] = []
        self.answer: list[PartitionFetch] | None = None

    def fetch(self, *, at_once: bool = True, records: int = 500, first: int = 0) -> WaitingShareFetch:
        bench = self.bench
        found = [bench.leader(index) for _, index in sorted(self.ready.unknown)]
        self.looked_at = [leader.key.partition for leader in [*found, *self.ready.walk(first)]]
        limits = (AT_ONCE if at_once else LIMITS)._replace(max_records=records)
        self.answer = None
        return bench.begin(self.ready, found, limits, self.ended, first)

    def ended(self, answer: list[PartitionFetch]) -> None:
        self.answer = answer

    @property
    def served(self) -> list[int]:
        assert self.answer is not None
        return [each.partition.key.partition for each in self.answer if each.acquired]


def test_a_fetch_looks_only_at_what_may_have_something() -> None:
    bench = Bench(partitions=50)
    session = Session(bench, "m")
    session.fetch()
    assert len(session.looked_at) == 50
    session.fetch()
    assert session.looked_at == []
    bench.logs[7].produce(10)
    bench.logs[31].produce(10)
    session.fetch()
    assert (session.looked_at, session.served) == ([7, 31], [7, 31])
    session.fetch()
    assert (session.looked_at, session.served) == ([7, 31], []), "a fetch has to find them empty first"
    session.fetch()
    assert session.looked_at == []


def test_a_fetch_that_waits_is_answered_by_a_partition_found_empty_long_before() -> None:
    bench = Bench(partitions=3)
    session = Session(bench, "m")
    session.fetch()
    session.fetch()
    session.fetch(at_once=False)
    assert session.answer is None
    bench.logs[2].produce(10)
    assert session.served == [2]


def test_one_record_goes_to_one_member_and_the_others_go_on_waiting() -> None:
    bench = Bench()
    sessions = [Session(bench, member) for member in "abc"]
    for session in sessions:
        session.fetch(at_once=False)
    for expected in range(3):
        bench.logs[0].produce(10)
        assert [session.answer is not None for session in sessions] == [each <= expected for each in range(3)]


def test_what_a_member_gives_back_is_offered_to_one_that_found_nothing() -> None:
    bench = Bench()
    bench.logs[0].produce(10)
    first, second = Session(bench, "a"), Session(bench, "b")
    first.fetch()
    second.fetch()
    second.fetch()
    assert second.looked_at == []
    bench.leader().release("a")
    second.fetch()
    assert second.served == [0]


def test_a_partition_that_left_the_session_or_whose_session_ended_is_not_offered() -> None:
    bench = Bench(partitions=2)
    session = Session(bench, "m")
    session.fetch()
    session.ready.forget([(TOPIC, 0)])
    fetch = session.fetch(at_once=False)
    bench.logs[0].produce(10)
    assert session.answer is None
    fetch.cancel()
    session.ready.close()
    bench.logs[1].produce(10)
    assert not session.ready.unknown
    assert session.ready.walk(0) == []


def test_a_partition_whose_leader_has_ended_is_looked_for_again() -> None:
    bench = Bench()
    session = Session(bench, "m")
    session.fetch()
    before: SharePartition = bench.leader()
    release = bench.leaders.hold("g")
    bench.logs[0].produce(10)
    with pytest.raises(KafkaError, match="NOT_LEADER_OR_FOLLOWER"):
        session.fetch()  # without a leader while its state is replaced
    release()
    session.fetch()
    assert session.served == [0]
    assert bench.leader() is not before


def test_a_fetch_that_waits_hears_of_a_partition_that_is_gone() -> None:
    bench = Bench(partitions=2)
    session = Session(bench, "m")
    session.fetch()
    session.fetch(at_once=False)
    bench.leaders.drop_topic(TOPIC)
    assert session.answer is not None
    assert [each.error.code for each in session.answer if each.error] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ]


def test_a_session_that_waits_keeps_its_leaders_and_one_that_does_not_frees_them() -> None:
    bench = Bench()
    session = Session(bench, "m")
    session.fetch()
    assert not bench.leader().busy
    fetch = session.fetch(at_once=False)
    assert bench.leader().busy
    fetch.cancel()
    assert not bench.leader().busy


def test_a_fetch_begins_where_it_is_told_and_looks_no_further_than_it_has_enough(
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    bench = Bench(partitions=50)
    for log in bench.logs:
        log.produce(1, 1)
    session = Session(bench, "m")
    looks: list[int] = []

    def fetchable(partition: SharePartition) -> bool:
        looks.append(partition.key.partition)
        assert partition.engine is not None
        return partition.engine.next_fetch_offset < partition.readable_end

    monkeypatch.setattr(SharePartition, "fetchable", property(fetchable))
    request.addfinalizer(lambda: call_by_name(False))
    call_by_name(True)
    for records, first, served, looked_at in [
        (1, 7, [7], [7]),
        (1, 48, [48], [48]),
        (3, 48, [48, 49], [48, 49, 0]),
        (2, 48, [0], [48, 49, 0, 1]),
    ]:
        looks.clear()
        session.fetch(records=records, first=first)
        assert (session.served, looks) == (served, looked_at)


def test_a_partition_that_has_another_place_is_served_there() -> None:
    bench = Bench(partitions=3)
    for log in bench.logs:
        log.produce(1, 1, 1)
    session = Session(bench, "m")
    session.fetch(records=1)
    assert session.served == [0]
    session.ready.report([], [], [])
    session.ready.report([(TOPIC, 0)], [], [(TOPIC, 0)])
    session.fetch(records=1)
    assert session.served == [1]
    session.fetch(records=1, first=2)
    assert session.served == [2]
    session.fetch(records=1, first=3)
    assert session.served == [0]


def test_a_partition_with_more_to_come_is_looked_for_again_once_its_leader_has_ended() -> None:
    bench = Bench(partitions=2)
    bench.logs[0].produce(5)
    bench.logs[1].produce(5)
    session = Session(bench, "m")
    session.fetch(records=5)
    assert session.served == [0]
    bench.leaders.drop_topic(TOPIC)
    assert session.ready.unknown == {(TOPIC, 0), (TOPIC, 1)}
    assert session.ready.walk(0) == []


def test_many_partitions_that_load_at_the_same_time_are_looked_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not all of them each time one has loaded: a node that takes over slots loads thousands."""
    bench, known = Bench(partitions=100), list[Callable[[None], object]]()
    reads = 0

    def read_cached(offset: int, max_bytes: int, **how: object) -> None:
        nonlocal reads
        reads += 1

    for log in bench.logs:
        log.produce(1)
        monkeypatch.setattr(log, "when_known", known.append)
        monkeypatch.setattr(log, "read_cached", read_cached)
    session = Session(bench, "m")
    session.fetch(at_once=False)
    for tell in known:
        tell(None)
    bench.world.run()
    assert (len(known), reads) == (100, 100)
