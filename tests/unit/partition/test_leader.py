from __future__ import annotations

from typing import Any, cast

import pytest
from tests.unit.partition.bench import ACCEPT, EARLIEST, LIMITS, REJECT, RELEASE, Bench
from tests.unit.partition.logs import TOPIC

from sharecore.config import GroupConfig
from sharecore.errors import ErrorCode, KafkaError
from sharecore.persister import SharePartitionKey


def test_a_fetch_leases_whole_record_batches_and_returns_them() -> None:
    bench = Bench()
    bench.logs[0].produce(10, 10, 10)
    bench.fetch("m")
    (result,) = bench.answers["m"]
    assert result.acquired == [(0, 29, 1)]
    assert len(result.records) == 300
    assert bench.take("n") == []


def test_a_fetch_waits_and_is_answered_when_data_arrives() -> None:
    bench = Bench()
    bench.fetch("m")
    bench.world.run(499)
    assert bench.answers == {}
    bench.logs[0].produce(3)
    assert bench.answers["m"][0].acquired == [(0, 2, 1)]
    bench.world.run(1000)
    assert len(bench.answers) == 1


def test_a_fetch_that_finds_nothing_is_answered_when_its_time_is_over() -> None:
    bench = Bench()
    bench.fetch("m")
    bench.world.run(500)
    assert bench.answers == {"m": []}
    assert not bench.leader().busy


def test_a_fetch_that_was_cancelled_takes_nothing() -> None:
    bench = Bench()
    bench.fetch("m").cancel()
    bench.logs[0].produce(3)
    assert bench.answers == {}
    assert bench.take("n") == [(0, 2, 1)]


def test_fetches_that_wait_are_served_in_turn_and_only_while_there_is_something() -> None:
    bench = Bench()
    few = LIMITS._replace(max_records=10)
    for member in "abc":
        bench.fetch(member, few)
    bench.logs[0].produce(10, 10)
    assert sorted(bench.answers) == ["a", "b"]
    assert bench.answers["a"][0].acquired == [(0, 9, 1)]
    assert bench.answers["b"][0].acquired == [(10, 19, 1)]


def test_a_fetch_waits_for_as_many_bytes_as_it_asks_for() -> None:
    bench = Bench(partitions=2)
    bench.fetch("m", LIMITS._replace(min_bytes=300))
    bench.logs[0].produce(1)
    bench.logs[1].produce(1)
    assert bench.answers == {}
    engine = bench.engine()
    assert engine.next_deadline_ms is None, "nothing is leased while the fetch waits"
    bench.logs[0].produce(1)
    assert [len(result.records) for result in bench.answers["m"]] == [200, 100]


def test_what_little_there_is_comes_when_the_time_is_over() -> None:
    bench = Bench()
    bench.fetch("m", LIMITS._replace(min_bytes=300))
    bench.logs[0].produce(1)
    bench.world.run(500)
    assert bench.answers["m"][0].acquired == [(0, 0, 1)]


def test_the_limits_hold_over_all_partitions() -> None:
    bench = Bench(partitions=3)
    for log in bench.logs:
        log.produce(*[10] * 10)
    assert bench.take("m", LIMITS._replace(max_records=150), order=[2, 0, 1]) == [(0, 99, 1), (0, 49, 1)]
    few = bench.take("n", LIMITS._replace(max_bytes=350))
    assert few == [(50, 59, 1), (0, 9, 1)], "each of the two that have something gets half of the bytes"
    assert bench.take("o", LIMITS._replace(max_bytes=1)) == [(60, 69, 1)], (
        "the first has one batch all the same"
    )


def test_no_more_is_read_than_is_wanted() -> None:
    bench = Bench()
    bench.logs[0].produce(*[1] * 5000)
    assert bench.take("m", LIMITS._replace(max_bytes=50_000_000, max_records=100)) == [(0, 99, 1)]
    assert bench.logs[0].bytes_read <= 10_000


def test_the_records_returned_are_those_that_were_acquired() -> None:
    bench = Bench()
    bench.logs[0].produce(*[10] * 10)
    assert bench.take("m") == [(0, 99, 1)]
    bench.settle("m", (20, 29, RELEASE), (60, 64, RELEASE))
    bench.fetch("n")
    (result,) = bench.answers["n"]
    assert result.acquired == [(20, 29, 2), (60, 64, 2)]
    assert len(result.records) == 200


def test_released_records_wake_a_fetch_that_waits() -> None:
    bench = Bench()
    bench.logs[0].produce(10)
    bench.take("m")
    bench.fetch("n")
    bench.settle("m", (3, 4, RELEASE))
    assert bench.answers["n"][0].acquired == [(3, 4, 2)]
    assert bench.ends == [None]


