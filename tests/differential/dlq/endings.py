"""More ways in which records come to their end, by members that go about it differently."""

from __future__ import annotations

import time

from tests.differential.dlq.member import ACCEPT, REJECT, RELEASE
from tests.differential.dlq.registry import scenario, slow
from tests.differential.dlq.side import GROUP
from tests.differential.dlq.world import Seen, World

GAP = 0
LOCK_MS = "1000"


@scenario
def rejected_with_the_next_fetch(world: World) -> Seen:
    member = world.begin(copy=True)
    leased = member.take(10)
    member.fetch((0, 9, REJECT))
    return {"leased": leased} | world.outcome(range(10), 10, lag=0)


@scenario
def rejected_as_the_session_ends(world: World) -> Seen:
    member = world.begin(share_delivery_count_limit="2")
    member.take(10)
    member.close_session((0, 4, REJECT))
    leased = member.take(5)
    member.close_session((5, 6, ACCEPT))
    return {"leased": leased} | world.outcome([0, 1, 2, 3, 4, 7, 8, 9], 8, lag=0)


@scenario
def types_of_each_record(world: World) -> Seen:
    member = world.begin(copy=True)
    member.take(10)
    kinds = bytes([REJECT, REJECT, ACCEPT, RELEASE, REJECT, GAP, REJECT, REJECT, REJECT, ACCEPT])
    code = member.acknowledge((0, 9, kinds))
    return {"answer": code} | world.outcome([0, 1, 4, 5, 6, 7, 8], 6, lag=1)


@scenario
def refused_as_a_whole(world: World) -> Seen:
    """One range of the request belongs to nobody."""
    member = world.begin()
    member.take(10)
    member.acknowledge((4, 4, ACCEPT))
    codes = [member.acknowledge((0, 2, REJECT), (3, 5, REJECT))]
    time.sleep(0.3)
    between = world.outcome(())
    codes.append(member.acknowledge((0, 3, REJECT), (5, 9, REJECT)))
    return {"answers": codes, "between": between} | world.outcome([0, 1, 2, 3, 5, 6, 7, 8, 9], 9, lag=0)


@scenario
def counts_side_by_side(world: World) -> Seen:
    member = world.begin(share_delivery_count_limit="3")
    member.take(10)
    codes = [member.acknowledge((0, 3, RELEASE), (4, 9, REJECT))]
    member.take(4)
    codes.append(member.acknowledge((0, 1, RELEASE), (2, 3, REJECT)))
    member.take(2)
    codes.append(member.acknowledge((0, 0, REJECT), (1, 1, RELEASE)))
    return {"answers": codes} | world.outcome(range(10), 10, lag=0)


@scenario
def limit_lowered_below_what_is_free(world: World) -> Seen:
    member = world.begin(share_delivery_count_limit="5")
    leased, codes = [], []
    for _ in range(3):
        leased.append(member.take(10))
        codes.append(member.acknowledge((0, 9, RELEASE)))
    world.side.configure(GROUP, world.group, {"share.delivery.count.limit": "2"})
    leased.append(member.take(10, seconds=3))
    codes.append(member.acknowledge((0, 9, RELEASE)))
    return {"leased": leased, "answers": codes} | world.outcome(range(10), 10, lag=0)


@scenario
def limit_lowered_and_the_session_closed(world: World) -> Seen:
    member = world.begin(share_delivery_count_limit="5")
    member.take(10)
    member.close_session()
    member.take(10)
    world.side.configure(GROUP, world.group, {"share.delivery.count.limit": "2"})
    member.close_session()
    return world.outcome(range(10), 10, lag=0)


@scenario
def limit_raised_in_time(world: World) -> Seen:
    member = world.begin(share_delivery_count_limit="2")
    member.take(10)
    codes = [member.acknowledge((0, 9, RELEASE))]
    member.take(10)
    world.side.configure(GROUP, world.group, {"share.delivery.count.limit": "4"})
    codes.append(member.acknowledge((0, 9, RELEASE)))
    leased = member.take(10)
    codes.append(member.acknowledge((0, 9, ACCEPT)))
    return {"leased": leased, "answers": codes} | world.outcome((), lag=0)


@scenario
def connection_lost_at_the_limit(world: World) -> Seen:
    leased = []
    member = world.begin(share_delivery_count_limit="2")
    for _ in range(2):
        leased.append(member.take(10))
        member.hang_up()
        member = world.join()
    return {"leased": leased} | world.outcome(range(10), 10, lag=0)


