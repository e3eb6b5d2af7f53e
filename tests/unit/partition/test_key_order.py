"""Records of each key are delivered in order, to one member at a time (share.ordering=key)."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from tests.harness.batches import keyed_batch
from tests.unit.partition.bench import ACCEPT, EARLIEST, LIMITS, REJECT, RELEASE, RENEW, Bench

from sharecore._core import Partition, Rules, decode_records
from sharecore.config import GroupConfig

BY_KEY = replace(EARLIEST, share_ordering="key")
LONG = LIMITS._replace(max_wait_ms=600_000)
LOCK_MS = EARLIEST.share_record_lock_duration_ms


def by_key(**settings: Any) -> GroupConfig:
    return replace(BY_KEY, **settings)


def change(bench: Bench, **settings: Any) -> None:
    bench.config = replace(bench.config, **settings)
    bench.leaders.reconfigure("g")


def offsets(taken: list[tuple[int, int, int]]) -> list[int]:
    return [offset for first, last, _ in taken for offset in range(first, last + 1)]


def test_the_first_record_of_each_key_is_out_and_the_next_comes_when_it_is_settled() -> None:
    bench = Bench(BY_KEY)
    bench.logs[0].produce_keyed(b"a", b"a", b"b", None, b"b", None, b"c")
    assert offsets(bench.take("m")) == [0, 2, 3, 5, 6], "records without a key have no order"
    assert bench.take("n") == []
    bench.fetch("n", LONG)
    bench.settle("m", (0, 0, RENEW))
    bench.settle("m", (2, 2, REJECT))
    assert offsets(bench.answers.pop("n")[0].acquired) == [4]
    bench.settle("m", (0, 0, ACCEPT))
    assert offsets(bench.take("m")) == [1]


def test_an_empty_key_is_a_key() -> None:
    bench = Bench(BY_KEY)
    bench.logs[0].produce_keyed(b"", b"", None, None)
    assert offsets(bench.take("m")) == [0, 2, 3]


def test_a_record_that_was_given_back_comes_before_later_ones_of_its_key() -> None:
    bench = Bench(BY_KEY)
    bench.logs[0].produce_keyed(b"a", b"a")
    bench.take("m")
    bench.settle("m", (0, 0, RELEASE))
    assert bench.take("n") == [(0, 0, 2)]
    bench.world.run(LOCK_MS)
    assert bench.take("m") == [(0, 0, 3)]
    bench.leader().release("m")
    assert bench.take("n") == [(0, 0, 4)]
    bench.settle("n", (0, 0, ACCEPT))
    assert bench.take("m") == [(1, 1, 1)]


def test_a_run_is_with_one_member_and_does_not_go_on_in_its_next_fetch() -> None:
    bench = Bench(by_key(share_ordering_run_max=3))
    bench.logs[0].produce_keyed(b"a", b"b", b"a", b"a", b"a")
    assert offsets(bench.take("m", LIMITS._replace(max_records=3))) == [0, 1, 2]
    assert bench.take("m") == []
    bench.settle("m", (0, 0, ACCEPT))
    assert bench.take("n") == [], "one of the run is still held"
    bench.settle("m", (2, 2, RELEASE))
    assert offsets(bench.take("n")) == [2, 3, 4]


def test_a_record_that_waits_for_its_next_delivery_holds_back_its_key_and_nobody_else() -> None:
    bench = Bench(
        by_key(share_retry_backoff_ms=1000, share_retry_backoff_jitter=0.0, share_ordering_run_max=5)
    )
    bench.logs[0].produce_keyed(b"a", b"a", b"b", b"b")
    bench.take("m", LIMITS._replace(max_records=1))
    bench.settle("m", (0, 0, RELEASE))
    assert offsets(bench.take("n")) == [2, 3]
    bench.world.run(999)
    assert bench.take("n") == []
    bench.world.run(1)
    assert bench.take("n") == [(0, 0, 2), (1, 1, 1)]


def test_keys_go_across_record_batches_and_the_window_takes_in_more_while_one_key_is_held_up() -> None:
    bench = Bench(BY_KEY)
    for number in range(30):
        bench.logs[0].produce_keyed(b"hot", b"hot", f"other {number}".encode())
    taken = offsets(bench.take("m"))
    while more := offsets(bench.take("m")):
        taken += more
    assert taken == [0, *range(2, 90, 3)]
    found = bench.engine().keys(1)
    assert found is not None
    behind, keys, largest = found
    assert (behind, keys, [(records, first) for _, records, first in largest]) == (59, 31, [(60, 0)])


def test_a_window_that_is_full_takes_nothing_more_and_gives_out_what_is_in_it() -> None:
    bench = Bench(by_key(share_partition_max_waiting=1000))
    for _ in range(800):
        bench.logs[0].produce_keyed(b"hot", b"x")
    bench.logs[0].produce_keyed(b"new")
    assert offsets(bench.take("m"))[:2] == [0, 1]
    while bench.take("m"):
        pass
    full = bench.engine().waiting()[1]
    assert full
    assert bench.engine().end_offset < 1600
    for number in range(0, 1600, 2):
        bench.settle("m", (number, number, ACCEPT), (number + 1, number + 1, ACCEPT))
        while bench.take("m"):
            pass
    assert bench.engine().end_offset >= 1600


def test_neighbors_of_one_key_are_one_unit_of_the_window() -> None:
    bench = Bench(by_key(share_partition_max_waiting=1000))
    for _ in range(30):
        bench.logs[0].produce_keyed(*[b"burst"] * 200)
    bench.logs[0].produce_keyed(b"new")
    assert offsets(bench.take("m")) == [0, 6000]


def test_order_holds_over_a_restart() -> None:
    bench = Bench(by_key(share_ordering_run_max=2))
    bench.logs[0].produce_keyed(b"a", b"a", b"b", b"a", b"b", b"b")
    assert offsets(bench.take("m")) == [0, 1, 2, 4]
    bench.settle("m", (0, 0, RELEASE), (1, 1, ACCEPT), (4, 4, ACCEPT))
    bench.leaders = bench.fresh()
    change(bench, share_ordering_run_max=1)
    assert bench.take("n") == [(0, 0, 2), (2, 2, 1)]
    bench.settle("n", (0, 0, ACCEPT), (2, 2, ACCEPT))
    assert offsets(bench.take("n")) == [3, 5]


def test_the_order_may_be_turned_on_and_off_while_records_are_out() -> None:
    bench = Bench()
    bench.logs[0].produce_keyed(b"a", b"b", b"a", b"b")
    assert offsets(bench.take("m", LIMITS._replace(max_records=2, record_limit=True))) == [0, 1]
    change(bench, share_ordering="key")
    assert bench.take("n") == [], "nobody knows yet which keys are out"
    bench.settle("m", (1, 1, ACCEPT), (0, 0, RELEASE))
    assert offsets(bench.take("n")) == [0, 3]
    bench.fetch("m", LONG)
    change(bench, share_ordering="none")
    assert offsets(bench.answers["m"][0].acquired) == [2]


def test_the_key_may_be_the_value_of_a_header() -> None:
    bench = Bench(by_key(share_ordering_key_header="account"))
    bench.logs[0].produce_keyed(b"1", b"2", headers=[("account", b"x")])
    bench.logs[0].produce_keyed(b"1", headers=[("account", b"y")])
    bench.logs[0].produce_keyed(b"1", b"1")
    assert offsets(bench.take("m")) == [0, 2, 3, 4]
    change(bench, share_ordering_key_header="")
    assert bench.take("n") == []
    bench.leader().release("m")
    assert offsets(bench.take("n")) == [0, 1], "1 and 2 are the keys now"


def test_records_of_a_batch_that_cannot_be_read_come_without_an_order(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench(BY_KEY)
    bench.logs[0].produce_keyed(b"a", b"a")
    bench.logs[0].produce_keyed(b"a", b"a", b"a", damaged=True)
    bench.logs[0].produce_keyed(b"a")
    assert offsets(bench.take("m")) == [0, 2, 3, 4]
    assert bench.engine().looked_at()[2] == 1
    assert "cannot decompress 1 record batches" in caplog.text


def test_an_answer_leaves_out_records_that_its_member_has_not_acquired() -> None:
    bench = Bench(BY_KEY)
    values = [random.Random(number).randbytes(100) for number in range(40)]
    batch = keyed_batch(
        [(b"ab"[number // 20 :][:1], value) for number, value in enumerate(values)], gzipped=True
    )
    bench.logs[0].append_batch(batch, 40)
    bench.fetch("m")
    (answer,) = bench.answers.pop("m")
    assert answer.acquired == [(0, 0, 1), (20, 20, 1)]
    records, *others = decode_records(answer.records, answer.acquired, "t", 0, None)
    assert [(each.offset, each.value) for each in records] == [(0, values[0]), (20, values[20])]
    assert others == [[], [], []], "no gaps, nothing missing, nothing damaged"
    assert len(answer.records) < 400
    assert bench.engine().looked_at()[3] == len(batch) - len(answer.records)


def test_an_answer_of_a_group_without_such_settings_has_whole_batches() -> None:
    bench = Bench(EARLIEST)
    batch = keyed_batch([(b"a", b"x" * 100)] * 40)
    bench.logs[0].append_batch(batch, 40)
    bench.fetch("m", LIMITS._replace(max_records=2, record_limit=True))
    (answer,) = bench.answers.pop("m")
    assert (answer.acquired, answer.records) == ([(0, 1, 1)], batch)


def test_records_that_the_log_loses_let_the_next_of_their_key_come() -> None:
    bench = Bench(by_key(share_retry_backoff_ms=600_000))
    bench.logs[0].produce_keyed(b"a")
    bench.logs[0].produce_keyed(b"b", b"a")
    bench.take("m")
    bench.settle("m", (0, 0, RELEASE))
    assert bench.take("m") == []
    bench.logs[0].delete_records(1)
    bench.world.run(1)
    assert offsets(bench.take("n")) == [2]


def test_records_of_aborted_transactions_hold_nothing_up() -> None:
    bench = Bench(by_key(share_isolation_level="read_committed"))
    bench.logs[0].produce_keyed(b"a", b"a", producer_id=7, transactional=True)
    bench.logs[0].produce_keyed(b"a", b"a")
    bench.logs[0].transactions.append((7, 0))
    assert offsets(bench.take("m")) == [2]


def test_a_letter_that_is_due_holds_nothing_up() -> None:
    rules = Rules(ordering="key")
    partition = Partition(0, [(0, 0, 3, 5), (1, 1, 0, 1)], rules=rules, dead_letters=True)
    assert partition.admit(0, 0, 0, [(0, 2)], [(0, None, None, 7)])
    assert partition.acquire(0, "m", [(0, 2)], 0) == [(1, 1, 2)]
