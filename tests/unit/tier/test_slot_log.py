"""A slot's partition: taken over by a claim, lost at the first write of anyone else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.coordinator_log.world import World
from tests.unit.tier.partition import TOPIC, Partition, Writer

from sharecore.errors import ErrorCode, KafkaError
from sharecore.tier.slots.log import SlotLog
from sharecore.tier.slots.upkeep import Upkeep
from sharecore.tier.slots.views import GroupView, StateView
from sharecore.upstream import NotWritten, Producer

STATE, GROUP = b"\0\0state", b"\0\x0agroup"


class Node:
    """A node's view of the slot."""

    def __init__(self, partition: Partition, node_id: int = 1, *, compares: bool = True) -> None:
        self.lost: list[KafkaError] = []
        self.log = SlotLog(
            TOPIC,
            0,
            node_id,
            partition,
            Writer(partition, compares=compares),
            World(),
            lambda log, error: self.lost.append(error),
        )
        self.state, self.groups = StateView(self.log), GroupView(self.log)

    async def claim(self, epoch: int = 0) -> list[bytes | None]:
        records = await self.log.claim(epoch)
        self.state.claimed(records)
        self.groups.claimed(records)
        return [value for _, _, _, value in records]

    def write(self, value: bytes, key: bytes = STATE) -> KafkaError | None:
        view = self.groups if key.startswith(b"\0\x0a") else self.state
        return view.append_local([(key, value)], now_ms=1).ticket.error


def run(test: Callable[[Partition], Any]) -> None:
    async def main() -> None:
        await test(Partition())

    asyncio.run(main())


def test_the_next_owner_reads_what_the_last_one_was_told_is_written() -> None:
    async def test(partition: Partition) -> None:
        first, second = Node(partition, 1), Node(partition, 2)
        assert await first.claim() == []
        for number in range(5):
            assert first.write(b"%d" % number) is None
        assert (first.log.high_watermark, first.log.end_offset) == (6, 6)
        assert await second.claim() == [b"0", b"1", b"2", b"3", b"4"]
        assert (first.log.epoch, second.log.epoch) == (0, 1)
        assert [record[3] for record in second.state.scan(0)] == [b"0", b"1", b"2", b"3", b"4"]

    run(test)


def test_epochs_grow_whatever_the_next_owner_knows() -> None:
    async def test(partition: Partition) -> None:
        for wanted, epoch in ((7, 7), (0, 8), (9, 9), (9, 10)):
            node = Node(partition)
            await node.claim(wanted)
            assert node.log.epoch == epoch

    run(test)


def test_compare_and_append_alone_keeps_a_late_write_from_being_told() -> None:
    """Layer 1, without valid claims and without producer epochs."""

    async def test(partition: Partition) -> None:
        first, second = Node(partition, 1), Node(partition, 2)
        await first.claim()
        assert first.write(b"in time") is None
        partition.append([(STATE, b"not even a claim")], 1, Producer(7, -1))
        error = first.write(b"too late")
        assert error is not None
        assert error.code is ErrorCode.NOT_COORDINATOR
        assert len(first.lost) == 1
        assert not first.log.owned
        with pytest.raises(KafkaError) as refused:
            first.write(b"later still")
        assert refused.value.code is ErrorCode.NOT_COORDINATOR
        # it precedes the next claim: it is valid, like any write whose writer got an error
        assert await second.claim() == [b"in time", b"too late"]

    run(test)


def test_a_claim_alone_keeps_a_late_write_from_counting() -> None:
    """Layer 2, with a writer that accepts any offset: it is deceived, but nobody reads the write."""

    async def test(partition: Partition) -> None:
        first, second = Node(partition, 1, compares=False), Node(partition, 2)
        await first.claim()
        assert first.write(b"in time") is None
        assert await second.claim() == [b"in time"]
        assert first.write(b"too late") is None, "what claims do not hold: the late writer hears nothing"
        third = Node(partition, 3)
        assert await third.claim() == [b"in time"]
        assert third.log.void == 1

    run(test)


def test_a_claim_that_another_comes_before_is_made_again() -> None:
    async def test(partition: Partition) -> None:
        first, second = Node(partition, 1), Node(partition, 2)
        await first.claim()
        partition.before_append = lambda: first.write(b"just before")
        assert await second.claim() == [b"just before"]
        assert second.log.epoch > first.log.epoch
        assert second.write(b"1") is None

    run(test)


