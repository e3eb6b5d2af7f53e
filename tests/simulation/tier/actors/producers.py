"""Producers to the cluster: they write to its leaders, past the nodes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tests.harness.batches import batch, keyed_batch
from tests.simulation.ledger import Row
from tests.simulation.queues.actors import times_of_records
from tests.simulation.queues.notes import Note
from tests.simulation.tier.cluster import Place
from tests.simulation.tier.log import marker

from sharecore.errors import ErrorCode

if TYPE_CHECKING:
    from tests.simulation.tier.world import TierWorld


_DELAYS_MS = (-1_000, 2_000, 10_000, 30_000)
"""A node reads the cluster a while after a record was written."""
_KEYS = (b"hot", b"hot", b"a", b"b", b"", None)


class _Producer(NamedTuple):
    id: int
    sequences: dict[Place, int]


async def send(
    world: TierWorld,
    place: Place,
    values: Sequence[bytes],
    producer: _Producer | None = None,
    keys: Sequence[bytes | None] = (),
    headers: Sequence[tuple[str, bytes | None]] = (),
) -> ErrorCode:
    """Appends a batch; ends when all replicas in sync have it, or it is known that they never will."""
    log = world.cluster.log(place)
    if log is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ledger, asked = world.auditor.ledger, world.loop.now
    ledger.sent.setdefault(place, set()).update(values)
    times = [1_700_000_000_000 + int(asked * 1000)] * len(values)
    keys = keys or [None] * len(values)
    if producer is None:
        data = keyed_batch(list(zip(keys, values, strict=True)), timestamps=times, headers=headers)
    else:
        data = batch(
            values,
            timestamps=times,
            producer_id=producer.id,
            producer_epoch=0,
            sequence=producer.sequences.get(place, 0),
            transactional=True,
        )
    ended: asyncio.Future[ErrorCode] = world.loop.create_future()
    topic_id = ledger.ids[place[0]]

    def done(code: ErrorCode, base: int) -> None:
        if not code and ledger.ids.get(place[0]) == topic_id:
            rows = [
                Row(at, keys[at], value, Note(keys[at], dict(headers), times[at], asked))
                for at, value in enumerate(values)
            ]
            ledger.produced(*place, rows, base, asked)
        if not ended.done():
            ended.set_result(code)

    world.cluster.append(log, data, done)
    try:
        return await asyncio.wait_for(ended, 30.0)
    except TimeoutError:
        return ErrorCode.REQUEST_TIMED_OUT


def _place(world: TierWorld, chance: random.Random) -> Place:
    topic = chance.choice(list(world.topics))
    return topic, chance.randrange(world.topics[topic])


async def plain(world: TierWorld, name: str) -> None:
    """Produces a few records at a time; what fails is not repeated."""
    chance, number = world.chance(name), 0
    while not world.quiet:
        values = [b"%s-%d" % (name.encode(), number + i) for i in range(chance.randint(1, 8))]
        number += len(values)
        keys = [chance.choice(_KEYS) for _ in values] if world.queue_settings else ()
        headers = times_of_records(chance, world.clock.now_ms(), _DELAYS_MS) if world.queue_settings else ()
        await send(world, _place(world, chance), values, keys=keys, headers=headers)
        await asyncio.sleep(chance.choice([0.02, 0.3, 1.0]))


async def transactional(world: TierWorld, name: str) -> None:
    """Commits or aborts a few records at a time, mostly under the producer id that it had before."""
    chance, number = world.chance(name), 0
    producer: _Producer | None = None
    while not world.quiet:
        number += 1
        tag = b"%s.%d" % (name.encode(), number)
        if producer is None or chance.random() < 0.2:
            producer = _Producer(world.cluster.producer(None)[0], {})
        world.transactions.add(producer.id)
        places: dict[Place, None] = {}
        commit, failed = chance.random() < 0.6, False
        for _ in range(chance.randint(1, 3)):
            place = _place(world, chance)
            places[place] = None
            values = [b"tx-%d|%s" % (i, tag) for i in range(chance.randint(1, 4))]
            if await send(world, place, values, producer):
                commit, failed = False, True
                break
            producer.sequences[place] = producer.sequences.get(place, 0) + len(values)
            await asyncio.sleep(chance.choice([0, 0.01, 0.5]))
        fate = "commit" if commit else "abort"
        world.auditor.ledger.fates[tag] = fate
        world.story.tell(name, f"{fate}s {tag.decode()}")
        for place in places:
            await end(world, place, producer.id, commit=commit)
        world.transactions.discard(producer.id)
        if commit:
            world.auditor.ledger.sure.add(tag)
        if failed or "unclean elections" in world.plan.features:
            # its sequence is unknown, or its transaction may restart after its end was lost
            producer = None
        await asyncio.sleep(chance.choice([0.05, 0.3, 1.0]))


async def end(world: TierWorld, place: Place, producer_id: int, *, commit: bool) -> None:
    """Has the marker of a transaction written, however long that takes."""
    while (log := world.cluster.log(place)) is not None:
        ended: asyncio.Future[ErrorCode] = world.loop.create_future()

        def done(code: ErrorCode, base: int, ended: asyncio.Future[ErrorCode] = ended) -> None:
            ended.set_result(code)

        world.cluster.append(log, marker(producer_id, commit=commit), done)
        if not await ended:
            return
        await asyncio.sleep(0.3)