def test_room_in_the_window_wakes_a_fetch_that_waits() -> None:
    bench = Bench(GroupConfig(share_auto_offset_reset="earliest", share_partition_max_record_locks=100))
    bench.logs[0].produce(*[100] * 3)
    assert bench.take("m") == [(0, 99, 1)]
    bench.fetch("n")
    assert bench.answers == {}
    bench.settle("m", (0, 99, ACCEPT))
    assert bench.answers["n"][0].acquired == [(100, 199, 1)]


def test_what_was_leased_is_delivered_though_a_later_read_fails() -> None:
    bench = Bench()
    bench.logs[0].produce(*[10] * 3)
    taken = [bench.take("m", LIMITS._replace(max_records=10)) for _ in range(3)]
    assert taken == [[(0, 9, 1)], [(10, 19, 1)], [(20, 29, 1)]]
    bench.settle("m", (0, 9, RELEASE), (20, 29, RELEASE))
    bench.logs[0].reads_until_failure = 1
    assert bench.take("n", LIMITS._replace(max_records=15)) == [(0, 9, 2)]
    bench.logs[0].reads_until_failure = None
    bench.settle("n", (0, 9, ACCEPT))
    assert bench.ends == [None, None]


def test_what_was_acquired_together_and_given_back_comes_as_a_whole() -> None:
    bench = Bench()
    bench.logs[0].produce(*[10] * 3)
    assert bench.take("m") == [(0, 29, 1)]
    bench.settle("m", (0, 29, RELEASE))
    assert bench.take("n", LIMITS._replace(max_records=1)) == [(0, 29, 2)]
    bench.settle("n", (0, 29, RELEASE))
    assert bench.take("o", LIMITS._replace(max_records=1, record_limit=True)) == [(0, 0, 3)]


def test_nothing_is_read_behind_what_is_near_its_delivery_limit() -> None:
    bench = Bench()
    one, two = LIMITS._replace(max_records=1), LIMITS._replace(max_records=2)
    bench.logs[0].produce(*[10] * 2)
    assert bench.take("m", one) == [(0, 9, 1)]
    bench.settle("m", (0, 2, ACCEPT), (3, 3, RELEASE), (4, 9, ACCEPT))
    for delivery_count in (2, 3):
        assert bench.take("m", one) == [(3, 3, delivery_count)]
        bench.settle("m", (3, 3, RELEASE))
    assert bench.take("m", two) == [(3, 3, 4)]
    assert bench.take("n", two) == [(10, 19, 1)]


def test_what_is_near_its_delivery_limit_does_not_come_after_other_records() -> None:
    bench = Bench()
    one, two = LIMITS._replace(max_records=1), LIMITS._replace(max_records=2)
    bench.logs[0].produce(*[10] * 3)
    assert [bench.take(member, one) for member in "abc"] == [[(0, 9, 1)], [(10, 19, 1)], [(20, 29, 1)]]
    bench.settle("c", (20, 29, RELEASE))
    for delivery_count in (2, 3):
        assert bench.take("c", one) == [(20, 29, delivery_count)]
        bench.settle("c", (20, 29, RELEASE))
    bench.settle("a", (0, 8, ACCEPT), (9, 9, RELEASE))
    assert [bench.take("n", two) for _ in range(2)] == [[(9, 9, 2)], [(20, 24, 4)]]


def test_a_log_that_cannot_be_read_is_told_and_leases_nothing() -> None:
    bench = Bench(GroupConfig(share_auto_offset_reset="earliest", share_isolation_level="read_committed"))
    bench.logs[0].produce(10)
    bench.logs[0].reads_until_failure = 0
    bench.fetch("m", LIMITS._replace(max_wait_ms=0))
    assert [each.error and each.error.code for each in bench.answers["m"]] == [ErrorCode.KAFKA_STORAGE_ERROR]
    bench.logs[0].reads_until_failure = None
    cast(Any, bench.logs[0]).aborted = _unreadable
    bench.fetch("m", LIMITS._replace(max_wait_ms=0))
    assert [each.error and each.error.code for each in bench.answers["m"]] == [ErrorCode.KAFKA_STORAGE_ERROR]
    engine = bench.engine()
    assert engine.next_deadline_ms is None, "a lease that nobody knows of would run until its lock ends"


def _unreadable(first: int, end: int) -> list[tuple[int, int]]:
    raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "a bad sector")


def test_a_log_that_cannot_be_read_does_not_keep_the_others_from_being_read() -> None:
    bench = Bench(partitions=2)
    bench.logs[0].produce(1)
    bench.logs[1].produce(1, 1)
    bench.logs[0].reads_until_failure = 0
    bench.fetch("m", LIMITS._replace(min_bytes=200))
    failed, read = bench.answers["m"]
    assert failed.error is not None
    assert failed.error.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert read.acquired == [(0, 1, 1)]