def test_who_never_gets_to_a_claim_says_so() -> None:
    async def test(partition: Partition) -> None:
        node = Node(partition)
        producer = Producer(7, -1)

        def interfere() -> None:
            partition.append([(STATE, b"x")], 1, producer)
            partition.before_append = interfere

        partition.before_append = interfere
        with pytest.raises(KafkaError) as error:
            await node.claim()
        assert "keep claiming this slot" in error.value.message

    run(test)


def test_what_was_surely_not_written_may_be_tried_again() -> None:
    async def test(partition: Partition) -> None:
        node = Node(partition)
        await node.claim()
        partition.refused = NotWritten(ErrorCode.NOT_ENOUGH_REPLICAS, "too few replicas")
        error = node.write(b"1")
        assert error is not None
        assert error.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert (node.log.owned, node.log.end_offset) == (True, 1)
        assert node.write(b"1") is None
        assert node.log.end_offset == 2

    run(test)


def test_coordinators_see_their_own_records_and_each_once() -> None:
    async def test(partition: Partition) -> None:
        node, after = Node(partition), Node(partition)
        await node.claim()
        node.write(b"s1")
        node.write(b"g1", GROUP)
        node.write(b"s2")
        node.write(b"g2", GROUP)
        node.write(b"other", GROUP + b"2")
        await after.claim()
        assert [record[3] for record in after.state.scan(0)] == [b"s1", b"s2"]
        [batch] = after.groups.scan_batches(0)
        assert [(offset, value) for offset, _, _, value in batch.records] == [(4, b"g2"), (5, b"other")]
        assert list(after.groups.scan(0)) == []
        assert list(after.groups.scan_batches(0)) == []

    run(test)


def test_state_that_is_ahead_of_the_log_is_read_again_by_a_claim_alone() -> None:
    """Records read with the claim are dropped: otherwise none would be left."""

    async def test(partition: Partition) -> None:
        node = Node(partition)
        await node.claim()
        assert node.write(b"kept") is None
        list(node.state.scan(0))
        with pytest.raises(KafkaError) as error:
            list(node.state.scan(0))
        assert error.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert not node.log.owned
        assert len(node.lost) == 1
        await node.claim()
        assert [value for _, _, _, value in node.state.scan(0)] == [b"kept"]

    run(test)


def test_upkeep_deletes_what_nobody_needs_and_the_next_owner_reads_the_same() -> None:
    async def test(partition: Partition) -> None:
        node = Node(partition)
        await node.claim(3)
        upkeep = Upkeep(node.log, node.state, node.groups, World(), least=10)
        node.write(b"a group", GROUP)
        node.write(b"gone", GROUP + b"2")
        node.groups.append_local([(GROUP + b"2", None)], now_ms=1)
        for number in range(20):
            node.write(b"%d" % number)
        await upkeep.look()
        assert partition.deleted == [], "the oldest snapshot is needed"
        snapshot = node.state.append_local([(STATE, b"snapshot")], now_ms=1).base_offset
        node.write(b"update")
        node.state.delete_records(snapshot)
        await upkeep.look()
        assert partition.deleted == [snapshot - 1], "the claim that was renewed before it stays"
        after = Node(partition)
        assert await after.claim() == [b"snapshot", b"update", b"a group"]
        assert after.log.epoch == 4
        assert [record[3] for record in after.state.scan(0)] == [b"snapshot", b"update"]

    run(test)


def test_a_slot_that_was_given_up_takes_no_more() -> None:
    async def test(partition: Partition) -> None:
        node = Node(partition)
        await node.claim()
        node.log.resign()
        with pytest.raises(KafkaError) as error:
            node.write(b"1")
        assert error.value.code is ErrorCode.NOT_COORDINATOR
        assert node.lost == [], "it was not lost but given up"
        await node.claim()
        assert node.write(b"1") is None

    run(test)


def test_records_that_the_cluster_has_lost_are_not_passed_over_in_silence() -> None:
    async def test(partition: Partition) -> None:
        node = Node(partition)
        await node.claim()
        node.write(b"1")
        partition.batches.pop()
        with pytest.raises(KafkaError) as error:
            await Node(partition).claim()
        assert "records of it are lost" in error.value.message

    run(test)
