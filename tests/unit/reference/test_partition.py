"""Common mistakes, in both engines."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.reference.share_partition import (
    ACCEPT,
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    SharePartition,
)

from sharecore.errors import ErrorCode, KafkaError
from sharecore.trace.engines import Engine


def refused(code: ErrorCode, p: SharePartition, member: str, *batches: tuple[int, int, bytes]) -> None:
    before = p.inflight, p.window, p.partition.delivery_complete_count
    with pytest.raises(KafkaError) as error:
        p.partition.acknowledge(p.now_ms, member, list(batches))
    assert error.value.code is code
    p.partition.check()
    assert (p.inflight, p.window, p.partition.delivery_complete_count) == before


@pytest.mark.parametrize(
    ("member", "batch", "code"),
    [
        ("other", (0, 9, b"\1"), ErrorCode.INVALID_RECORD_STATE),
        ("m", (5, 12, b"\1"), ErrorCode.INVALID_REQUEST),
        ("m", (20, 29, b"\1"), ErrorCode.INVALID_REQUEST),
        ("m", (0, 9, b""), ErrorCode.INVALID_REQUEST),
        ("m", (0, 9, b"\1\1"), ErrorCode.INVALID_REQUEST),
        ("m", (9, 0, b"\1"), ErrorCode.INVALID_REQUEST),
        ("m", (0, 9, b"\5"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_refused_acknowledgements_change_nothing(
    engine: Engine, member: str, batch: tuple[int, int, bytes], code: ErrorCode
) -> None:
    p = SharePartition(engine)
    p.fetch("m", (0, 9))
    refused(code, p, member, batch)


def test_a_request_is_all_or_nothing_but_renewals_stand(engine: Engine) -> None:
    p = SharePartition(engine)
    p.fetch("m", (0, 9))
    p.fetch("other", (10, 19))
    p.now_ms = 10000
    refused(
        ErrorCode.INVALID_RECORD_STATE,
        p,
        "m",
        (0, 4, bytes([RENEW])),
        (5, 9, bytes([ACCEPT])),
        (10, 19, bytes([ACCEPT])),
    )
    assert p.pass_time(20000) == [(5, 19, AVAILABLE, 1)]
    assert p.pass_time(10000) == [(0, 4, AVAILABLE, 1)]


def test_renewing_needs_the_groups_leave(engine: Engine) -> None:
    p = SharePartition(engine, renew_enabled=False)
    p.fetch("m", (0, 9))
    refused(ErrorCode.INVALID_RECORD_STATE, p, "m", (0, 9, bytes([RENEW])))
    p.partition.configure(renew_enabled=True)
    assert p.acknowledge("m", 0, 9, RENEW) == []


def test_below_the_start_offset_everything_is_accepted(engine: Engine) -> None:
    p = SharePartition(engine)
    p.fetch("m", (0, 9))
    p.acknowledge("m", 0, 4, ACCEPT)
    assert p.acknowledge("stranger", 0, 4, REJECT) == []
    assert p.acknowledge("m", 0, 6, ACCEPT) == [(5, 6, ACKNOWLEDGED, 1)]


def test_a_transition_that_is_being_written_refuses_others(engine: Engine) -> None:
    p = SharePartition(engine)
    p.fetch("m", (0, 9))
    accepted = p.begin("m", 0, 4, ACCEPT)
    released = p.begin("m", 5, 9, RELEASE)
    assert p.inflight == [(0, 4, ACKNOWLEDGED, 1), (5, 9, AVAILABLE, 1)]
    assert p.window == (0, 9)
    refused(ErrorCode.INVALID_RECORD_STATE, p, "m", (0, 0, bytes([ACCEPT])))
    assert p.fetch("other", (0, 9)) == []
    assert p.release("m") == []

    p.commit(accepted)
    assert p.window == (5, 9)
    p.commit(released)
    assert p.fetch("other", (0, 9)) == [(5, 9, 2)]


def test_a_failed_write_restores_what_was(engine: Engine) -> None:
    p = SharePartition(engine)
    p.fetch("m", (0, 9))
    write = p.begin("m", 0, 3, ACCEPT, RELEASE, REJECT, GAP)
    assert p.partition.delivery_complete_count == 3
    p.rollback(write)
    assert p.inflight == [(0, 9, ACQUIRED, 1)]
    assert p.partition.delivery_complete_count == 0
    assert p.acknowledge("m", 0, 9, ACCEPT) == [(0, 9, ACKNOWLEDGED, 1)]
    assert p.window == (10, 10)


def test_a_lock_that_runs_out_while_a_write_fails_leaves_the_record_available(engine: Engine) -> None:
    p = SharePartition(engine, max_delivery_count=2)
    p.fetch("m", (0, 0), (1, 1), batch_size=1)
    p.acknowledge("m", 1, 1, RELEASE)
    p.fetch("m", (1, 1))
    write = p.begin("m", 0, 1, ACCEPT)
    assert p.pass_time(30000) == []
    p.rollback(write)
    assert p.inflight == [(0, 0, AVAILABLE, 1), (1, 1, ARCHIVED, 2)]


def test_an_expiry_is_seen_at_once_and_moves_the_start_when_written(engine: Engine) -> None:
    p = SharePartition(engine, max_delivery_count=2)
    p.fetch("m", (0, 0))
    p.acknowledge("m", 0, 0, RELEASE)
    p.fetch("m", (0, 0))
    write = p.partition.advance(30000)
    assert write is not None
    assert p.inflight == [(0, 0, ARCHIVED, 2)]
    assert p.window == (0, 0)
    p.rollback(write)
    assert p.window == (1, 1)


def test_a_write_carries_the_start_offset_from_before(engine: Engine) -> None:
    p = SharePartition(engine)
    p.fetch("m", (0, 9))
    write = p.begin("m", 0, 9, ACCEPT)
    assert (write.start_offset, write.batches()) == (0, [(0, 9, ACKNOWLEDGED, 1)])


def test_writes_end_once(engine: Engine) -> None:
    p = SharePartition(engine)
    p.fetch("m", (0, 9))
    write = p.begin("m", 0, 9, ACCEPT)
    p.commit(write)
    with pytest.raises(KafkaError, match="is not open"):
        p.commit(write)
    with pytest.raises(KafkaError, match="is not open"):
        p.rollback(write)


def test_closing_a_session_releases_what_the_member_holds(engine: Engine) -> None:
    p = SharePartition(engine)
    p.fetch("m", (0, 4))
    p.fetch("other", (5, 9))
    p.acknowledge("m", 2, 2, ACCEPT)
    assert p.release("m") == [(0, 1, AVAILABLE, 1), (3, 4, AVAILABLE, 1)]
    assert p.release("m") == []
    assert p.partition.next_fetch_offset == 0


def test_near_the_limit_records_come_in_smaller_company(engine: Engine) -> None:
    p = SharePartition(engine, max_delivery_count=5)
    for count in (1, 2, 3):
        assert p.fetch("m", (0, 31)) == [(0, 31, count)]
        p.release("m")
    assert p.fetch("m", (0, 31)) == [(0, 15, 4)]
    p.release("m")
    assert p.fetch("m", (0, 31)) == [(0, 0, 5)]
    assert p.release("m") == [(0, 0, ARCHIVED, 5)]
    assert p.fetch("m", (0, 31)) == [(1, 1, 5)]


def test_the_window_is_full_by_offsets_up_to_a_record_batchs_end(engine: Engine) -> None:
    p = SharePartition(engine, max_inflight=10)
    assert p.fetch("m", (0, 7)) == [(0, 7, 1)]
    assert p.fetch("m", (20, 24), (25, 29)) == [(20, 24, 1)]
    assert not p.partition.can_acquire
    assert p.fetch("m", (30, 34)) == []
    p.acknowledge("m", 22, 22, RELEASE)
    assert p.partition.can_acquire
    assert p.fetch("m", (20, 24), (25, 29)) == [(22, 22, 2)]


def test_record_limit_leaves_the_rest_of_the_record_batch_available(engine: Engine) -> None:
    p = SharePartition(engine)
    assert p.fetch("m", (0, 9), max_fetch_records=3, record_limit=True) == [(0, 2, 1)]
    assert p.inflight == [(0, 2, ACQUIRED, 1), (3, 9, AVAILABLE, 0)]
    assert p.partition.next_fetch_offset == 3
    assert p.fetch("other", (0, 9), max_fetch_records=3, record_limit=True) == [(3, 5, 1)]


def test_batch_size_cuts_between_record_batches(engine: Engine) -> None:
    p = SharePartition(engine)
    assert p.fetch("m", (0, 3), (4, 7), (8, 11), (15, 15), batch_size=8) == [(0, 7, 1), (8, 15, 1)]


def test_vanished_records_are_archived(engine: Engine) -> None:
    p = SharePartition(engine)
    p.fetch("m", (0, 9))
    p.release("m")
    assert p.fetch("m", (6, 9), fetch_offset=0) == [(6, 9, 2)]
    assert p.inflight == [(0, 5, ARCHIVED, 1), (6, 9, ACQUIRED, 2)]
    p.acknowledge("m", 6, 9, ACCEPT)
    assert p.window == (10, 10)


def test_gaps_in_loaded_state_are_records_that_nobody_acquired(engine: Engine) -> None:
    p = SharePartition(engine, 0, [(5, 9, ACKNOWLEDGED, 1), (12, 14, AVAILABLE, 2)])
    assert p.partition.next_fetch_offset == 0
    assert p.partition.delivery_complete_count == 5
    assert p.fetch("m", (0, 14)) == [(0, 4, 1), (10, 11, 1), (12, 14, 3)]
    assert p.partition.next_fetch_offset == 15


def test_gaps_found_later_are_offsets_that_the_log_lacks(engine: Engine) -> None:
    p = SharePartition(engine)
    p.fetch("m", (0, 4))
    p.fetch("m", (10, 14))
    assert p.partition.next_fetch_offset == 15
    assert p.acknowledge("m", 0, 12, ACCEPT) == [(0, 4, ACKNOWLEDGED, 1), (10, 12, ACKNOWLEDGED, 1)]
    assert p.window == (13, 14)


def test_the_log_start_archives_what_is_available_and_leaves_leases(engine: Engine) -> None:
    p = SharePartition(engine)
    p.fetch("m", (0, 9))
    p.acknowledge("m", 0, 2, RELEASE)
    p.move_log_start(5)
    assert p.window == (5, 9)
    assert p.inflight == [(5, 9, ACQUIRED, 1)]
    assert p.release("m") == [(3, 4, ARCHIVED, 1), (5, 9, AVAILABLE, 1)]
    p.move_log_start(3)
    assert p.window == (5, 9)
    p.move_log_start(20)
    assert p.window == (20, 20)
    assert p.partition.next_fetch_offset == 20


def test_aborted_records_are_archived_without_a_write(engine: Engine) -> None:
    p = SharePartition(engine)
    p.fetch("m", (0, 4), (5, 9))
    p.archive(0, 4)
    assert p.window == (5, 9)
    assert p.acknowledge("m", 0, 9, ACCEPT) == [(5, 9, ACKNOWLEDGED, 1)]


def test_a_hole_before_what_was_settled_is_passed(engine: Engine) -> None:
    settled = [(26, 40, ARCHIVED, 3), (41, 139, ACKNOWLEDGED, 1)]
    p = SharePartition(engine, 16, settled, max_inflight=100)
    assert p.fetch("m", (150, 155)) == []
    p.pass_hole(16, 149)
    assert p.window == (140, 140)
    assert p.partition.delivery_complete_count == 0
    assert p.fetch("m", (150, 155)) == [(150, 155, 1)]
    assert p.acknowledge("m", 150, 155, ACCEPT) == [(150, 155, ACKNOWLEDGED, 1)]
    assert p.window == (156, 156)


def test_a_window_of_records_that_have_left_the_log_is_passed(engine: Engine) -> None:
    p = SharePartition(engine, 41, [(41, 140, AVAILABLE, 1)], max_inflight=100)
    p.pass_hole(41, 149)
    assert p.window == (141, 141)
    assert p.fetch("m", (150, 155)) == [(150, 155, 1)]


def test_a_hole_is_passed_up_to_what_may_hold_unread_records(engine: Engine) -> None:
    p = SharePartition(engine, 0, [(5, 9, AVAILABLE, 1), (20, 29, ACKNOWLEDGED, 1)])
    p.pass_hole(0, 4)
    assert p.window == (5, 29)
    assert p.partition.next_fetch_offset == 5
    assert p.fetch("m", (5, 9)) == [(5, 9, 2)]
    assert p.partition.next_fetch_offset == 10
    p.acknowledge("m", 5, 9, ACCEPT)
    p.pass_hole(10, 14)
    assert p.window == (15, 29)
    assert p.fetch("m", (15, 19)) == [(15, 19, 1)]


def test_what_is_leased_in_a_hole_stays_its_members(engine: Engine) -> None:
    p = SharePartition(engine)
    p.fetch("m", (0, 4), (5, 9))
    p.acknowledge("m", 5, 9, RELEASE)
    p.pass_hole(0, 9)
    assert p.inflight == [(0, 4, ACQUIRED, 1), (5, 9, ARCHIVED, 1)]
    p.acknowledge("m", 0, 4, ACCEPT)
    assert p.window == (10, 10)


def test_archiving_what_may_follow_unread_offsets_keeps_it_in_the_window(engine: Engine) -> None:
    p = SharePartition(engine, 0, [(0, 3, AVAILABLE, 0), (8, 13, AVAILABLE, 0)])
    p.move_log_start(13)
    p.archive(13, 13)
    assert p.window == (13, 13)
    assert p.inflight == [(13, 13, ARCHIVED, 0)]
    assert p.partition.delivery_complete_count == 1


def test_a_record_batch_that_begins_below_the_log_start_leaves_nothing_there(engine: Engine) -> None:
    p = SharePartition(engine)
    p.fetch("m", (0, 9))
    p.move_log_start(15)
    assert p.fetch("m", (12, 19), max_fetch_records=2, record_limit=True) == [(12, 13, 1)]
    assert p.partition.next_fetch_offset == 15
    assert p.inflight == [(15, 19, AVAILABLE, 0)]


def test_the_next_deadline_is_that_of_the_oldest_lock(engine: Engine) -> None:
    p = SharePartition(engine)
    assert p.partition.next_deadline_ms is None
    p.fetch("m", (0, 4))
    p.now_ms = 1000
    p.fetch("m", (5, 9))
    assert p.partition.next_deadline_ms == 30000
    p.acknowledge("m", 0, 4, RENEW)
    assert p.partition.next_deadline_ms == 31000
    p.acknowledge("m", 0, 9, ACCEPT)
    assert p.partition.next_deadline_ms is None


def test_limits_can_change(engine: Engine) -> None:
    p = SharePartition(engine, max_inflight=10)
    p.fetch("m", (0, 9))
    assert not p.partition.can_acquire
    p.partition.configure(max_inflight=20, lock_ms=1000, max_delivery_count=2)
    assert p.fetch("m", (10, 19)) == [(10, 19, 1)]
    assert p.pass_time(1000) == [(10, 19, AVAILABLE, 1)]
    assert p.pass_time(29000) == [(0, 9, AVAILABLE, 1)]
    p.fetch("m", (0, 19))
    assert p.release("m") == [(0, 19, ARCHIVED, 2)]


@pytest.mark.parametrize("limit", ["max_delivery_count", "max_inflight", "lock_ms"])
def test_limits_are_positive(engine: Engine, limit: str) -> None:
    limits: dict[str, Any] = {limit: 0}
    with pytest.raises(ValueError, match="must be positive"):
        SharePartition(engine, 0, [], **limits)
    with pytest.raises(ValueError, match="must be positive"):
        SharePartition(engine).partition.configure(**limits)


@pytest.mark.parametrize(
    "state",
    [
        [(5, 9, AVAILABLE, 1), (9, 12, AVAILABLE, 1)],
        [(0, 3, AVAILABLE, 1)],
        [(9, 8, AVAILABLE, 1)],
        [(5, 9, ACQUIRED, 1)],
    ],
)
def test_state_that_cannot_be_is_refused(engine: Engine, state: list[tuple[int, int, int, int]]) -> None:
    with pytest.raises(KafkaError, match="state batch"):
        SharePartition(engine, 5, state)