@scenario
def session_replaced_at_the_limit(world: World) -> Seen:
    member = world.begin(share_delivery_count_limit="2", share_record_lock_duration_ms=LOCK_MS)
    leased = [member.take(10)]
    member.begin_again()
    leased.append(member.take(10))
    member.begin_again()
    member.take(1, seconds=2)
    return {"leased": leased} | world.outcome(range(10), 10, lag=0)


@scenario
def member_left_at_the_limit(world: World) -> Seen:
    leased = []
    member = world.begin(share_delivery_count_limit="2", share_record_lock_duration_ms=LOCK_MS)
    for _ in range(2):
        leased.append(member.take(10))
        member.leave()
        member = world.join()
    return {"leased": leased} | world.outcome(range(10), 10, lag=0)


@slow
def some_locks_ran_out(world: World) -> Seen:
    """Half of them are given back in time, and all are at the limit."""
    member = world.begin(share_delivery_count_limit="2", share_record_lock_duration_ms=LOCK_MS, copy=True)
    leased = [member.take(10), member.take(10)]
    code = member.acknowledge((0, 2, REJECT), (3, 4, ACCEPT))
    return {"leased": leased, "answer": code} | world.outcome([0, 1, 2, 5, 6, 7, 8, 9], 8, lag=0)


@slow
def limit_lowered_while_locks_run(world: World) -> Seen:
    member = world.begin(share_delivery_count_limit="5", share_record_lock_duration_ms="3000")
    leased = [member.take(10)]
    member.acknowledge((0, 9, RELEASE))
    leased.append(member.take(10))
    world.side.configure(GROUP, world.group, {"share.delivery.count.limit": "2"})
    return {"leased": leased} | world.outcome(range(10), 10, lag=0)


@scenario
def members_take_turns(world: World) -> Seen:
    """Letters are in the order in which their records were given up, whoever did so."""
    first = world.begin([], copy=True)
    second = world.join()
    codes, leased = [], []
    for turn in range(4):
        world.side.produce(world.source, [(b"k%d" % turn, b"v")] * 3)
        leased.append((first, second)[turn % 2].take(3))
    for turn in (2, 3, 0, 1):
        codes.append((first, second)[turn % 2].acknowledge((turn * 3, turn * 3 + 2, REJECT)))
        world.outcome(range(turn * 3, turn * 3 + 3))
    return {"leased": leased, "answers": codes} | world.outcome(range(12), 12, lag=0)


@scenario
def the_group_is_deleted_behind_its_letters(world: World) -> Seen:
    member = world.begin(copy=True)
    member.take(10)
    code = member.acknowledge((0, 4, REJECT))
    world.outcome(range(5), 5)
    member.close_session()
    member.leave()
    deleted = world.side.delete_group(world.group)
    letters = world.outcome((), 5)["letters"]
    again = world.join()
    leased = again.take(10)
    return {"answer": code, "deleted": deleted, "leased": leased, "letters": letters}


@scenario
def copies_are_switched_between(world: World) -> Seen:
    member = world.begin(copy=True)
    member.take(10)
    codes = []
    for turn, wanted in enumerate(("false", "true", "false")):
        codes.append(member.acknowledge((turn * 2, turn * 2 + 1, REJECT)))
        world.outcome(range(turn * 2 + 2), turn * 2 + 2)
        world.side.configure(GROUP, world.group, {"errors.deadletterqueue.copy.record.enable": wanted})
    codes.append(member.acknowledge((6, 9, REJECT)))
    return {"answers": codes} | world.outcome(range(10), 10, lag=0)


@scenario
def topics_are_switched_between(world: World) -> Seen:
    member = world.begin()
    member.take(10)
    codes = [member.acknowledge((0, 4, REJECT))]
    first = world.outcome(range(5), 5)["letters"]
    world.dlq += "-2"
    world.side.create(world.dlq, 2, {"errors.deadletterqueue.group.enable": "true"})
    world.side.configure(GROUP, world.group, {"errors.deadletterqueue.topic.name": world.dlq})
    codes.append(member.acknowledge((5, 9, REJECT)))
    return {"answers": codes, "first": first} | world.outcome(range(10), 5, lag=0)