def test_a_member_whose_session_ends_gives_back_what_it_holds() -> None:
    bench = Bench()
    bench.logs[0].produce(10)
    bench.take("m")
    bench.fetch("n")
    bench.leaders.release("g", "m", [(TOPIC, 0), (TOPIC, 5)])
    assert bench.answers["n"][0].acquired == [(0, 9, 2)]


def test_an_acknowledgement_is_answered_when_it_is_durable() -> None:
    bench = Bench()
    bench.logs[0].produce(10)
    bench.take("m")
    bench.persister.hold = True
    bench.settle("m", (0, 9, ACCEPT))
    assert bench.ends == []
    engine = bench.engine()
    assert engine.start_offset == 0
    bench.persister.held.pop()()
    assert bench.ends == [None]
    assert engine.start_offset == 10


def test_an_acknowledgement_that_cannot_be_written_leaves_the_lease() -> None:
    bench = Bench()
    bench.logs[0].produce(10)
    bench.take("m")
    bench.persister.fail_next = 1
    bench.settle("m", (0, 9, ACCEPT))
    assert [error and error.code for error in bench.ends] == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert bench.take("n") == []
    bench.settle("m", (0, 9, ACCEPT))
    assert bench.ends[1:] == [None]


def test_a_leader_that_was_fenced_loads_the_state_anew() -> None:
    bench = Bench()
    bench.logs[0].produce(10)
    bench.take("m")
    bench.fetch("n")
    bench.persister.initialize(SharePartitionKey("g", TOPIC, 0), 9, 4, lambda error: None)
    bench.settle("m", (0, 9, ACCEPT))
    assert [error and error.code for error in bench.ends] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert bench.answers["n"][0].error is not None
    assert bench.answers["n"][0].error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert bench.take("n") == [(4, 9, 1)]


def test_a_restart_goes_on_where_the_group_was() -> None:
    bench = Bench()
    bench.logs[0].produce(10, 10)
    bench.take("m")
    bench.settle("m", (0, 4, ACCEPT), (7, 8, REJECT), (10, 10, RELEASE))
    bench.leaders = bench.fresh()
    assert bench.take("n") == [(5, 6, 1), (9, 9, 1), (10, 10, 2), (11, 19, 1)]


@pytest.mark.parametrize(("reset", "first"), [("latest", 30), ("earliest", 10), ("by_duration:PT1S", 20)])
def test_the_reset_policy_says_where_a_share_partition_begins(reset: str, first: int) -> None:
    bench = Bench(GroupConfig(share_auto_offset_reset=reset))
    bench.world.ms = 1020.0  # the fake log uses offsets as timestamps
    bench.logs[0].produce(10, 10, 10)
    bench.logs[0].start_offset = 10
    assert bench.take("m") == ([(first, 29, 1)] if first < 30 else [])
    bench.logs[0].produce(5)
    assert bench.take("n") == [(30, 34, 1)]


def test_a_share_partition_begins_where_the_settings_say_that_were_heard_of_last() -> None:
    bench = Bench(GroupConfig(share_auto_offset_reset="latest"))
    bench.unconfigured = []
    bench.logs[0].produce(10, 10)
    assert bench.take("m") == []
    bench.config = GroupConfig(share_auto_offset_reset="earliest")
    bench.leaders.reconfigure("g")
    bench.unconfigured.pop()(None)
    assert bench.take("m") == [(0, 19, 1)]
    # started work continues without it
    bench.settle("m", (0, 19, ACCEPT))
    bench.logs[0].produce(5)
    bench.leaders = bench.fresh()
    assert bench.take("n") == [(20, 24, 1)]
    assert bench.unconfigured == []


def test_a_share_partition_does_not_begin_without_the_settings_of_its_group() -> None:
    bench = Bench(GroupConfig(share_auto_offset_reset="latest"))
    bench.unconfigured = []
    bench.logs[0].produce(10)
    bench.fetch("m")
    bench.unconfigured.pop()(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "nobody knows"))
    bench.world.run(600)
    (result,) = bench.answers["m"]
    assert isinstance(result.error, KafkaError)
    assert result.error.code is ErrorCode.KAFKA_STORAGE_ERROR
    # requested again with the next request
    bench.config = EARLIEST
    bench.leaders.reconfigure("g")
    bench.fetch("m")
    bench.unconfigured.pop()(None)
    bench.world.run(1)
    assert bench.answers["m"][0].acquired == [(0, 9, 1)]


def test_the_reset_policy_is_not_applied_again_once_records_are_out() -> None:
    bench = Bench(GroupConfig(share_auto_offset_reset="latest"))
    bench.take("m")
    bench.logs[0].produce(10)
    assert bench.take("m") == [(0, 9, 1)]
    bench.logs[0].produce(10)
    bench.leaders = bench.fresh()
    assert bench.take("n") == [(0, 19, 1)]


