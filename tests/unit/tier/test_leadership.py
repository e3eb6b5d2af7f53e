"""Slots are taken over, lost and released; meanwhile, clients are told what to do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.unit.coordinator_log.world import World
from tests.unit.tier.partition import TOPIC, Following, Partition, Writer

from sharecore.errors import ErrorCode, KafkaError
from sharecore.tier.slots import leadership as module
from sharecore.tier.slots.leadership import Leadership, Role, Slot
from sharecore.tier.slots.lease import Lease
from sharecore.tier.slots.log import Right, SlotLog
from sharecore.tier.slots.ownership import Ownership


def theirs(*slots: int, epoch: int = 0) -> dict[int, Role]:
    """Slots that nobody else may own."""
    return dict.fromkeys(slots, Role(epoch, Right.ANY))


class Tier:
    """A node with two slots, and its orders for them."""

    def __init__(self, partitions: list[Partition] | None = None, node_id: int = 1) -> None:
        self.partitions = partitions or [Partition(), Partition()]
        self.done: list[tuple[str, int]] = []
        self.released: list[bool] = []
        self.told: list[tuple[int, Ownership]] = []
        self.now_ms, self.heard_ms = 0, 0
        self.damaged = False
        slots = [
            Slot(
                SlotLog(TOPIC, index, node_id, partition, Writer(partition), World(), self._lost),
                World(),
            )
            for index, partition in enumerate(self.partitions)
        ]
        lease = Lease(lambda: self.heard_ms, lambda: self.now_ms)
        self.leadership = Leadership(slots, lease, node_id, lambda: Following(self.partitions))
        self.leadership.begin(self, lambda *told: self.told.append(told))

    def _lost(self, log: SlotLog, error: KafkaError) -> None:
        self.leadership.lost(log, error)

    async def look(self) -> None:
        await asyncio.sleep(0)

    def take_over(self, slot: int, *, was_released: bool) -> None:
        if self.damaged:
            self.damaged = False
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "damaged")
        self.done.append(("take", slot))
        self.released.append(was_released)

    def resign(self, slot: int) -> None:
        self.done.append(("resign", slot))

    async def rest(self, slot: int) -> None:
        self.done.append(("rest", slot))

    def resume(self, slot: int) -> None:
        self.done.append(("resume", slot))

    def check(self, slot: int) -> ErrorCode | None:
        try:
            self.leadership.check(slot)
        except KafkaError as error:
            return error.code
        return None


def run(test: Callable[[], Awaitable[None]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_RETRY_S", 0.01)
    monkeypatch.setattr(module, "_CLAIM_S", 0.1)

    async def main() -> None:
        await asyncio.wait_for(test(), 10)

    asyncio.run(main())


def test_slots_are_taken_and_given_up_as_assigned(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        tier = Tier()
        assert tier.check(0) is ErrorCode.NOT_COORDINATOR
        tier.leadership.assign(theirs(0, epoch=5))
        assert tier.check(0) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await tier.leadership.settled()
        assert tier.leadership.slots[0].log.epoch == 5
        assert (tier.check(0), tier.check(1)) == (None, ErrorCode.NOT_COORDINATOR)
        tier.leadership.assign(theirs(1, epoch=6))
        await tier.leadership.settled()
        assert (tier.check(0), tier.check(1)) == (ErrorCode.NOT_COORDINATOR, None)
        assert tier.done == [("take", 0), ("resign", 0), ("take", 1)]

    run(test, monkeypatch)


def test_a_slot_that_another_has_taken_is_given_up_at_once_and_left_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test() -> None:
        first = Tier()
        second = Tier(first.partitions, node_id=2)
        first.leadership.assign(theirs(0))
        await first.leadership.settled()
        second.leadership.assign(theirs(0))
        await second.leadership.settled()
        with pytest.raises(KafkaError) as error:
            await first.leadership.slots[0].state.append_local([(b"\0\0k", b"late")], now_ms=1).ticket
        assert error.value.code is ErrorCode.NOT_COORDINATOR
        assert first.check(0) is ErrorCode.NOT_COORDINATOR
        while len(first.told) < 2:  # noqa: ASYNC110 - there is nothing to wait for
            await asyncio.sleep(0.01)
        assert first.told == [(0, Ownership(1, 0)), (0, Ownership(2, 1))]
        assert first.done == [("take", 0), ("resign", 0)]
        assert second.check(0) is None
        assert (first.released, second.released) == ([True], [False]), "nobody had it, then the first"

    run(test, monkeypatch)


def test_a_slot_whose_claim_the_cluster_has_lost_is_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The previous claim is another node's, which knows that it has lost the slot."""

    async def test() -> None:
        former = Tier()
        former.leadership.assign(theirs(0))
        await former.leadership.settled()
        tier = Tier(former.partitions, node_id=2)
        tier.leadership.assign(theirs(0))
        await tier.leadership.settled()
        partition = tier.partitions[0]
        # an unclean election
        partition.end, _, _ = partition.batches.pop()
        tier.leadership.slots[0].log.give_up()
        while tier.check(0) is not None:  # noqa: ASYNC110 - there is nothing to wait for
            await asyncio.sleep(0.01)
        assert tier.told[-1] == (0, Ownership(2, 1))

    run(test, monkeypatch)


