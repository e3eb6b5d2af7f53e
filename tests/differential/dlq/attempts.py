"""A topic of letters that takes none for a while: attempts, the waits between them, and the end."""

from __future__ import annotations

import time

from tests.differential.dlq.member import REJECT
from tests.differential.dlq.registry import slow
from tests.differential.dlq.world import Seen, World

_LARGE = [(b"k", bytes(450_000))]


@slow
def refused_once(world: World) -> Seen:
    return _refused_for(world, 1.0)


@slow
def refused_twice(world: World) -> Seen:
    return _refused_for(world, 3.5)


@slow
def refused_three_times(world: World) -> Seen:
    return _refused_for(world, 9.0)


@slow
def refused_to_the_end(world: World) -> Seen:
    member = world.begin(_LARGE * 2, copy=True, gzipped=True, share_record_lock_duration_ms="60000")
    member.take(2)
    with world.side.letters_refused() as refused:
        codes = [member.acknowledge((0, 0, REJECT))]
        time.sleep(22)
        waiting = world.seen([0])
        found = world.outcome([0], lag=1)
        attempts = refused.attempt(), refused.count()
    codes.append(member.acknowledge((1, 1, REJECT)))
    after = world.outcome([0, 1], 1, lag=0)
    return {"answers": codes, "waiting": waiting, "attempts": attempts, "given up": found, "after": after}


@slow
def restarted_while_refused(world: World) -> Seen:
    """Attempts end with the broker; the letter comes with the next one."""
    member = world.begin(_LARGE * 2, copy=True, gzipped=True)
    member.take(2)
    with world.side.letters_refused():
        codes = [member.acknowledge((0, 0, REJECT))]
        time.sleep(1)
        waiting = world.seen([0])
        world.side.stop()
    world.side.start()
    leased = world.join().take(1)
    return {"answers": codes, "waiting": waiting, "leased": leased} | world.outcome([0], 1, lag=1)


@slow
def topic_is_deleted_while_refused(world: World) -> Seen:
    member = world.begin(_LARGE, copy=True, gzipped=True)
    member.take(1)
    with world.side.letters_refused():
        codes = [member.acknowledge((0, 0, REJECT))]
        time.sleep(0.5)
    world.side.delete(world.dlq)
    time.sleep(4)
    return {"answers": codes} | world.outcome([0], lag=0)


def _refused_for(world: World, seconds: float) -> Seen:
    member = world.begin(_LARGE, copy=True, gzipped=True)
    member.take(1)
    with world.side.letters_refused() as refused:
        code = member.acknowledge((0, 0, REJECT))
        time.sleep(seconds)
        waiting = world.seen([0])
        failed = refused.count()
    found = world.outcome([0], 1, lag=0)
    return {"answer": code, "waiting": waiting, "failed": failed, "attempt": refused.attempt()} | found
