"""Records waiting for a dead-letter record (KIP-1191), in both engines."""

from __future__ import annotations

from typing import Any

from tests.unit.reference.share_partition import (
    ACCEPT,
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    GAP,
    REJECT,
    RELEASE,
    SharePartition,
)

from sharecore.trace.engines import Engine


def with_letters(engine: Engine, **limits: Any) -> SharePartition:
    p = SharePartition(engine, dead_letters=True, **limits)
    assert p.fetch("m", (0, 9)) == [(0, 9, 1)]
    return p


def test_a_rejected_record_waits_for_its_letter(engine: Engine) -> None:
    p = with_letters(engine)
    write = p.begin("m", 0, 3, REJECT)
    assert write.batches() == [(0, 3, ARCHIVING, 1)]
    assert p.letters() == []
    p.commit(write)
    assert p.letters() == [(0, 3, 1, True)]
    assert p.letters() == []
    assert p.window == (0, 9)
    assert p.partition.delivery_complete_count == 0

    assert p.letter_written(1, 2) == [(1, 2, ARCHIVED, 1)]
    assert p.window == (0, 9)
    assert p.partition.delivery_complete_count == 2
    assert p.letter_written(0, 9) == [(0, 0, ARCHIVED, 1), (3, 3, ARCHIVED, 1)]
    assert p.window == (4, 9)
    assert p.letter_written(0, 9) == []


def test_a_gap_has_no_letter(engine: Engine) -> None:
    p = with_letters(engine)
    assert p.acknowledge("m", 0, 2, GAP, ACCEPT, REJECT)[0] == (0, 0, ARCHIVED, 1)
    assert p.letters() == [(2, 2, 1, True)]


def test_records_at_their_delivery_limit_have_letters_however_they_come_back(engine: Engine) -> None:
    p = with_letters(engine, max_delivery_count=1)
    p.acknowledge("m", 0, 1, RELEASE)
    assert p.letters() == [(0, 1, 1, False)]
    p.acknowledge("m", 2, 3, RELEASE, REJECT)
    assert p.letters() == [(2, 2, 1, False), (3, 3, 1, True)]
    p.fetch("n", (10, 14))
    assert p.release("n") == [(10, 14, ARCHIVING, 1)]
    assert p.letters() == [(10, 14, 1, False)]
    assert p.pass_time(30_000) == [(4, 9, ARCHIVING, 1)]
    assert p.letters() == [(4, 9, 1, False)]


def test_letters_of_a_lock_that_ran_out_are_due_however_the_write_ends(engine: Engine) -> None:
    p = with_letters(engine, max_delivery_count=1)
    p.now_ms = 30_000
    write = p.partition.advance(p.now_ms)
    assert write is not None
    assert p.letters() == []
    p.rollback(write)
    assert p.letters() == [(0, 9, 1, False)]


def test_a_failed_write_takes_no_record_to_its_letter(engine: Engine) -> None:
    p = with_letters(engine)
    p.rollback(p.begin("m", 0, 9, REJECT))
    assert p.letters() == []
    assert p.inflight == [(0, 9, ACQUIRED, 1)]
    # the lock expires during the write: the record is at its limit now
    p.partition.configure(max_delivery_count=1)
    write = p.begin("m", 0, 0, REJECT)
    p.pass_time(30_000)
    assert p.letters() == [(1, 9, 1, False)]
    p.rollback(write)
    assert p.letters() == [(0, 0, 1, False)]


def test_a_failed_write_of_the_end_does_not_bring_the_record_back(engine: Engine) -> None:
    p = with_letters(engine)
    p.acknowledge("m", 0, 0, REJECT)
    write = p.partition.finish_archiving(p.now_ms, 0, 0)
    assert write is not None
    assert write.batches() == [(0, 0, ARCHIVED, 1)]
    p.rollback(write)
    assert p.window == (1, 9)


def test_loaded_state_tells_which_letters_are_due(engine: Engine) -> None:
    state = [(0, 4, ARCHIVING, 2), (5, 5, AVAILABLE, 1), (6, 7, ARCHIVING, 5)]
    p = SharePartition(engine, 0, state, dead_letters=False)
    assert p.letters() == [(0, 4, 2, True), (6, 7, 5, False)]
    assert p.partition.next_fetch_offset == 5
    assert p.letter_written(0, 7) == [(0, 4, ARCHIVED, 2), (6, 7, ARCHIVED, 5)]
    assert p.window == (5, 7)


def test_the_log_start_passes_a_record_that_waits(engine: Engine) -> None:
    p = with_letters(engine)
    p.acknowledge("m", 2, 3, REJECT)
    p.move_log_start(3)
    assert p.window == (3, 9)
    assert p.letter_written(2, 3) == [(2, 3, ARCHIVED, 1)]
    p.acknowledge("m", 4, 9, ACCEPT)
    assert p.window == (10, 10)


def test_offsets_without_a_record_leave_those_that_wait(engine: Engine) -> None:
    p = with_letters(engine)
    p.acknowledge("m", 0, 0, REJECT)
    p.archive(0, 9)
    assert p.inflight == [(0, 0, ARCHIVING, 1), (1, 9, ARCHIVED, 1)]
