"""Slots are taken, lost and given up; who asks meanwhile is told what to do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.unit.coordinator_log.world import World
from tests.unit.tier.partition import TOPIC, Partition, Writer

from sharecore.errors import ErrorCode, KafkaError
from sharecore.tier import leadership as module
from sharecore.tier.leadership import Leadership, Slot
from sharecore.tier.lease import Lease
from sharecore.tier.slot_log import SlotLog


class Tier:
    """A node with two slots, and what it was told to do with them."""

    def __init__(self, partitions: list[Partition] | None = None) -> None:
        self.partitions = partitions or [Partition(), Partition()]
        self.done: list[tuple[str, int]] = []
        self.now_ms, self.heard_ms = 0, 0
        self.damaged = False
        slots = [
            Slot(
                SlotLog(TOPIC, index, 1, partition, Writer(partition), World(), self._lost),
                World(),
            )
            for index, partition in enumerate(self.partitions)
        ]
        self.leadership = Leadership(slots, Lease(lambda: self.heard_ms, lambda: self.now_ms))
        self.leadership.begin(self)

    def _lost(self, log: SlotLog, error: KafkaError) -> None:
        self.leadership.lost(log, error)

    def take_over(self, slot: int) -> None:
        if self.damaged:
            self.damaged = False
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "damaged")
        self.done.append(("take", slot))

    def resign(self, slot: int) -> None:
        self.done.append(("resign", slot))

    def check(self, slot: int) -> ErrorCode | None:
        try:
            self.leadership.check(slot)
        except KafkaError as error:
            return error.code
        return None


def run(test: Callable[[], Awaitable[None]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_RETRY_S", 0.01)

    async def main() -> None:
        await asyncio.wait_for(test(), 10)

    asyncio.run(main())


def test_slots_are_taken_and_given_up_as_assigned(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        tier = Tier()
        assert tier.check(0) is ErrorCode.NOT_COORDINATOR
        tier.leadership.assign({0: 5})
        assert tier.check(0) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await tier.leadership.settled()
        assert tier.leadership.slots[0].log.epoch == 5
        assert (tier.check(0), tier.check(1)) == (None, ErrorCode.NOT_COORDINATOR)
        tier.leadership.assign({1: 6})
        await tier.leadership.settled()
        assert (tier.check(0), tier.check(1)) == (ErrorCode.NOT_COORDINATOR, None)
        assert tier.done == [("take", 0), ("resign", 0), ("take", 1)]

    run(test, monkeypatch)


def test_a_slot_that_another_has_written_is_given_up_at_once_and_taken_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test() -> None:
        first = Tier()
        second = Tier(first.partitions)
        first.leadership.assign({0: 0})
        await first.leadership.settled()
        second.leadership.assign({0: 0})
        await second.leadership.settled()
        with pytest.raises(KafkaError) as error:
            await first.leadership.slots[0].state.append_local([(b"\0\0k", b"late")], now_ms=1).ticket
        assert error.value.code is ErrorCode.NOT_COORDINATOR
        assert first.check(0) is ErrorCode.NOT_COORDINATOR
        second.leadership.assign({})
        while first.check(0) is not None:  # noqa: ASYNC110 - there is nothing to wait for
            await asyncio.sleep(0.01)
        assert first.done == [("take", 0), ("resign", 0), ("take", 0)]
        assert first.leadership.slots[0].log.epoch > second.leadership.slots[0].log.epoch

    run(test, monkeypatch)


def test_a_node_that_was_not_heard_for_long_owns_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Layer 4: time alone, nobody else having written a claim."""

    async def test() -> None:
        tier = Tier()
        tier.leadership.assign({0: 0})
        await tier.leadership.settled()
        tier.now_ms = 7_000
        assert tier.check(0) is None
        tier.now_ms = 7_001
        assert tier.check(0) is ErrorCode.NOT_COORDINATOR
        tier.heard_ms = 7_000
        assert tier.check(0) is None

    run(test, monkeypatch)


def test_a_slot_whose_records_cannot_be_read_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        tier = Tier()
        tier.damaged = True
        tier.leadership.assign({0: 0})
        await tier.leadership.settled()
        assert tier.check(0) is None
        assert tier.done == [("resign", 0), ("take", 0)]

    run(test, monkeypatch)


def test_a_claim_under_way_ends_when_the_slot_is_another_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        tier = Tier()
        tier.leadership.assign({0: 0})
        tier.leadership.assign({})
        await asyncio.sleep(0.05)
        assert tier.done == []
        assert tier.check(0) is ErrorCode.NOT_COORDINATOR

    run(test, monkeypatch)


def test_nobody_is_heard_before_the_first_word() -> None:
    assert not Lease(lambda: None, lambda: 0).holds
