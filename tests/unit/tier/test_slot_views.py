"""Groups in a slot: which part of the log is needed during writes, and after failures."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from tests.unit.coordinator_log.world import World
from tests.unit.tier.partition import Partition
from tests.unit.tier.test_slot_log import GROUP, Node

from sharecore.coordinator_log.topic_log import Record
from sharecore.errors import ErrorCode, KafkaError
from sharecore.storage import Appended, Ticket
from sharecore.tier.slots.log import SlotLog
from sharecore.tier.slots.upkeep import Upkeep
from sharecore.tier.slots.views import GroupView, StateView
from sharecore.upstream import NotWritten


class Held:
    """A slot's log whose writes last until their outcome is set (`slot_log.SlotLog`)."""

    topic, index, name, owned = "state", 0, "state-0", True

    def __init__(self) -> None:
        self.start_offset, self.high_watermark, self.end_offset = 0, 1, 1
        self.claims = [0]
        self.tickets: list[tuple[int, Ticket]] = []
        self.deleted: list[int] = []

    def append(self, records: Sequence[Record], now_ms: int) -> Appended:
        base, self.end_offset = self.end_offset, self.end_offset + len(records)
        ticket = Ticket(0)
        self.tickets.append((self.end_offset, ticket))
        return Appended(base, self.end_offset - 1, -1, 0, ticket)

    def end(self, error: KafkaError | None = None) -> None:
        """Complete the oldest write."""
        end, ticket = self.tickets.pop(0)
        if error is None:
            self.high_watermark = end
        ticket.settle(error)

    async def delete_before(self, offset: int) -> None:
        self.deleted.append(offset)


def _views() -> tuple[Held, StateView, GroupView]:
    held = Held()
    log = cast(SlotLog, held)
    return held, StateView(log), GroupView(log)


def _write(groups: GroupView, key: bytes, value: bytes | None) -> None:
    groups.append_local([(key, value)], now_ms=1)


def test_a_write_that_was_given_up_leaves_what_was_there_before() -> None:
    """The next owner finds the confirmed value, however much is deleted meanwhile."""

    async def test() -> None:
        partition = Partition()
        one, two = Node(partition, 1), Node(partition, 2)
        await one.claim()
        assert one.write(b"first", GROUP) is None
        for number in range(20):
            one.write(b"%d" % number)
        await one.log.renew_claim()
        for _ in range(3):
            partition.refused = NotWritten(ErrorCode.KAFKA_STORAGE_ERROR, "not enough replicas")
            assert one.write(b"second", GROUP) is not None
        for number in range(20):
            one.write(b"%d" % number)
        one.state.delete_records(one.log.claims[-1] + 1)
        await Upkeep(one.log, one.state, one.groups, World(), least=5).look()
        assert partition.deleted, "nothing was to be deleted"
        await two.claim()
        assert [value for _, _, _, value in two.groups.scan(0)] == [b"first"]

    asyncio.run(test())


def test_a_tombstone_that_was_given_up_deletes_nothing() -> None:
    held, _, groups = _views()
    _write(groups, b"key", b"value")
    held.end()
    _write(groups, b"key", None)
    held.end(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    assert groups.older_than(2) == [(b"key", b"value")]


def test_a_value_counts_once_it_is_written() -> None:
    held, _, groups = _views()
    _write(groups, b"key", b"value")
    assert len(groups) == 0
    held.end()
    assert groups.keep_from == 1


def test_upkeep_puts_no_old_value_behind_a_new_one_that_is_being_written() -> None:
    async def test(error: KafkaError | None) -> Any:
        held, state, groups = _views()
        for key in (b"one", b"two"):
            _write(groups, key, b"old")
            held.end()
        held.end_offset = held.high_watermark = 100
        _write(groups, b"one", b"new")
        upkeep = asyncio.ensure_future(Upkeep(cast(SlotLog, held), state, groups, World(), least=5).look())
        held.claims = [99]
        await asyncio.sleep(0)
        held.end(error)  # of the new value
        while held.tickets:
            held.end()
        await upkeep
        return held, groups

    held, groups = asyncio.run(test(None))
    assert dict(groups.older_than(1000)) == {b"one": b"new", b"two": b"old"}
    assert held.deleted == [100]
    # if the new value could not be written, the old one stays
    held, groups = asyncio.run(test(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)))
    assert dict(groups.older_than(1000)) == {b"one": b"old", b"two": b"old"}
    assert held.deleted == [1]


def test_what_was_under_way_when_a_slot_was_claimed_anew_counts_for_nothing() -> None:
    held, _, groups = _views()
    _write(groups, b"key", b"late")
    groups.claimed([(7, 0, b"\0\x0akey", b"read")])
    held.end()
    assert groups.older_than(100) == [(b"\0\x0akey", b"read")]
