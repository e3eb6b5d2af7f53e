"""Records with a delivery time or a time to live in their headers."""

from __future__ import annotations

import gzip
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.partition.bench import ACCEPT, EARLIEST, LIMITS, RELEASE, Bench

from sharecore._core import encode_records

TIMED = replace(EARLIEST, share_deliver_at_header="at", share_record_ttl_header="ttl")
LONG = LIMITS._replace(max_wait_ms=600_000)


def change(bench: Bench, **settings: Any) -> None:
    bench.config = replace(bench.config, **settings)
    bench.leaders.reconfigure("g")


def at(bench: Bench, ahead_ms: int) -> dict[str, str]:
    """Headers of a record due in this time."""
    return {"at": str(bench.world.now_ms() + ahead_ms)}


def test_a_fetch_that_waits_gets_a_record_at_its_time_and_others_pass_it() -> None:
    bench = Bench(TIMED)
    bench.logs[0].produce_records(at(bench, 5000), {}, at(bench, 2000))
    assert bench.take("m") == [(1, 1, 1)]
    for wait_ms, offset in ((2000, 2), (3000, 0)):
        bench.fetch("m", LONG)
        bench.world.run(wait_ms - 1)
        assert bench.answers == {}
        bench.world.run(1)
        assert bench.answers.pop("m")[0].acquired == [(offset, offset, 1)]
    bench.settle("m", (0, 2, ACCEPT))
    assert bench.engine().start_offset == 3


def test_after_a_restart_no_record_comes_before_its_time() -> None:
    bench = Bench(TIMED)
    bench.logs[0].produce_records(at(bench, 5000), {}, at(bench, 2000), {})
    assert bench.take("m", LIMITS._replace(max_records=1)) == [(1, 1, 1)]
    bench.settle("m", (1, 1, ACCEPT))
    bench.world.run(1000)
    bench.leaders = bench.fresh()
    assert bench.take("m") == [(3, 3, 1)]
    bench.world.run(999)
    assert bench.take("m") == []
    bench.world.run(1)
    assert bench.take("m") == [(2, 2, 1)]
    bench.world.run(3000)
    assert bench.take("m") == [(0, 0, 1)]


def test_a_released_record_with_back_off_waits_for_that_and_not_for_its_time_again() -> None:
    backoff: dict[str, Any] = {"share_retry_backoff_ms": 1000, "share_retry_backoff_jitter": 0.0}
    bench = Bench(replace(TIMED, **backoff))
    bench.logs[0].produce_records(at(bench, 300))
    bench.world.run(300)
    assert bench.take("m") == [(0, 0, 1)]
    bench.settle("m", (0, 0, RELEASE))
    bench.world.run(999)
    assert bench.take("m") == []
    bench.leaders = bench.fresh()
    bench.world.run(1)
    assert bench.take("m") == [], "after a load it waits once more"
    bench.world.run(1000)
    assert bench.take("m") == [(0, 0, 2)]


@pytest.mark.parametrize("ttl", ["header", "setting", "batch"])
def test_a_record_is_not_delivered_after_its_time_to_live(ttl: str) -> None:
    bench = Bench(TIMED)
    if ttl != "header":
        change(bench, share_record_ttl_ms=5000)
    if ttl == "batch":
        # without delivery times, a batch that is too old is not expanded
        change(bench, share_deliver_at_header="", share_record_ttl_header="")
    headers = {"ttl": "5000"} if ttl == "header" else {}
    bench.logs[0].produce_records(headers, headers, now_ms=bench.world.now_ms())
    assert bench.take("m", LIMITS._replace(max_records=1)) == [(0, 0, 1)]
    bench.world.run(5000)
    assert bench.take("m") == []
    assert bench.engine().inflight() == [(0, 0, 1, 1), (1, 1, 4, 0)]
    bench.settle("m", (0, 0, RELEASE))
    bench.world.run(1)
    assert bench.engine().start_offset == 2, "its time was over while it was held"
    assert bench.engine().looked_at()[:3] == (2, 0, 0)
    bench.logs[0].produce_records(headers, now_ms=bench.world.now_ms() - 5000)
    if ttl != "header":
        assert bench.take("m") == []


def test_time_to_live_counts_from_the_delivery_time_and_the_shorter_one_counts() -> None:
    bench = Bench(replace(TIMED, share_record_ttl_ms=3000))
    now_ms = bench.world.now_ms()
    bench.logs[0].produce_records({**at(bench, 2000), "ttl": "1000"}, {"ttl": "9000"}, now_ms=now_ms)
    bench.fetch("n", LONG)
    assert bench.answers.pop("n")[0].acquired == [(1, 1, 1)]
    bench.world.run(1999)
    assert bench.take("m") == []
    bench.world.run(1)
    bench.settle("n", (1, 1, ACCEPT))
    assert bench.take("m") == [(0, 0, 1)]
    bench.settle("m", (0, 0, RELEASE))
    bench.world.run(999)
    assert bench.engine().start_offset == 0
    bench.world.run(1)
    assert bench.engine().start_offset == 2


