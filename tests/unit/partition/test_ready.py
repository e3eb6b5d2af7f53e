"""The partitions that a session's fetches look at: those that may have something, and no others."""

from __future__ import annotations

from tests.unit.partition.logs import TOPIC
from tests.unit.partition.test_leader import LIMITS, Bench

from sharecore.errors import ErrorCode
from sharecore.partition import PartitionFetch, ShareFetch, SharePartition
from sharecore.partition.ready import ReadySet, SharePartitionId

AT_ONCE = LIMITS._replace(max_wait_ms=0)


class Session:
    """A member whose fetches share a ready set, as the broker has them."""

    def __init__(self, bench: Bench, member: str) -> None:
        self.bench = bench
        self.member = member
        self.partitions: set[SharePartitionId] = {(TOPIC, index) for index in range(len(bench.logs))}
        self.ready = ReadySet(self.partitions)
        self.ready.add(self.partitions)
        self.looked_at: list[int] = []
        self.answer: list[PartitionFetch] | None = None

    def fetch(self, *, at_once: bool = True) -> ShareFetch:
        bench = self.bench
        leaders = [bench.leader(index) for _, index in sorted(self.ready.ids)]
        self.looked_at = [leader.key.partition for leader in leaders]
        limits = AT_ONCE if at_once else LIMITS
        call_later = bench.world.call_later
        self.answer = None
        fetch = ShareFetch(self.member, leaders, self.ready, limits, call_later, self.ended)
        answer = fetch.begin()
        if answer is not None:
            self.ended(answer)
        return fetch

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
    session.partitions.discard((TOPIC, 0))
    session.ready.forget([(TOPIC, 0)])
    fetch = session.fetch(at_once=False)
    bench.logs[0].produce(10)
    assert session.answer is None
    fetch.cancel()
    session.ready.close()
    bench.logs[1].produce(10)
    assert session.ready.ids == set()


def test_a_partition_whose_leader_has_ended_is_looked_for_again() -> None:
    bench = Bench()
    session = Session(bench, "m")
    session.fetch()
    before: SharePartition = bench.leader()
    bench.leaders.drop_group("g")
    bench.logs[0].produce(10)
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
