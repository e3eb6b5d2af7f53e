"""Those who produce: plainly, idempotently, in transactions."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

from tests.harness.batches import batch, keyed_batch
from tests.simulation.wire import Gone, Wire

from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey

if TYPE_CHECKING:
    from tests.simulation.world import World

_KEYS = 6
_DONE = (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
_DURABLE_TOPICS = ("first", "second")


def produced(topic: str, index: int, records: bytes, transactional_id: str | None = None) -> dict[str, Any]:
    """The fields of a Produce request for one partition."""
    data = [{"name": topic, "partition_data": [{"index": index, "records": records}]}]
    return {"transactional_id": transactional_id, "acks": -1, "timeout_ms": 5000, "topic_data": data}


def code_of(answer: Any) -> int:
    """The error of the only partition of a Produce answer."""
    code: int = answer.responses[0].partition_responses[0].error_code
    return code


def _place(world: World, chance: random.Random, *, durable: bool) -> tuple[str, int]:
    names = [name for name in world.topics if not durable or name in _DURABLE_TOPICS]
    topic = chance.choice(names)
    return topic, chance.randrange(world.topics[topic])


async def plain(world: World, name: str) -> None:
    """Produces a few records at a time; what was not answered is not repeated."""
    chance, number = world.chance(name), 0
    wire: Wire | None = None
    while not world.quiet:
        try:
            if wire is None or wire.closed:
                wire = await Wire.open(name)
            requests = []
            for _ in range(chance.choice([1, 1, 1, 4])):
                topic, index = _place(world, chance, durable=False)
                values = [b"%s-%d" % (name.encode(), number + i) for i in range(chance.randint(1, 6))]
                number += len(values)
                times = [world.clock.now_ms()] * len(values)
                if topic == "compacted":
                    keyed = [(b"key-%d" % chance.randrange(_KEYS), value) for value in values]
                    records = keyed_batch(keyed, timestamps=times)
                else:
                    records = batch(values, timestamps=times)
                requests.append(wire.send(ApiKey.PRODUCE, 12, **produced(topic, index, records)))
            for request in requests:
                await asyncio.wait_for(request, 30)
        except (Gone, TimeoutError):
            wire = None
        await asyncio.sleep(chance.choice([0.001, 0.02, 0.3]))


async def _producer_id(wire: Wire, transactional_id: str | None) -> tuple[int, int]:
    while True:
        answer = await wire.ask(
            ApiKey.INIT_PRODUCER_ID,
            4,
            transactional_id=transactional_id,
            transaction_timeout_ms=20_000,
            producer_id=-1,
            producer_epoch=-1,
        )
        if answer.error_code == 0:
            return answer.producer_id, answer.producer_epoch
        await asyncio.sleep(0.2)


async def idempotent(world: World, name: str) -> None:
    """Repeats a batch until it is answered: each record is there once."""
    chance, number = world.chance(name), 0
    wire: Wire | None = None
    producer: tuple[int, int] | None = None
    sequences: dict[tuple[str, int], int] = {}
    losses = 0
    while not world.quiet:
        if losses != world.auditor.losses:
            producer = None
        place = _place(world, chance, durable=True)
        values = [b"once-%s-%d" % (name.encode(), number + i) for i in range(chance.randint(1, 4))]
        number += len(values)
        for _ in range(world.attempts):
            if producer is not None and losses != world.auditor.losses:
                # its id may be given to another producer, and it is unknown whether these records exist
                world.story.tell(name, "begins anew: the broker has lost records")
                producer = None
                break
            try:
                if wire is None or wire.closed:
                    wire = await Wire.open(name)
                if producer is None:
                    losses = world.auditor.losses
                    producer, sequences = await _producer_id(wire, None), {}
                records = batch(
                    values,
                    timestamps=[world.clock.now_ms()] * len(values),
                    producer_id=producer[0],
                    producer_epoch=producer[1],
                    sequence=sequences.get(place, 0),
                )
                answer = await wire.ask(ApiKey.PRODUCE, 12, **produced(*place, records))
                if code_of(answer) in _DONE:
                    sequences[place] = sequences.get(place, 0) + len(values)
                    break
                # a salvaged disk may have lost the topic, until the administrator recreates it
                whole = losses == world.auditor.losses and not world.auditor.ledger.harmed
                if whole and code_of(answer) != ErrorCode.KAFKA_STORAGE_ERROR:
                    world.story.broken(
                        "sequence refused",
                        f"{name} to {place} from {sequences.get(place, 0)}: error {code_of(answer)}",
                    )
                    return
            except Gone:
                wire = None
            await asyncio.sleep(0.1)
        else:
            if not world.quiet:
                world.story.broken("producer stuck", f"{name}: {world.attempts} attempts")
            return
        await asyncio.sleep(chance.choice([0.01, 0.1, 0.5]))


async def twin(world: World, name: str) -> None:
    """One of several who believe that a transactional id is theirs: the newest fences the others."""
    await transactional(world, name, "twins")


async def transactional(world: World, name: str, transactional_id: str = "") -> None:
    """Commits or aborts a few records at a time."""
    own = transactional_id or name
    chance, number = world.chance(name), 0
    wire: Wire | None = None
    producer: tuple[int, int] | None = None
    sequences: dict[tuple[str, int], int] = {}
    while not world.quiet:
        number += 1
        tag = b"%s.%d" % (name.encode(), number)
        try:
            if wire is None or wire.closed:
                wire = await Wire.open(name)
            if producer is None:
                producer, sequences = await _producer_id(wire, own), {}
            for _ in range(chance.randint(1, 3)):
                place = _place(world, chance, durable=True)
                await _join(wire, own, producer, place)
                values = [b"tx-%d|%s" % (i, tag) for i in range(chance.randint(1, 3))]
                records = batch(
                    values,
                    timestamps=[world.clock.now_ms()] * len(values),
                    producer_id=producer[0],
                    producer_epoch=producer[1],
                    sequence=sequences.get(place, 0),
                    transactional=True,
                )
                answer = await wire.ask(ApiKey.PRODUCE, 12, **produced(*place, records, own))
                if code_of(answer):
                    raise Gone(f"error {code_of(answer)}")
                sequences[place] = sequences.get(place, 0) + len(values)
                await asyncio.sleep(chance.choice([0, 0.01, 0.5]))
            commit = chance.random() < 0.6
            fate = "commit" if commit else "abort"
            world.auditor.ledger.fates[tag] = fate
            world.story.tell(name, f"{fate}s {tag.decode()}")
            answer = await wire.ask(
                ApiKey.END_TXN,
                3,
                transactional_id=own,
                producer_id=producer[0],
                producer_epoch=producer[1],
                committed=commit,
            )
            if answer.error_code:
                raise Gone(f"error {answer.error_code}")
            if commit:
                world.auditor.ledger.sure.add(tag)
        except Gone as gone:
            world.story.tell(name, f"begins anew: {gone}")
            producer = None
            if wire is not None:
                wire.close()
            wire = None
            await asyncio.sleep(0.2)
        await asyncio.sleep(chance.choice([0.01, 0.1, 0.6]))


async def _join(wire: Wire, name: str, producer: tuple[int, int], place: tuple[str, int]) -> None:
    """Adds a partition to the transaction, once the one before has ended."""
    for _ in range(50):
        answer = await wire.ask(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            3,
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=[{"name": place[0], "partitions": [place[1]]}],
        )
        code = answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
        if code == 0:
            return
        if code != ErrorCode.CONCURRENT_TRANSACTIONS:
            raise Gone(f"error {code}")
        await asyncio.sleep(0.05)
    raise Gone("the transaction before does not end")
