"""What nothing else may be played beside: settings of all groups, locks that run out, restarts."""

from __future__ import annotations

from tests.differential.dlq.member import REJECT, RELEASE
from tests.differential.dlq.registry import alone, slow
from tests.differential.dlq.side import ALLOWED, GROUP, TOPIC
from tests.differential.dlq.world import Seen, World

AUTO_CREATE = "errors.deadletterqueue.auto.create.topics.enable"
PREFIX = "errors.deadletterqueue.topic.name.prefix"
LOCK_MS = 1000
"""The shortest time for which a record is leased."""


# settings of all topics and groups: no other scenario runs meanwhile


@alone
def topic_is_made(world: World) -> Seen:
    with world.side.broker_setting(AUTO_CREATE, "true"):
        member = world.begin(queue=None, copy=True)
        member.take(10)
        code = member.acknowledge((0, 9, REJECT))
        found = world.outcome(range(10), 10, lag=0)
    settings = world.side.settings(TOPIC, world.dlq)
    names = ("errors.deadletterqueue.group.enable", "message.timestamp.type", "cleanup.policy")
    return {"answer": code, "settings": {name: settings.get(name) for name in names}} | found


@alone
def topic_with_another_prefix_is_not_made(world: World) -> Seen:
    with world.side.broker_setting(AUTO_CREATE, "true"):
        world.dlq = world.dlq.replace("dlq.", "dead.")
        member = world.begin(queue=None)
        member.take(10)
        member.acknowledge((0, 9, REJECT))
        return world.outcome(range(10), lag=0) | {"made": world.side.partitions(world.dlq)}


@alone
def any_prefix_will_do(world: World) -> Seen:
    with world.side.broker_setting(PREFIX, ""):
        world.dlq = world.dlq.replace("dlq.", "dead.")
        member = world.begin()
        member.take(10)
        member.acknowledge((0, 9, REJECT))
        return world.outcome(range(10), 10, lag=0)


@alone
def share_version_1(world: World) -> Seen:
    member = world.begin()
    member.take(10)
    codes = [world.side.share_version(1)]
    codes.append(member.acknowledge((0, 4, REJECT)))
    found = world.outcome(range(5))
    codes.append(world.side.share_version(2))
    codes.append(member.acknowledge((5, 9, REJECT)))
    return {"answers": codes, "before": found} | world.outcome(range(10), 5, lag=0)


@slow
def restarted_before_the_letters(world: World) -> Seen:
    """State as it is between the two writes; its causes are guessed."""
    member = world.begin(copy=True)
    member.take(10)
    member.close_session()
    assert (
        world.side.write_state(world.group, world.source_id, [(0, 3, 3, 1), (4, 5, 3, 5), (6, 9, 0, 1)]) == 0
    )
    world.side.restart()
    leased = world.join().take(4)
    return {"leased": leased} | world.outcome(range(6), 6, lag=4)


@slow
def restarted_before_the_letters_without_a_topic(world: World) -> Seen:
    member = world.begin()
    member.take(10)
    member.close_session()
    assert world.side.write_state(world.group, world.source_id, [(0, 3, 3, 1), (4, 9, 0, 1)]) == 0
    world.side.configure(GROUP, world.group, {"errors.deadletterqueue.topic.name": None})
    world.side.restart()
    leased = world.join().take(6)
    return {"leased": leased} | world.outcome(range(4), lag=6)


@slow
def killed_right_behind_the_answer(world: World) -> Seen:
    """Where it is killed is chance: each record has a letter at least, and is archived."""
    member = world.begin(copy=True)
    member.take(10)
    codes = [member.acknowledge((0, 4, REJECT))]
    world.side.restart()
    again = world.join()
    leased = again.take(5)
    codes.append(again.acknowledge((5, 9, REJECT)))
    world.side.restart()
    world.join().take(1, seconds=1)
    seen = world.outcome(range(10), 10, lag=0)
    told = {letter["headers"][2][1] for some in seen["letters"].values() for letter in some}
    states = {offset: states[-1] for offset, states in seen["states"][0].items()}
    return {"answers": codes, "leased": leased, "told": sorted(told), "states": states, "lag": seen["lag"]}


@slow
def restarted_after_a_letter(world: World) -> Seen:
    member = world.begin(copy=True)
    member.take(10)
    member.acknowledge((0, 4, REJECT))
    world.outcome(range(5), 5)
    world.side.restart()
    again = world.join()
    leased = again.take(5)
    code = again.acknowledge((5, 9, REJECT))
    return {"leased": leased, "answer": code} | world.outcome(range(10), 10, lag=0)


@slow
def restarted_between_the_letter_and_its_end(world: World) -> Seen:
    """The letter is there, and its record still waits for it: it comes again."""
    member = world.begin(copy=True)
    member.take(10)
    codes = [member.acknowledge((0, 4, REJECT))]
    world.outcome(range(5), 5)
    member.close_session()
    codes.append(world.side.write_state(world.group, world.source_id, [(0, 4, 3, 1)]))
    world.side.restart()
    leased = world.join().take(5)
    return {"answers": codes, "leased": leased} | world.outcome(range(5), 10, lag=5)


@slow
def ended_gently_before_the_letters(world: World) -> Seen:
    member = world.begin(copy=True)
    member.take(10)
    member.close_session()
    codes = [world.side.write_state(world.group, world.source_id, [(0, 3, 3, 1), (4, 9, 0, 1)])]
    for _ in range(2):
        world.side.restart(warned=True)
    leased = world.join().take(6)
    return {"answers": codes, "leased": leased} | world.outcome(range(4), 4, lag=6)


@slow
def restarted_with_settings_changed(world: World) -> Seen:
    """Topic, copies and limit are those of when the letter is written."""
    member = world.begin(share_delivery_count_limit="5")
    member.take(10)
    member.close_session()
    assert world.side.write_state(world.group, world.source_id, [(0, 4, 3, 2), (5, 9, 0, 1)]) == 0
    world.dlq += "-2"
    world.side.create(world.dlq, 3, ALLOWED)
    world.side.group(world.group, world.dlq, copy=True, share_delivery_count_limit="2")
    world.side.restart()
    leased = world.join().take(5)
    return {"leased": leased} | world.outcome(range(5), 5, lag=5)


@slow
def restarted_while_locks_are_at_the_limit(world: World) -> Seen:
    """Leases are not persisted: what was out for the last time is given out once more."""
    member = world.begin(share_delivery_count_limit="2", copy=True)
    leased = [member.take(10)]
    codes = [member.acknowledge((0, 9, RELEASE))]
    leased.append(member.take(10))
    world.side.restart()
    again = world.join()
    leased.append(again.take(10))
    codes.append(again.acknowledge((0, 9, RELEASE)))
    return {"leased": leased, "answers": codes} | world.outcome(range(10), 10, lag=0)


@slow
def clients_have_used_up_their_quotas(world: World) -> Seen:
    """What is written before a quota is used up is written; Apache's later letters would wait for it."""
    member = world.begin([(b"k", bytes(5000))] * 20, copy=True)
    member.take(20)
    with world.side.quotas(producer_byte_rate=100.0, request_percentage=1000.0):
        code = member.acknowledge((0, 19, REJECT))
        found = world.outcome(range(20), 20, lag=0)
    world.side.restart()
    return {"answer": code} | found


@slow
def locks_ran_out_at_the_limit(world: World) -> Seen:
    member = world.begin(
        share_delivery_count_limit="2", share_record_lock_duration_ms=str(LOCK_MS), copy=True
    )
    leased = [member.take(10), member.take(10)]
    return {"leased": leased} | world.outcome(range(10), 10, lag=0)
