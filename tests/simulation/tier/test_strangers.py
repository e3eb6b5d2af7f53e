"""A slot's owner goes on past what strangers write to its partition, and past nothing that contradicts it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from struct import Struct

import pytest
from tests.harness.batches import keyed_batch
from tests.simulation.tier.cluster import Cluster
from tests.simulation.tier.log import Log, marker
from tests.simulation.tier.test_layers import STATE, Bench, Owner, played

from sharecore._core import encode_batch
from sharecore.errors import ErrorCode
from sharecore.tier.slots.claims import claim_record
from sharecore.tier.slots.log import Read

_PRODUCER_AT = 43
_PRODUCER = Struct(">qh")
STRANGERS: dict[str, Callable[[], bytes]] = {
    "the marker of a transaction": lambda: marker(77, commit=False),
    "a record": lambda: keyed_batch([(b"theirs", b"mine")]),
    "a record that looks like state": lambda: keyed_batch([(b"\0\1key", b"forged")]),
    "a record of an idempotent producer": lambda: keyed_batch([(b"k", b"v")], producer_id=77),
    "a claim of an epoch that has passed": lambda: encode_batch(
        [claim_record(0, -1, 9, 1)], now_ms=1, producer=(77, 0, 0)
    ),
    "a batch that cannot be read": lambda: _damaged(keyed_batch([(b"k", b"v" * 50)])),
}


def _damaged(data: bytes) -> bytes:
    """A batch that says that it is compressed, and is not."""
    made = bytearray(data)
    made[22] |= 2
    return bytes(made)


async def _put(cluster: Cluster, log: Log, data: bytes) -> None:
    ended: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
    cluster.append(log, data, lambda code, base: ended.set_result(code))
    assert await ended == ErrorCode.NONE


class Room:
    """A slot, its owner, and who comes next."""

    def __init__(self, bench: Bench) -> None:
        self.cluster = bench.cluster
        self.log = self.cluster.create(STATE, 1).logs[0]
        self.cluster.told_all()
        self.first, self.second = Owner(bench, 1), Owner(bench, 2)

    async def begin(self) -> Room:
        for owner in (self.first, self.second):
            await owner.run(owner.start)
        return self

    async def writes(self, owner: Owner, value: bytes) -> bool:
        return bool(await owner.run(lambda: owner.append(value)))

    async def claims(self, owner: Owner) -> object:
        return await owner.run(owner.claim)

    async def reads(self, owner: Owner) -> Read:
        """The slot's partition as it is read to be claimed later."""
        read = await owner.run(owner.read)
        assert isinstance(read, Read)
        return read

    async def strange(self, data: bytes) -> None:
        await _put(self.cluster, self.log, data)


@pytest.mark.parametrize("kind", STRANGERS)
def test_an_owner_goes_on_past_what_a_stranger_has_written(kind: str) -> None:
    async def play(bench: Bench) -> None:
        room = await Room(bench).begin()
        await room.claims(room.first)
        for number in range(3):
            await room.strange(STRANGERS[kind]())
            assert await room.writes(room.first, b"%d" % number)
            assert room.first.log.owned
        assert room.first.log.epoch == 0, "the slot was claimed again"
        assert await room.claims(room.second) == [b"0", b"1", b"2"]

    played(play)


def test_what_is_staged_meanwhile_is_written_behind_it() -> None:
    async def play(bench: Bench) -> None:
        room = await Room(bench).begin()
        await room.claims(room.first)
        await room.strange(STRANGERS["a record"]())
        several = [room.writes(room.first, b"%d" % number) for number in range(5)]
        assert await asyncio.gather(*several) == [True] * 5
        assert await room.writes(room.first, b"5")
        assert await room.claims(room.second) == [b"%d" % number for number in range(6)]

    played(play)


def test_a_claim_is_made_past_what_a_stranger_has_written() -> None:
    """What the former owner has written behind what was read counts."""

    async def play(bench: Bench) -> None:
        room = await Room(bench).begin()
        await room.claims(room.first)
        assert await room.writes(room.first, b"before")
        read = await room.reads(room.second)
        await room.strange(STRANGERS["a record"]())
        assert await room.writes(room.first, b"in between")
        await room.strange(STRANGERS["the marker of a transaction"]())
        before = len(room.log.batches)
        assert await room.second.run(lambda: room.second.claim(read)) == [b"before", b"in between"]
        assert len(room.log.batches) == before + 1, "it was claimed more than once"
        assert await room.writes(room.second, b"after")
        assert room.log.end == room.second.log.end_offset

    played(play)


def test_an_owner_stops_at_the_claim_of_another() -> None:
    """Also where a stranger has written as well, and no other layer helps."""

    async def play(bench: Bench) -> None:
        room = await Room(bench).begin()
        await room.claims(room.first)
        await room.strange(STRANGERS["a record"]())
        await room.claims(room.second)
        await room.strange(STRANGERS["the marker of a transaction"]())
        assert not await room.writes(room.first, b"late")
        assert not room.first.log.owned
        assert await room.writes(room.second, b"in time")

    played(play, "producer epochs", "lease in time")


@pytest.mark.parametrize("lost", [1, 2])
def test_an_owner_stops_where_the_cluster_has_lost_what_it_has_written(lost: int) -> None:
    """Though strangers have filled the place of that, and more."""

    async def play(bench: Bench) -> None:
        room = await Room(bench).begin()
        await room.claims(room.first)
        assert await room.writes(room.first, b"one")
        assert await room.writes(room.first, b"two")
        room.cluster.lose(room.log, lost)
        for _ in range(lost + 2):
            await room.strange(STRANGERS["a record"]())
        # then it accepts any sequence number
        room.log.forget_producers()
        assert not await room.writes(room.first, b"three")
        assert not room.first.log.owned

    played(play)


def test_a_claim_is_not_made_past_what_the_cluster_has_lost() -> None:
    async def play(bench: Bench) -> None:
        room = await Room(bench).begin()
        await room.claims(room.first)
        assert await room.writes(room.first, b"kept")
        assert await room.writes(room.first, b"lost")
        read = await room.reads(room.second)
        room.cluster.lose(room.log, 1)
        for _ in range(3):
            await room.strange(STRANGERS["a record"]())
        assert await room.second.run(lambda: room.second.claim(read)) == [b"kept"]

    played(play)


def test_no_batch_counts_that_has_the_owners_producer_and_is_not_the_owners() -> None:
    """Somebody forges the id, epoch and sequence of the owner's producer: the slot is read again."""

    async def play(bench: Bench) -> None:
        room = await Room(bench).begin()
        await room.claims(room.first)
        assert await room.writes(room.first, b"one")
        producer = _PRODUCER.unpack_from(room.log.batches[-1].data, _PRODUCER_AT)
        await room.strange(encode_batch([(b"\0\1key", b"forged")], now_ms=1, producer=(*producer, 2)))
        room.log.forget_producers()
        assert not await room.writes(room.first, b"two")
        assert not room.first.log.owned

    played(play)
