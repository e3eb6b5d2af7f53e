"""Any damage of a slot's partition is detected, and readable records are kept."""

from __future__ import annotations

import asyncio
import struct
from types import SimpleNamespace
from typing import Any, cast

from tests.unit.coordinator_log.world import World
from tests.unit.tier.partition import Partition, Writer

from sharecore.tier.operation.operator import Operator
from sharecore.tier.operation.repair import Finding, look
from sharecore.tier.slots.log import SlotLog

KEY = b"\0\0key"


async def written() -> Partition:
    """Return a slot with two consecutive owners, and three records of each."""
    partition = Partition()
    for node_id in (1, 2):
        log = SlotLog("state", 0, node_id, partition, Writer(partition), World(), lambda log, error: None)
        await log.claim(0)
        for number in range(3):
            log.append([(KEY, b"%d-%d" % (node_id, number))], 1)
        await log.release(2)
    return partition


async def find(partition: Partition) -> Finding:
    operator: Any = SimpleNamespace(topic="state", admin=partition)
    return await look(cast(Operator, operator), 0)


def values(finding: Finding) -> list[bytes | None]:
    return [value for _, value in finding.kept]


ALL = [b"1-0", b"1-1", b"1-2", b"2-0", b"2-1", b"2-2"]


def test_a_whole_slot_is_whole() -> None:
    async def test() -> None:
        finding = await find(await written())
        assert finding.is_whole
        assert (finding.records, finding.epoch, values(finding)) == (6, 1, ALL)
        assert (await find(Partition())).is_whole

    asyncio.run(test())


def test_what_compaction_took_away_is_missed_and_the_rest_is_kept() -> None:
    async def test() -> None:
        partition = await written()
        del partition.batches[1:3]
        finding = await find(partition)
        assert (finding.lost, finding.unclaimed, finding.is_whole) == (2, 0, False)
        assert values(finding) == ALL[2:]

    asyncio.run(test())


def test_records_whose_claim_is_gone_are_kept_all_the_same() -> None:
    async def test() -> None:
        partition = await written()
        partition.start = 1
        del partition.batches[0]
        finding = await find(partition)
        assert (finding.lost, finding.unclaimed, finding.is_whole) == (0, 3, False)
        assert values(finding) == ALL

    asyncio.run(test())


def test_a_batch_that_cannot_be_read_is_told_and_left_out() -> None:
    async def test() -> None:
        partition = await written()
        base, end, data = partition.batches[2]
        partition.batches[2] = base, end, data[:-1] + struct.pack("B", data[-1] ^ 1)
        finding = await find(partition)
        assert len(finding.unreadable) == 1
        assert "offsets 2 to 2 cannot be read" in finding.unreadable[0]
        assert values(finding) == [value for value in ALL if value != b"1-1"]

    asyncio.run(test())


def test_a_late_write_of_a_former_owner_is_left_out_where_claims_tell() -> None:
    async def test() -> None:
        partition = await written()
        late = Writer(partition, compares=False)
        await late.open(partition.end)
        late.append([(KEY, b"late")], 1, lambda error: None)
        finding = await find(partition)
        assert finding.is_whole
        base, end, data = partition.batches[2]
        partition.batches[2] = base, end, data[:-1] + struct.pack("B", data[-1] ^ 1)
        assert b"late" not in values(await find(partition))

    asyncio.run(test())