def test_a_slot_that_is_still_this_nodes_by_its_log_is_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a write was in the log was unknown, so the slot was released."""

    async def test() -> None:
        tier = Tier()
        tier.leadership.assign(theirs(0))
        await tier.leadership.settled()
        tier.leadership.slots[0].log.give_up()
        assert tier.check(0) is ErrorCode.NOT_COORDINATOR
        while tier.check(0) is not None:  # noqa: ASYNC110 - there is nothing to wait for
            await asyncio.sleep(0.01)
        assert tier.done == [("take", 0), ("resign", 0), ("take", 0)]

    run(test, monkeypatch)


def test_what_was_given_up_for_another_is_nobody_elses_to_take(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        first = Tier()
        successor, stranger = Tier(first.partitions, node_id=2), Tier(first.partitions, node_id=3)
        first.leadership.assign(theirs(0, epoch=5))
        await first.leadership.settled()
        for each in (successor, stranger):
            each.leadership.assign({0: Role(6, Right.GIVEN)})
        await asyncio.sleep(0.02)
        assert successor.leadership.awaited == [0]
        assert successor.check(0) is ErrorCode.NOT_COORDINATOR
        first.leadership.assign({0: Role(5, Right.ANY, next_id=2)})
        await first.leadership.left()
        while successor.check(0) is not None:  # noqa: ASYNC110 - there is nothing to wait for
            await asyncio.sleep(0)
        assert first.done == [("take", 0), ("rest", 0), ("resign", 0)]
        assert first.told[-1] == (0, Ownership(2, 6))
        assert successor.told == [(0, Ownership(2, 6))]
        await asyncio.sleep(0.02)
        assert stranger.check(0) is ErrorCode.NOT_COORDINATOR
        # a release from before the release of the expected owner does not count
        successor.leadership.assign({0: Role(6, next_id=1)})
        await successor.leadership.left()
        first.leadership.assign({0: Role(9, Right.GIVEN)})
        await asyncio.sleep(0.02)
        assert first.check(0) is ErrorCode.NOT_COORDINATOR
        first.leadership.decline()
        assert first.leadership.awaited == []

    run(test, monkeypatch)


def test_who_awaits_a_slot_has_read_it_by_the_time_it_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the claim itself is left, by a producer that is waiting for it."""

    async def test() -> None:
        owner = Tier()
        successor = Tier(owner.partitions, node_id=2)
        owner.leadership.assign(theirs(0))
        await owner.leadership.settled()
        log, partition = owner.leadership.slots[0].log, owner.partitions[0]
        log.append([(b"\0\0k", b"before")], 1)
        successor.leadership.assign({0: Role(1, Right.GIVEN)})
        await asyncio.sleep(0.02)
        log.append([(b"\0\0k", b"meanwhile")], 1)
        await asyncio.sleep(0.02)
        asked, epoch = partition.asked, partition.epoch
        owner.leadership.assign({0: Role(0, Right.ANY, next_id=2)})
        while successor.check(0) is not None:  # noqa: ASYNC110 - there is nothing to wait for
            await asyncio.sleep(0)
        assert (partition.asked, partition.epoch) == (asked, epoch)
        found = [value for _, _, _, value in successor.leadership.slots[0].state.scan(0)]
        assert found == [b"before", b"meanwhile"]
        assert successor.leadership.slots[0].log.append([(b"\0\0k", b"after")], 1).ticket.error is None

    run(test, monkeypatch)