def test_a_hole_that_compaction_left_in_front_of_a_full_window_is_passed() -> None:
    bench = Bench(GroupConfig(share_auto_offset_reset="earliest", share_partition_max_record_locks=100))
    log = bench.logs[0]
    log.produce(10, 90)
    assert bench.take("m") == [(0, 99, 1)]
    bench.settle("m", (10, 99, ACCEPT))
    bench.leaders = bench.fresh()
    log.produce(20)
    del log._batches[:2]
    assert bench.take("n", LIMITS._replace(max_records=20)) == [(100, 119, 1)]
    bench.settle("n", (100, 119, ACCEPT))
    engine = bench.engine()
    assert engine.start_offset == 120


def test_settled_records_behind_a_hole_are_read_over() -> None:
    bench = Bench()
    log = bench.logs[0]
    log.produce(10, 10, 10)
    bench.take("m")
    bench.settle("m", (10, 19, ACCEPT))
    bench.leaders = bench.fresh()
    del log._batches[0]
    assert bench.take("n", LIMITS._replace(max_records=5)) == [(20, 29, 1)]


def test_deleted_records_are_passed_over() -> None:
    bench = Bench()
    bench.logs[0].produce(10, 10)
    bench.take("m", LIMITS._replace(max_records=10))
    bench.logs[0].delete_records(10)
    engine = bench.engine()
    assert engine.start_offset == 10
    assert bench.take("n") == [(10, 19, 1)]


def test_a_deleted_topic_ends_the_fetches_that_wait() -> None:
    bench = Bench()
    bench.fetch("m")
    bench.leaders.drop_topic(TOPIC)
    error = bench.answers["m"][0].error
    assert error is not None
    assert error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert len(bench.leaders) == 0


def test_a_changed_configuration_reaches_the_leader() -> None:
    bench = Bench()
    bench.logs[0].produce(10, 10)
    bench.take("m", LIMITS._replace(max_records=10))
    bench.config = GroupConfig(share_auto_offset_reset="earliest", share_record_lock_duration_ms=5000)
    bench.leaders.reconfigure("g")
    bench.take("m")
    bench.world.run(5001)
    assert bench.take("n") == [(10, 19, 2)]


def test_idle_leaders_are_freed_and_busy_ones_kept() -> None:
    bench = Bench(partitions=2)
    bench.logs[0].produce(10)
    bench.take("m")
    bench.leader(1).load()
    bench.world.run(10_000)
    assert bench.leaders.drop_idle(5000) == 1
    assert bench.leaders.peek("g", TOPIC, 0) is not None
    bench.world.run(300_000)
    assert bench.leaders.drop_idle() == 1


def test_state_that_is_not_there_is_told_to_the_client_and_asked_for_again() -> None:
    bench = Bench()
    key = SharePartitionKey("g", TOPIC, 0)
    bench.persister.delete(key, lambda error: None)
    bench.fetch("m")
    assert bench.answers == {}, "a client that is told at once would ask again at once"
    bench.world.run(500)
    error = bench.answers["m"][0].error
    assert error is not None
    assert error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert set(bench.stateless) == {key}, "whoever makes state hears of it"
    bench.persister.initialize(key, 0, 0, lambda error: None)
    bench.logs[0].produce(3)
    assert bench.take("m") == [(0, 2, 1)]


def test_records_of_aborted_transactions_are_delivered_to_nobody() -> None:
    bench = Bench(GroupConfig(share_auto_offset_reset="earliest", share_isolation_level="read_committed"))
    log = bench.logs[0]
    log.produce(5)
    log.produce(5, attributes=0x10, producer_id=7)
    log.produce(1, attributes=0x30, producer_id=7)
    log.produce(5)
    log.transactions = [(7, 5)]
    log.last_stable_offset = 11
    bench.fetch("m")
    (result,) = bench.answers["m"]
    assert result.acquired == [(0, 4, 1), (10, 10, 1)]
    assert len(result.records) == 200
    log.last_stable_offset = 16
    assert bench.take("n") == [(11, 15, 1)]
    bench.settle("m", (0, 4, ACCEPT), (10, 10, 0))
    engine = bench.engine()
    assert engine.start_offset == 11
    assert bench.ends == [None]


def test_a_partition_whose_engine_failed_is_loaded_anew_and_takes_no_other_with_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench(partitions=2)
    for log in bench.logs:
        log.produce(10)
    bench.fetch("m", LIMITS._replace(max_records=4, record_limit=True))
    failed = bench.leader()
    assert failed.engine is not None
    with pytest.raises(KafkaError):
        failed.engine.fail()
    assert bench.take("n") == [(0, 9, 1)], "the other one goes on"
    assert "the engine of" in caplog.text
    assert bench.leader() is not failed
    assert bench.take("n") == [(0, 9, 1)], "its leases ended with it"
