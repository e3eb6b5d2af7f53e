"""Topics of letters that change, or that are set up in ways that nobody thought of."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.differential.dlq.member import REJECT
from tests.differential.dlq.registry import alone, scenario
from tests.differential.dlq.side import ALLOWED, TOPIC
from tests.differential.dlq.upheavals import AUTO_CREATE, PREFIX
from tests.differential.dlq.world import Seen, World

from sharecore.admin import BlockingAdmin


def _two_halves(world: World, between: Callable[[], object], **begin: Any) -> Seen:
    """Five records are rejected before something happens to the topic, and five after."""
    member = world.begin(**begin)
    member.take(10)
    codes = [member.acknowledge((0, 4, REJECT))]
    first = world.outcome(range(5))
    between()
    codes.append(member.acknowledge((5, 9, REJECT)))
    return {"answers": codes, "first": first} | world.outcome(range(10), lag=0)


@scenario
def topic_grows(world: World) -> Seen:
    member = world.begin(4, partitions=4, copy=True)
    seen: dict[int, object] = {}
    while len(seen) < 4:
        seen |= member.fetch()
    codes = [member.acknowledge((0, 1, REJECT), partition=index) for index in range(4)]
    world.outcome({index: range(2) for index in range(4)}, 8)
    world.side.grow(world.dlq, 3)
    codes += [member.acknowledge((2, 3, REJECT), partition=index) for index in range(4)]
    found = world.outcome({index: range(4) for index in range(4)}, 16)
    for some in found["letters"].values():
        some.sort(key=lambda letter: letter["headers"][1:3])
    return {"answers": codes} | found


def _masked(world: World, change: str) -> str:
    return change.replace(world.dlq, "DLQ").replace(world.group, "GROUP")


def _set_up(world: World, **queue: Any) -> Seen:
    """What an administrator's one call changes, and the dead letters that come of it."""
    world.prepare(4, queue=queue or None)
    world.side.group(world.group, None)
    with BlockingAdmin({"bootstrap.servers": world.side.broker.bootstrap}) as admin:
        calls = [admin.set_up_dead_letters(world.group, world.dlq, create=True) for _ in range(2)]
    changes = [
        [change.replace(world.dlq, "dlq").split(": ")[-1] for change in each.changes] for each in calls
    ]
    member = world.join()
    member.take(4)
    codes = [member.acknowledge((0, 3, REJECT))]
    settings = world.side.settings(TOPIC, world.dlq)
    permitted = settings["errors.deadletterqueue.group.enable"]
    return {"changes": changes, "permitted": permitted, "answers": codes} | world.outcome(range(4), 4, lag=0)


@scenario
def topic_is_set_up(world: World) -> Seen:
    return _set_up(world)


@scenario
def topic_that_exists_is_permitted(world: World) -> Seen:
    return _set_up(world, **{"retention.ms": "-1"})


@scenario
def topic_is_deleted(world: World) -> Seen:
    def delete() -> None:
        world.side.delete(world.dlq)
        time.sleep(0.5)

    return _two_halves(world, delete)


@scenario
def topic_is_made_anew(world: World) -> Seen:
    def anew() -> None:
        world.side.delete(world.dlq)
        time.sleep(0.5)
        world.side.create(world.dlq, 2, ALLOWED)

    return _two_halves(world, anew)


@scenario
def topic_is_made_anew_and_not_allowed(world: World) -> Seen:
    def anew() -> None:
        world.side.delete(world.dlq)
        time.sleep(0.5)
        world.side.create(world.dlq, 2)

    return _two_halves(world, anew)


@scenario
def topic_is_no_longer_allowed(world: World) -> Seen:
    def forbid() -> None:
        world.side.configure(TOPIC, world.dlq, {"errors.deadletterqueue.group.enable": "false"})

    return _two_halves(world, forbid)


@scenario
def topic_takes_more_later(world: World) -> Seen:
    def larger() -> None:
        world.side.configure(TOPIC, world.dlq, {"max.message.bytes": "100000"})

    return _two_halves(world, larger, copy=True, queue=ALLOWED | {"max.message.bytes": "120"})


@scenario
def letters_are_deleted_meanwhile(world: World) -> Seen:
    def delete() -> None:
        world.side.delete_records(world.dlq, 3)

    found = _two_halves(world, delete)
    return {"offsets": world.offsets()} | found


@scenario
def topic_wants_two_replicas(world: World) -> Seen:
    member = world.begin(queue=ALLOWED | {"min.insync.replicas": "2"})
    member.take(10)
    code = member.acknowledge((0, 9, REJECT))
    return {"answer": code} | world.outcome(range(10), lag=0)


@scenario
def topic_of_short_lived_letters(world: World) -> Seen:
    settings = {"retention.ms": "600000", "segment.ms": "1000", "segment.bytes": "1048576"}
    member = world.begin(queue=ALLOWED | settings)
    member.take(10)
    code = member.acknowledge((0, 9, REJECT))
    return {"answer": code} | world.outcome(range(10), 10, lag=0)