@pytest.mark.parametrize("text", ["soon", "", "-5", "1e3", "1" * 20, "\u0661", " 7"])
def test_a_header_that_is_no_number_counts_as_none_and_is_counted(text: str) -> None:
    bench = Bench(TIMED)
    bench.logs[0].produce_records({"at": text}, {"ttl": text})
    assert bench.take("m") == [(0, 1, 1)]
    assert bench.engine().looked_at()[:3] == (0, 2, 0)


def test_a_batch_that_cannot_be_expanded_is_delivered_as_if_its_records_had_no_times() -> None:
    bench = Bench(TIMED)
    batch = bytearray(encode_records([(None, b"x", [("at", b"9" * 19)])], now_ms=0))
    batch[22] = 1  # gzip
    damaged = bytes(batch[:61]) + gzip.compress(b"")[:-3]
    bench.logs[0].append_batch((len(damaged) - 12).to_bytes(4, "big").join([damaged[:8], damaged[12:]]), 1)
    assert bench.take("m") == [(0, 0, 1)]
    assert bench.engine().looked_at()[:3] == (0, 0, 1)


def test_a_wall_clock_that_is_set_forward_is_noticed_within_a_minute() -> None:
    bench = Bench(TIMED)
    bench.logs[0].produce_records(at(bench, 24 * 3_600_000))
    bench.fetch("m", LONG)
    bench.world.run(1000)
    bench.world.wall_ahead_ms = 24 * 3_600_000
    bench.world.run(60_000)
    assert bench.answers["m"][0].acquired == [(0, 0, 1)]


def test_a_wall_clock_that_is_set_back_delivers_nothing_early() -> None:
    bench = Bench(TIMED)
    bench.logs[0].produce_records(at(bench, 5000))
    bench.fetch("m", LONG)
    bench.world.run(1000)
    bench.world.wall_ahead_ms = -10_000
    bench.world.run(13_999)
    assert bench.answers == {}
    bench.world.run(1)
    assert bench.answers["m"][0].acquired == [(0, 0, 1)]


def test_what_waits_is_bounded_and_what_is_due_is_delivered_all_the_same() -> None:
    bench = Bench(replace(TIMED, share_partition_max_waiting=1000))
    for number in range(15):
        bench.logs[0].produce_records(*[at(bench, 1000 + number)] * 100)
    bench.logs[0].produce_records({})
    bench.fetch("m", LONG)
    assert bench.answers == {}, "a thousand records wait"
    bench.world.run(999)
    assert bench.answers == {}
    assert bench.engine().waiting() == (1000, True)
    bench.world.run(1)
    assert bench.answers.pop("m")[0].acquired == [(0, 99, 1)]
    bench.settle("m", (0, 99, ACCEPT))
    bench.world.run(14)
    taken = sum(last - first + 1 for _ in range(20) for first, last, _ in bench.take("m"))
    assert taken == 1401, "as those go that are due, others come in"


def test_settings_that_change_have_records_looked_at_anew() -> None:
    bench = Bench()
    bench.logs[0].produce_records(at(bench, 5000), {}, {"at2": at(bench, 3000)["at"]})
    assert bench.take("m", LIMITS._replace(max_records=1, record_limit=True)) == [(0, 0, 1)]
    change(bench, share_deliver_at_header="at")
    bench.settle("m", (0, 0, RELEASE))
    assert bench.take("m") == [(1, 2, 1)]
    bench.settle("m", (1, 2, RELEASE))
    change(bench, share_deliver_at_header="at2")
    assert bench.take("m") == [(0, 1, 2)]
    change(bench, share_deliver_at_header="")
    assert bench.take("m") == [(2, 2, 2)], "without the setting nothing waits"


def test_many_delayed_records_are_looked_at_in_turns() -> None:
    bench = Bench(replace(TIMED, share_partition_max_waiting=200_000))
    for _ in range(100):
        bench.logs[0].produce_records(*[at(bench, 60_000)] * 1000)
    bench.logs[0].produce_records({})
    bench.fetch("m", LONG)
    bench.world.run(1)
    assert bench.answers["m"][0].acquired == [(100_000, 100_000, 1)]


@pytest.mark.parametrize("letters", [False, True])
def test_expired_records_get_a_dead_letter_where_the_group_wants_it(letters: bool) -> None:
    bench = Bench(replace(TIMED, share_record_ttl_dead_letter=letters))
    bench.logs[0].produce_records({"ttl": "1000"}, now_ms=bench.world.now_ms())
    bench.take("m", LIMITS._replace(max_records=0))
    bench.engine().configure(dead_letters=True)
    assert bench.take("m") == [(0, 0, 1)]
    bench.settle("m", (0, 0, RELEASE))
    write = bench.engine().advance(bench.world.monotonic_ms(), bench.world.now_ms() + 1000)
    assert write is not None
    assert write.batches() == [(0, 0, 3 if letters else 4, 1)]
    bench.engine().commit(write.id, bench.world.monotonic_ms())
    expired = 2
    assert bench.engine().take_dead_letters() == ([(0, 0, 1, expired)] if letters else [])
