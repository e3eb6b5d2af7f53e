"""Ordered records with delivery times or expiry."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.partition.bench import ACCEPT, EARLIEST, LIMITS, Bench

from sharecore._core import encode_records

LONG = LIMITS._replace(max_wait_ms=600_000)


def began(ordering: str, *records: tuple[bytes | None, int | None, int | None]) -> Bench:
    """Return a group with an order; each record has a key, a delay and a time to live in ms, or None."""
    timed = replace(EARLIEST, share_deliver_at_header="at", share_record_ttl_header="ttl")
    bench = Bench(replace(timed, share_ordering=ordering))
    now_ms = bench.world.now_ms()
    encoded = []
    for key, delay_ms, ttl_ms in records:
        at = [] if delay_ms is None else [("at", b"%d" % (now_ms + delay_ms))]
        ttl = [] if ttl_ms is None else [("ttl", b"%d" % ttl_ms)]
        encoded.append((key, b"v", [*at, *ttl]))
    bench.logs[0].append_batch(encode_records(encoded, now_ms=now_ms), len(records))
    return bench


def offsets(taken: list[tuple[int, int, int]]) -> list[int]:
    return [offset for first, last, _ in taken for offset in range(first, last + 1)]


def test_a_record_that_waits_for_its_time_holds_back_its_key_and_nobody_else() -> None:
    bench = began(
        "key",
        (b"a", 5000, None),
        (b"a", None, None),
        (b"b", None, None),
        (b"b", 2000, None),
        (None, 9000, None),
        (None, None, None),
    )
    assert offsets(bench.take("m")) == [2, 5]
    bench.settle("m", (2, 2, ACCEPT))
    for wait_ms, expected in ((2000, [3]), (3000, [0]), (4000, [4])):
        bench.fetch("m", LONG)
        bench.world.run(wait_ms - 1)
        assert bench.answers == {}
        bench.world.run(1)
        assert offsets(bench.answers.pop("m")[0].acquired) == expected
    bench.settle("m", (0, 0, ACCEPT))
    assert offsets(bench.take("m")) == [1]


def test_a_record_that_expires_lets_the_next_of_its_key_come() -> None:
    bench = began("key", (b"a", 60_000, 1000), (b"a", None, None), (b"b", None, 3000), (b"b", None, None))
    assert offsets(bench.take("m")) == [2]
    bench.world.run(30_001)
    assert offsets(bench.take("n")) == [3], "2 has expired while it was held, and came back"
    bench.world.run(31_000)
    assert offsets(bench.take("n")) == [1, 3], "so has 0 after its time, and 3 is delivered again"


def test_the_first_record_of_a_partition_holds_back_all_until_its_time() -> None:
    bench = began("partition", (b"a", None, None), (b"b", 5000, None), (b"c", None, None))
    assert offsets(bench.take("m")) == [0]
    assert bench.take("n") == []
    bench.settle("m", (0, 0, ACCEPT))
    bench.fetch("n", LONG)
    bench.world.run(4999)
    assert bench.answers == {}
    bench.world.run(1)
    assert offsets(bench.answers.pop("n")[0].acquired) == [1]
    bench.leader().acknowledge("n", [(1, 1, bytes([ACCEPT]))], bench.ends.append)
    assert offsets(bench.take("n")) == [2]


@pytest.mark.parametrize("ordering", ["key", "partition"])
def test_order_and_times_hold_over_a_restart(ordering: str) -> None:
    bench = began(ordering, (b"a", 5000, None), (b"a", None, None), (b"a", None, None))
    assert bench.take("m") == []
    bench.world.run(1000)
    bench.leaders = bench.fresh()
    bench.world.run(3999)
    assert bench.take("m") == []
    bench.world.run(1)
    assert offsets(bench.take("m")) == [0]
    assert bench.take("n") == []