@scenario
def topic_that_is_deleted_and_compacted(world: World) -> Seen:
    member = world.begin(queue=ALLOWED | {"cleanup.policy": "compact,delete"}, copy=True)
    member.take(10)
    code = member.acknowledge((0, 9, REJECT))
    return {"answer": code} | world.outcome(range(10), 10, lag=0)


@scenario
def topic_that_takes_no_old_records(world: World) -> Seen:
    """Letters have the time of now, whatever their records have."""
    settings = {"message.timestamp.before.max.ms": "3600000", "message.timestamp.after.max.ms": "1000"}
    member = world.begin(queue=ALLOWED | settings, copy=True)
    member.take(10)
    code = member.acknowledge((0, 9, REJECT))
    return {"answer": code} | world.outcome(range(10), 10, lag=0)


@scenario
def topic_is_the_source_of_others(world: World) -> Seen:
    """Letters are records: another group rejects them, and its letters go elsewhere."""
    member = world.begin(4, copy=True)
    member.take(4)
    member.acknowledge((0, 3, REJECT))
    first = world.outcome(range(4), 4, lag=0)
    world.source, world.dlq, world.group = world.dlq, f"{world.dlq}-2", f"{world.group}-2"
    world.source_id = world.side.topic_id(world.source)
    world.side.create(world.dlq, 1, ALLOWED)
    world.side.group(world.group, world.dlq, copy=True)
    other = world.join()
    other.take(4)
    other.acknowledge((0, 3, REJECT))
    return {"first": first, "second": world.outcome(range(4), 4, lag=0)}


@scenario
def many_partitions(world: World) -> Seen:
    member = world.begin(2, partitions=12, queue_partitions=5)
    seen: dict[int, object] = {}
    while len(seen) < 12:
        seen |= member.fetch()
    codes = [member.acknowledge((0, 1, REJECT), partition=index) for index in range(12)]
    found = world.outcome({index: range(2) for index in range(12)}, 24)
    for some in found["letters"].values():
        some.sort(key=lambda letter: letter["headers"][1:3])
    return {"answers": codes} | found


# which topics may be created: auto-create on or off, with or without the prefix


def _made(world: World, make: str, prefix: str, name: str) -> Seen:
    with world.side.broker_setting(AUTO_CREATE, make), world.side.broker_setting(PREFIX, prefix):
        world.dlq = world.dlq.replace("dlq.", name)
        member = world.begin(queue=None)
        member.take(10)
        code = member.acknowledge((0, 9, REJECT))
        made = make == "true" and name.startswith(prefix)
        found = world.outcome(range(10), 10 if made else None, lag=0)
        return {"answer": code, "partitions": world.side.partitions(world.dlq)} | found


@alone
def made_with_the_prefix(world: World) -> Seen:
    return _made(world, "true", "dead.", "dead.")


@alone
def not_made_with_another_prefix(world: World) -> Seen:
    return _made(world, "true", "dead.", "dlq.")


@alone
def not_made_where_that_is_off(world: World) -> Seen:
    return _made(world, "false", "dead.", "dead.")


@alone
def not_made_where_nothing_fits(world: World) -> Seen:
    return _made(world, "false", "dead.", "dlq.")


@alone
def made_with_any_name(world: World) -> Seen:
    return _made(world, "true", "", "any-")


@alone
def made_beside_a_name_that_is_like_it(world: World) -> Seen:
    """A dot and an underscore are one in names of metrics."""
    world.side.create(world.dlq.replace("dlq.", "dlq_"))
    return _made(world, "true", "dlq.", "dlq.")


@alone
def made_for_several_groups(world: World) -> Seen:
    with world.side.broker_setting(AUTO_CREATE, "true"):
        member = world.begin(queue=None)
        member.take(10)
        world.group += "-2"
        world.side.group(world.group, world.dlq)
        other = world.join()
        other.take(10)
        codes = [member.acknowledge((0, 9, REJECT)), other.acknowledge((0, 9, REJECT))]
        found = world.outcome(range(10), 20, lag=0)
        for some in found["letters"].values():
            some.sort(key=lambda letter: (letter["headers"][3], int(letter["headers"][2][1])))
        return {"answers": codes} | found


@alone
def made_again_once_it_is_deleted(world: World) -> Seen:
    with world.side.broker_setting(AUTO_CREATE, "true"):

        def delete() -> None:
            world.side.delete(world.dlq)
            time.sleep(0.5)

        found = _two_halves(world, delete, queue=None)
    # the broker that requested the topic is not always the first to write there
    for some in (*found["first"]["letters"].values(), *found["letters"].values()):
        some.sort(key=lambda letter: letter["headers"][2])
    return found
