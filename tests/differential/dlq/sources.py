"""What records were like, and what becomes of their topic before the letters are written."""

from __future__ import annotations

import time

from tests.differential.dlq.member import ACCEPT, REJECT, RELEASE
from tests.differential.dlq.registry import scenario, slow
from tests.differential.dlq.side import TOPIC
from tests.differential.dlq.world import Seen, World
from tests.harness.compaction import compacted_to


def _compressed(world: World, compression: str) -> Seen:
    entries = [(b"k%d" % number, b"v" * 200) for number in range(20)] + [(None, b"w" * 100), (b"k", None)]
    member = world.begin([], copy=True)
    world.side.produce_with(world.source, compression, entries)
    member.take(22)
    code = member.acknowledge(
        (0, 9, REJECT), (10, 14, ACCEPT), (15, 15, REJECT), (16, 17, ACCEPT), (18, 21, REJECT)
    )
    return {"answer": code} | world.outcome([*range(10), 15, *range(18, 22)], 15, lag=0)


@scenario
def lz4(world: World) -> Seen:
    return _compressed(world, "lz4")


@scenario
def zstd(world: World) -> Seen:
    return _compressed(world, "zstd")


@scenario
def snappy(world: World) -> Seen:
    return _compressed(world, "snappy")


@scenario
def gzip(world: World) -> Seen:
    return _compressed(world, "gzip")


@scenario
def headers_of_the_record(world: World) -> Seen:
    headers = [("a", b"1"), ("a", b"2"), ("", b"empty"), ("none", None), ("a", b""), ("__dlq.error", b"x")]
    member = world.begin(2, copy=True, headers=headers)
    member.take(2)
    member.acknowledge((0, 1, REJECT))
    return world.outcome(range(2), 2, lag=0)


@scenario
def several_batches(world: World) -> Seen:
    member = world.begin(3, copy=True)
    world.side.produce(world.source, [(b"a", b"b")] * 3, gzipped=True)
    world.side.produce(world.source, [(None, None)])
    world.side.produce_in_transactions(world.source, 12)
    member.take(11)
    code = member.acknowledge((1, 5, REJECT), (6, 6, ACCEPT), (7, 8, REJECT))
    return {"answer": code} | world.outcome([1, 2, 3, 4, 5, 7, 8], 7)


@scenario
def gone_below_the_range(world: World) -> Seen:
    member = world.begin(copy=True)
    member.take(10)
    world.side.delete_records(world.source, 5)
    time.sleep(0.3)
    code = member.acknowledge((0, 9, REJECT))
    return {"answer": code} | world.outcome(range(5, 10), 5)


@scenario
def gone_altogether(world: World) -> Seen:
    member = world.begin(copy=True)
    member.take(10)
    world.side.delete_records(world.source, 10)
    time.sleep(0.3)
    code = member.acknowledge((0, 9, REJECT))
    time.sleep(1)
    return {"answer": code} | world.outcome(())


@scenario
def gone_and_nobody_held_it(world: World) -> Seen:
    member = world.begin(copy=True)
    member.take(10)
    codes = [member.acknowledge((0, 4, REJECT), (5, 6, ACCEPT), (7, 9, RELEASE))]
    world.outcome(range(5), 5)
    world.side.delete_records(world.source, 10)
    time.sleep(0.5)
    leased = member.take(1, seconds=1)
    return {"answers": codes, "leased": leased} | world.outcome(range(5))


@scenario
def source_is_deleted_while_leased(world: World) -> Seen:
    member = world.begin(copy=True)
    member.take(10)
    world.side.delete(world.source)
    time.sleep(0.5)
    code = member.acknowledge((0, 9, REJECT))
    time.sleep(1)
    return {"answer": code, "letters": world.outcome(())["letters"]}


@scenario
def source_is_made_anew(world: World) -> Seen:
    member = world.begin(copy=True)
    member.take(10)
    code = member.acknowledge((0, 9, REJECT))
    world.outcome(range(10), 10)
    member.leave()
    world.side.delete(world.source)
    time.sleep(0.5)
    world.side.create(world.source)
    world.source_id = world.side.topic_id(world.source)
    world.side.produce(world.source, [(b"n", b"new")] * 3)
    again = world.join()
    leased = again.take(3)
    codes = [code, again.acknowledge((0, 2, REJECT))]
    return {"answers": codes, "leased": leased} | world.outcome(range(3), 13, lag=0)


@scenario
def two_thousand_with_markers_between(world: World) -> Seen:
    """Ranges over transactions: what is no record is in them."""
    member = world.begin([], copy=True)
    world.side.produce(world.source, [(b"k", b"v")] * 900)
    world.side.produce_in_transactions(world.source, 905)
    world.side.produce(world.source, [(b"k", b"v")] * 900)
    member.take(1804)
    code = member.acknowledge((0, 1805, REJECT))
    return {"answer": code} | world.outcome([0, 899, 900, 1805])


def _compacted(world: World, *, gzipped: bool = False) -> int:
    """Make a source of three batches: compaction leaves nothing of the first, and half of the second.

    Gives the offset of the last record, which lies in another segment: one fetch of Apache's ends before it.
    """
    settings = {"segment.ms": "700", "min.cleanable.dirty.ratio": "0", "delete.retention.ms": "0"}
    world.prepare([], copy=True, source=settings)
    first = [(b"k%d" % (number % 10), b"old") for number in range(20)]
    second = [(b"k%d" % number, b"new") for number in range(10) for _ in range(2)]
    for entries in (first, second):
        world.side.produce(world.source, entries, gzipped=gzipped, now=True)
    time.sleep(0.9)
    world.side.produce(world.source, [(b"last", b"")], now=True)
    world.side.configure(TOPIC, world.source, {"cleanup.policy": "compact"})
    until = time.monotonic() + 30
    while compacted_to(world.side.broker, world.source) < 40:
        assert time.monotonic() < until, "never compacted"
        time.sleep(0.1)
    return 40


def _rejected_over_holes(world: World, *, gzipped: bool) -> Seen:
    last = _compacted(world, gzipped=gzipped)
    member = world.join()
    leased = member.take(last + 1, seconds=3)
    code = member.acknowledge(*((low, high, REJECT) for low, high, _ in leased))
    return {"leased": _offsets(leased), "answer": code} | world.outcome([last], lag=0)


@slow
def holes_of_compaction(world: World) -> Seen:
    return _rejected_over_holes(world, gzipped=False)


@slow
def holes_in_what_is_compressed(world: World) -> Seen:
    return _rejected_over_holes(world, gzipped=True)


@slow
def found_over_holes(world: World) -> Seen:
    last = _compacted(world)
    member = world.join()
    state = [(0, 15, 3, 1), (16, 35, 3, 2), (36, last, 0, 1)]
    assert world.side.write_state(world.group, world.source_id, state) == 0
    leased = member.take(5, seconds=3)
    return {"leased": _offsets(leased)} | world.outcome(range(36), lag=5)


def _offsets(leased: list[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """Each offset and its delivery count."""
    return [(offset, count) for first, last, count in leased for offset in range(first, last + 1)]
