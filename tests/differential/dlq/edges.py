"""Sizes at the edge: one letter, and a batch of many, against the topic's max.message.bytes."""

from __future__ import annotations

from tests.differential.dlq.member import ACCEPT, REJECT
from tests.differential.dlq.registry import scenario
from tests.differential.dlq.side import ALLOWED, TOPIC, Entry
from tests.differential.dlq.world import Seen, World
from tests.harness.batches import keyed_batch

_LIMIT = 1500
_AROUND = (-2, -1, 0, 1, 2)
_BATCH_HEADER = 61


def _limit(size: int) -> dict[str, str]:
    return ALLOWED | {"max.message.bytes": str(size)}


def _letter(world: World, offset: int, entry: Entry) -> bytes:
    """Return a letter with its record in a batch of its own."""
    told = {
        "topic": world.source,
        "partition": "0",
        "offset": str(offset),
        "group": world.group,
        "delivery.count": "1",
        "message": "Offset rejected by client.",
    }
    headers = [(f"__dlq.errors.{name}", text.encode()) for name, text in told.items()]
    return keyed_batch([entry], headers=headers)


def _of_size(size: int, world: World | None, key: bytes = b"k") -> Entry:
    """Return a record of which the batch (with the headers of a letter where there is a world) has a size."""
    value = bytes(size)
    while True:
        entry = key, value
        made = len(_letter(world, 10, entry) if world else keyed_batch([entry]))
        if made <= size:
            assert made == size
            return entry
        value = value[: len(value) - (made - size)]


def _one_by_one(world: World, entries: list[Entry]) -> Seen:
    """What became of each record: it is rejected alone; the first ten are small."""
    member = world.begin([(b"k", b"v")] * 10 + entries, queue=_limit(_LIMIT), copy=True)
    member.take(10 + len(entries))
    codes = []
    for offset in range(10, 10 + len(entries)):
        codes.append(member.acknowledge((offset, offset, REJECT)))
        world.outcome([offset])
    told = world.told()
    kept = {offset: told.get(offset, "nothing") for offset in range(10, 10 + len(entries))}
    return {"answers": codes, "kept": kept}


@scenario
def a_letter_at_the_edge(world: World) -> Seen:
    """With its headers it is as large as the topic takes, or a byte less or more."""
    return _one_by_one(world, [_of_size(_LIMIT + more, world) for more in _AROUND])


@scenario
def a_record_at_the_edge(world: World) -> Seen:
    """Without a letter's headers, and with or without a batch's."""
    sizes = [_LIMIT + more for more in _AROUND] + [_LIMIT + _BATCH_HEADER + more for more in _AROUND]
    return _one_by_one(world, [_of_size(size, None) for size in sizes])


@scenario
def a_key_at_the_edge(world: World) -> Seen:
    entries: list[Entry] = [(bytes(size), None) for size in (900, 1400, 1600)]
    return _one_by_one(world, entries)


def _batches(world: World, entry: Entry, *, copy: bool) -> Seen:
    """Ranges of ten letters, of which five fit a batch, or lack a byte, or leave one."""
    like = entry if copy else (None, None)
    five = _BATCH_HEADER + 5 * (len(_letter(world, 10, like)) - _BATCH_HEADER)
    member = world.begin([entry] * 10, copy=copy)
    member.take(10)
    codes = [member.acknowledge((0, 9, ACCEPT))]
    for turn, more in enumerate((-1, 0, 1, 40), 1):
        world.side.configure(TOPIC, world.dlq, _limit(five + more))
        world.side.produce(world.source, [entry] * 10)
        member.take(10)
        codes.append(member.acknowledge((turn * 10, turn * 10 + 9, REJECT)))
        world.outcome(range(turn * 10, turn * 10 + 10))
    found = world.outcome(range(10, 50), 40, lag=0)
    return {"answers": codes, "batches": world.batches()} | found


@scenario
def batches_at_the_edge(world: World) -> Seen:
    return _batches(world, (b"k", b"v" * 50), copy=True)


@scenario
def bare_batches_at_the_edge(world: World) -> Seen:
    return _batches(world, (b"k", b"v" * 50), copy=False)


@scenario
def one_batch_of_two_thousand(world: World) -> Seen:
    member = world.begin(2000)
    member.take(2000)
    code = member.acknowledge((0, 1999, REJECT))
    found = world.outcome(range(2000), 2000, lag=0)
    return {"answer": code, "batches": world.batches()} | found


def _megabytes(world: World, times: int, entries: int) -> Seen:
    records = [(f"k{number}".encode(), b"%d" % number * 1000) for number in range(entries)]
    member = world.begin([], copy=True, source={"max.message.bytes": "8000000"})
    for _ in range(times):
        world.side.produce(world.source, records)
    member.take(times * entries)
    code = member.acknowledge((0, times * entries - 1, REJECT))
    found = world.outcome(range(times * entries), times * entries, lag=0)
    letters = found.pop("letters")
    kept = [(each["key"], each["value"], each["headers"][2]) for each in letters[0]]
    return {"answer": code, "kept": kept} | found


@scenario
def copies_of_megabytes(world: World) -> Seen:
    """More than a read of the source brings, and than a batch of letters holds."""
    return _megabytes(world, 30, 60)


@scenario
def copies_of_megabytes_in_one_batch(world: World) -> Seen:
    found = _megabytes(world, 1, 1800)
    return found | {"batches": world.batches()}


@scenario
def larger_than_a_segment(world: World) -> Seen:
    """The topic's max.message.bytes is above its segment.bytes: the smaller of them counts."""
    member = world.begin(
        [(b"k", b"v" * 2000)] * 700,
        queue=ALLOWED | {"max.message.bytes": "4000000", "segment.bytes": "1048576"},
        source={"max.message.bytes": "4000000"},
        copy=True,
    )
    member.take(700)
    code = member.acknowledge((0, 699, REJECT))
    return {"answer": code} | world.outcome(range(700), lag=0)


@scenario
def a_range_with_some_that_are_too_large(world: World) -> Seen:
    entries = [(b"k%d" % number, b"x" * (3000 if number % 7 == 3 else 20)) for number in range(40)]
    member = world.begin(entries, queue=_limit(_LIMIT), copy=True)
    member.take(40)
    code = member.acknowledge((0, 39, REJECT))
    found = world.outcome(range(40), 40, lag=0)
    return {"answer": code, "batches": world.batches()} | found


@scenario
def compressed_at_the_edge(world: World) -> Seen:
    """The records of a compressed batch are as large as the topic takes, or a byte less or more."""
    kept, codes = {}, []
    for more in (-80, -62, -61, -60, -2, -1, 0, 1, 2, 60, 61, 62):
        each = World(world.side, f"{world.group[:-6]}-{more + 80}")
        whole = len(keyed_batch([(b"k0", b"x" * 1000), (b"k1", b"x" * 1000)]))
        member = each.begin(
            [(b"k0", b"x" * 1000), (b"k1", b"x" * (1000 + more))],
            queue=_limit(whole),
            copy=True,
            gzipped=True,
        )
        member.take(2)
        codes.append(member.acknowledge((0, 0, REJECT)))
        each.outcome([0])
        kept[more] = each.told().get(0, "nothing")
    return {"answers": codes, "kept": kept}