def test_what_is_written_behind_what_an_heir_has_read_is_read_with_its_claim(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By compare and append: the claim is not where the read part ends."""

    async def test() -> None:
        owner = Tier()
        owner.leadership.assign(theirs(0))
        await owner.leadership.settled()
        log = owner.leadership.slots[0].log
        log.append([(b"\0\0k", b"read")], 1)
        successor = Tier(owner.partitions, node_id=2).leadership.slots[0].log
        read = await successor._read()
        assert not successor.is_given(read, 1)
        log.append([(b"\0\0k", b"behind")], 1)
        records = await successor.claim(1, Right.ANY, read)
        assert [value for _, _, _, value in records] == [b"read", b"behind"]
        assert successor.append([(b"\0\0k", b"after")], 1).ticket.error is None

    run(test, monkeypatch)


def test_an_heir_whose_producer_is_out_of_date_claims_with_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """The owner has claimed its slot again meanwhile: the cluster refuses older epochs."""

    async def test() -> None:
        owner = Tier()
        owner.leadership.assign(theirs(0))
        await owner.leadership.settled()
        successor = Tier(owner.partitions, node_id=2)
        successor.leadership.assign({0: Role(1, Right.GIVEN)})
        await asyncio.sleep(0.02)
        owner.leadership.slots[0].log.give_up()
        while owner.check(0) is not None:  # noqa: ASYNC110 - there is nothing to wait for
            await asyncio.sleep(0.01)
        owner.partitions[0].fences = True
        owner.leadership.assign({0: Role(0, Right.ANY, next_id=2)})
        while successor.check(0) is not None:  # noqa: ASYNC110 - there is nothing to wait for
            await asyncio.sleep(0.01)
        assert successor.leadership.slots[0].log.append([(b"\0\0k", b"after")], 1).ticket.error is None

    run(test, monkeypatch)


@pytest.mark.parametrize("seen", [True, False])
def test_who_has_released_a_slot_keeps_fetches_waiting_until_it_is_claimed(
    seen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_CLAIM_S", 5.0 if seen else 0.05)

    async def test() -> None:
        tier = Tier()
        leadership = tier.leadership
        leadership.assign(theirs(0))
        await leadership.settled()
        leadership.assign({0: Role(0, Right.ANY, next_id=2)})
        while not leadership.parts(0):  # noqa: ASYNC110 - there is nothing to wait for
            await asyncio.sleep(0)
        assert tier.told[-1] == (0, Ownership(2, 1)), "the others hear of it at once"
        assert (tier.check(0), leadership.owns(0)) == (ErrorCode.NOT_COORDINATOR, False)
        leadership.seen(0, 0)
        await asyncio.sleep(0.01)
        assert tier.done == [("take", 0), ("rest", 0)], "that was its own claim"
        if seen:
            leadership.seen(0, 1)
        await leadership.left()
        assert tier.done[2:] == [("resign", 0)]
        assert not leadership.parts(0)

    run(test, monkeypatch)


@pytest.mark.parametrize("told_to_wait", [False, True])
def test_a_slot_that_comes_back_before_the_next_node_has_claimed_it_is_taken_again(
    told_to_wait: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        tier = Tier()
        leadership = tier.leadership
        leadership.assign(theirs(0))
        await leadership.settled()
        leadership.assign({0: Role(0, Right.ANY, next_id=2)})
        while not leadership.parts(0):  # noqa: ASYNC110 - there is nothing to wait for
            await asyncio.sleep(0)
        if told_to_wait:
            leadership.assign({0: Role(2, Right.GIVEN)})
            assert leadership.parts(0), "it is not its own yet"
        leadership.assign(theirs(0, epoch=2))
        await leadership.settled()
        assert tier.check(0) is None
        assert tier.done == [("take", 0), ("rest", 0), ("resign", 0), ("take", 0)]
        assert tier.told[-1] == (0, Ownership(1, 2))
        await asyncio.sleep(0.05)
        assert tier.done[4:] == []

    run(test, monkeypatch)


def test_who_has_released_a_slot_and_ends_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        tier = Tier()
        tier.leadership.assign(theirs(0))
        await tier.leadership.settled()
        tier.leadership.assign({0: Role(0, Right.ANY, next_id=2)})
        while not tier.leadership.parts(0):  # noqa: ASYNC110 - there is nothing to wait for
            await asyncio.sleep(0)
        tier.leadership.close()
        assert tier.done[-1] == ("resign", 0)

    run(test, monkeypatch)


def test_writes_behind_a_release_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        tier = Tier()
        tier.leadership.assign(theirs(0))
        await tier.leadership.settled()
        log = tier.leadership.slots[0].log
        log.append([(b"\0\0k", b"before")], 1)
        await log.release(2)
        with pytest.raises(KafkaError) as error:
            log.append([(b"\0\0k", b"behind")], 1)
        assert error.value.code is ErrorCode.NOT_COORDINATOR
        records = await Tier(tier.partitions, node_id=2).leadership.slots[0].log.claim(0, Right.GIVEN)
        assert [value for _, _, _, value in records] == [b"before"]

    run(test, monkeypatch)


def test_a_node_that_was_not_heard_for_long_owns_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Layer 4: only time, without a claim by anyone else."""

    async def test() -> None:
        tier = Tier()
        tier.leadership.assign(theirs(0))
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
        tier.leadership.assign(theirs(0))
        await tier.leadership.settled()
        assert tier.check(0) is None
        assert tier.done == [("resign", 0), ("take", 0)]

    run(test, monkeypatch)


def test_a_claim_under_way_ends_when_the_slot_is_another_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        tier = Tier()
        tier.leadership.assign(theirs(0))
        tier.leadership.assign({})
        await asyncio.sleep(0.05)
        assert tier.done == []
        assert tier.check(0) is ErrorCode.NOT_COORDINATOR

    run(test, monkeypatch)


def test_nobody_is_heard_before_the_first_word() -> None:
    assert not Lease(lambda: None, lambda: 0).holds
