"""State that a crash leaves between its two writes, as whoever leads the share partition next finds it.

It is written by hand before anybody leads: state 3, archiving, is a letter that is due.
"""

from __future__ import annotations

import time

from tests.differential.dlq.member import REJECT
from tests.differential.dlq.registry import alone, scenario
from tests.differential.dlq.side import ALLOWED, GROUP, TOPIC
from tests.differential.dlq.world import Seen, World

WAITING, ARCHIVED, ACKNOWLEDGED, FREE = 3, 4, 2, 0
TEN = (0, 9, WAITING, 1)


@scenario
def found_and_written(world: World) -> Seen:
    member = world.begin_waiting((0, 3, WAITING, 1), (4, 5, WAITING, 5), (6, 9, FREE, 2), copy=True)
    leased = member.take(4)
    return {"leased": leased} | world.outcome(range(6), 6, lag=4)


@scenario
def found_behind_what_is_settled(world: World) -> Seen:
    member = world.begin_waiting(
        (0, 1, FREE, 1), (2, 3, WAITING, 2), (4, 4, ACKNOWLEDGED, 1), (5, 6, ARCHIVED, 1), (7, 9, WAITING, 3)
    )
    leased = member.take(2)
    return {"leased": leased} | world.outcome([2, 3, 5, 6, 7, 8, 9], 5, lag=2)


@scenario
def found_with_counts_above_the_limit(world: World) -> Seen:
    member = world.begin_waiting(
        (0, 1, WAITING, 1), (2, 3, WAITING, 2), (4, 5, WAITING, 9), (6, 9, FREE, 9),
        share_delivery_count_limit="2",
    )  # fmt: skip
    leased = member.take(4)
    return {"leased": leased} | world.outcome(range(6), 6, lag=4)


@scenario
def found_with_no_deliveries(world: World) -> Seen:
    world.begin_waiting((0, 9, WAITING, 0), copy=True).take(1, seconds=0.5)
    return world.outcome(range(10), 10, lag=0)


@scenario
def found_and_the_topic_is_missing(world: World) -> Seen:
    world.begin_waiting(TEN, queue=None).take(1, seconds=0.5)
    return world.outcome(range(10), lag=0)


@scenario
def found_and_the_topic_is_not_allowed(world: World) -> Seen:
    world.begin_waiting(TEN, queue={}).take(1, seconds=0.5)
    return world.outcome(range(10), lag=0)


@scenario
def found_and_the_group_wants_none(world: World) -> Seen:
    member = world.begin_waiting(TEN)
    world.side.configure(GROUP, world.group, {"errors.deadletterqueue.topic.name": None})
    member.take(1, seconds=0.5)
    return world.outcome(range(10), lag=0)


@scenario
def found_and_another_topic_is_set(world: World) -> Seen:
    member = world.begin_waiting(TEN)
    before, world.dlq = world.dlq, f"{world.dlq}-2"
    world.side.create(world.dlq, 1, ALLOWED)
    world.side.group(world.group, world.dlq, copy=True)
    member.take(1, seconds=0.5)
    found = world.outcome(range(10), 10, lag=0)
    world.dlq = before
    return {"before": world.outcome(())["letters"]} | found


@scenario
def found_and_the_topic_was_made_anew(world: World) -> Seen:
    member = world.begin_waiting(TEN)
    world.side.delete(world.dlq)
    time.sleep(0.5)
    world.side.create(world.dlq, 3, ALLOWED)
    member.take(1, seconds=0.5)
    return world.outcome(range(10), 10, lag=0)


@scenario
def found_and_records_are_gone(world: World) -> Seen:
    member = world.begin_waiting((0, 6, WAITING, 1), copy=True)
    world.side.delete_records(world.source, 4)
    time.sleep(0.3)
    leased = member.take(3)
    return {"leased": leased} | world.outcome(range(4, 7), 3, lag=3)


@scenario
def found_and_all_records_are_gone(world: World) -> Seen:
    member = world.begin_waiting((0, 6, WAITING, 1), copy=True)
    world.side.delete_records(world.source, 10)
    time.sleep(0.3)
    leased = member.take(1, seconds=1)
    return {"leased": leased} | world.outcome((), lag=0)


@scenario
def found_beyond_the_end(world: World) -> Seen:
    """State of records that the log does not hold, or not yet."""
    member = world.begin_waiting((0, 3, WAITING, 1), (12, 14, WAITING, 1), copy=True)
    leased = member.take(1)
    time.sleep(1)
    return {"leased": leased} | world.outcome(range(4), 4)


@scenario
def found_over_markers_of_transactions(world: World) -> Seen:
    member = world.begin([], copy=True)
    world.side.produce_in_transactions(world.source)
    assert world.side.write_state(world.group, world.source_id, [(0, 5, WAITING, 1)]) == 0
    member.take(1, seconds=0.5)
    return world.outcome(range(6), 4, lag=0)


@scenario
def found_by_a_group_of_committed_records(world: World) -> Seen:
    member = world.begin([], copy=True, share_isolation_level="read_committed")
    world.side.produce_in_transactions(world.source)
    assert world.side.write_state(world.group, world.source_id, [(0, 5, WAITING, 1)]) == 0
    member.take(1, seconds=0.5)
    return world.outcome(range(6), 4, lag=0)


@scenario
def found_in_several_partitions(world: World) -> Seen:
    member = world.begin(4, partitions=5, queue_partitions=2, copy=True)
    for index in range(5):
        state = [(0, index % 4, WAITING, 1)]
        assert world.side.write_state(world.group, world.source_id, state, partition=index) == 0
    seen: set[int] = set()
    until = time.monotonic() + 10
    while len(seen) < 4 and time.monotonic() < until:
        seen |= member.fetch().keys()
    wanted = {index: range(index % 4 + 1) for index in range(5)}
    found = world.outcome(wanted, sum(map(len, wanted.values())))
    for some in found["letters"].values():
        some.sort(key=lambda letter: letter["headers"][1:3])
    return {"leased": sorted(seen)} | found


@scenario
def found_and_rejected_once_more(world: World) -> Seen:
    """What is archiving is leased to nobody: acknowledging it is refused."""
    member = world.begin_waiting((0, 4, WAITING, 1))
    leased = member.take(5)
    codes = [member.acknowledge((0, 4, REJECT)), member.acknowledge((5, 9, REJECT))]
    return {"leased": leased, "answers": codes} | world.outcome(range(10), 10, lag=0)


@scenario
def found_two_thousand(world: World) -> Seen:
    member = world.begin_waiting((0, 1999, WAITING, 1), records=2100, copy=True)
    leased = member.take(100)
    found = world.outcome(range(2000), 2000, lag=100)
    return {"leased": leased, "batches": world.batches()} | found


@scenario
def found_and_the_topic_shrinks_what_it_takes(world: World) -> Seen:
    member = world.begin_waiting(TEN, copy=True)
    world.side.configure(TOPIC, world.dlq, {"max.message.bytes": "700"})
    member.take(1, seconds=0.5)
    return world.outcome(range(10), 10, lag=0)


@alone
def found_at_share_version_1(world: World) -> Seen:
    member = world.begin_waiting((0, 4, WAITING, 1))
    codes = [world.side.share_version(1)]
    leased = member.take(5)
    found = world.outcome(range(5), lag=5)
    codes.append(world.side.share_version(2))
    codes.append(member.acknowledge((5, 9, REJECT)))
    return {"leased": leased, "answers": codes, "before": found} | world.outcome(range(10), 5, lag=0)
