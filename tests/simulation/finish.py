"""The end of a simulation: the faults have stopped, and every promise is called in."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tests.harness.batches import batch
from tests.simulation import letters, waking
from tests.simulation.actors.admins import describe
from tests.simulation.actors.members import ACCEPT, Member
from tests.simulation.actors.producers import code_of, produced
from tests.simulation.ledger import transaction_of
from tests.simulation.queues import scenes
from tests.simulation.wire import Gone, Wire

from sharecore import _core
from sharecore.protocol import ApiKey

if TYPE_CHECKING:
    from tests.simulation.world import World

_WITHIN_S = 90.0
_SETTLING_S = 50.0
_WAKE_S, _WAKE_LOCK_S = 2.0, 6.0
_OLD_S = 90.0
_BACKOFF_S = 6.0
"""The longest back-off that is drawn."""
_UNTOLD_S = 10.0
"""Nothing has come for so long where a lag tells nothing."""
_DRAINED = ("first", "second")


async def run(world: World) -> None:
    """Reads every log, drains every group, and sees that waiting fetches are woken."""
    # silent members' sessions expire, transactions time out, clock jumps are over
    await asyncio.sleep(_SETTLING_S)
    wire = await Wire.open("finish")
    try:
        await _read_logs(world, wire)
        groups = [group for group in world.groups if not _hangs(world, group)]
        for group in world.groups:
            await scenes.quieten(world, wire, group)
        for group in groups:
            await _drain(world, wire, group)
            if world.story.violations:
                return
        _all_delivered(world, groups)
        if letters.FEATURE in world.plan.features:
            await _letters(world, wire)
        for group in groups:
            # a scene that a broken promise ends keeps its settings, which delay the records of the next one
            for act in (scenes.run, _wake):
                if world.story.violations:
                    return
                await act(world, wire, group)
        if world.story.violations:
            return
        await asyncio.sleep(45.0)
        await _expired(world, wire)
        wire.close()
        await asyncio.sleep(1.0)
        _all_given_back(world)
    except Gone as gone:
        world.story.broken("no answer", f"after the faults have stopped: {gone}")
    finally:
        wire.close()


def _hangs(world: World, group: str) -> bool:
    """Whether a group waits for a transaction that lost its end: an administrator would end it."""
    broker = world.machine.broker
    if broker is None or not world.auditor.salvaged or group not in world.auditor.committed:
        return False
    logs = (log for topic in broker.topics for log in topic.partitions if topic.name in world.topics)
    return any(log.last_stable_offset < log.high_watermark for log in logs)


def _all_given_back(world: World) -> None:
    """Nobody uses the broker any more: it holds nothing for anybody."""
    broker = world.machine.broker
    assert broker is not None
    # some actors leave their connections open
    clients = sum(1 for number in world.network.ends if number % 2 == 0)
    held = {
        "bytes of requests": broker.server.budget.used_bytes,
        "connections": len(broker.server.connections) - clients,
        "share sessions": len(broker.share.sessions) - clients,
    }
    for leaders in broker.share.partitions.by_topic().values():
        for leader in leaders.values():
            if leader.engine is not None and leader.engine.next_deadline_ms is not None:
                held[f"leases of {leader.key.coordinator_key()}"] = 1
            if leader.engine is not None and leader.key.group_id in world.queue_settings:
                where = leader.key.coordinator_key()
                held[f"waiting records of {where}"] = leader.engine.waiting()[0]
                held[f"keys of {where}"] = (leader.engine.keys(0) or (0, 0))[1]
    for what, count in held.items():
        if count > 0:
            world.story.broken("memory", f"{count} {what} are held by nobody")


async def _expired(world: World, wire: Wire) -> None:
    """Records that were too old long ago are gone."""
    ledger, now = world.auditor.ledger, world.loop.now
    if world.clock.jumped:
        return
    for topic in filter(ledger.retained, world.topics):
        start = await _earliest(wire, topic, 0)
        log = ledger.log(ledger.ids[topic], 0)
        old = [offset for offset, asked in log.answered.items() if offset >= start and now - asked > _OLD_S]
        if old:
            world.story.broken("retention", f"{topic}-0 still holds offsets {old[:5]}")


async def _read_logs(world: World, wire: Wire) -> None:
    for topic, partitions in world.topics.items():
        for index in range(partitions):
            found: dict[int, bytes] = {}
            keys: dict[int, bytes] = {}
            start, high, chunks = await _read(world, wire, topic, index)
            if world.story.violations:
                return
            for records in chunks:
                rows, _, _, _ = _core.decode_records(records, [(start, high - 1, 1)], topic, index, None)
                found |= {row.offset: row.value or b"" for row in rows}
                keys |= {row.offset: row.key for row in rows if row.key is not None}
            place = world.auditor.ledger.ids[topic], index
            world.auditor.ledger.contents[place] = found
            world.auditor.ledger.ends[place] = high
            world.auditor.ledger.check_log(world.auditor.ledger.ids[topic], index, start, found, keys)


async def _read(world: World, wire: Wire, topic: str, index: int) -> tuple[int, int, list[bytes]]:
    """Where a log begins and ends, and its records, a fetch each."""
    at = start = await _earliest(wire, topic, index)
    high = at + 1
    chunks: list[bytes] = []
    while at < high:
        part = await _fetch(wire, topic, index, at)
        if part.error_code:
            world.story.broken("log unreadable", f"{topic}-{index} at {at}: error {part.error_code}")
            break
        high = part.high_watermark
        records = bytes(part.records or b"")
        if at >= high:
            break
        if not records:
            if not world.auditor.salvaged:
                world.story.broken("log unreadable", f"{topic}-{index} at {at} of {high}: no records")
            break
        chunks.append(records)
        at = _end(records)
    return start, high, chunks


async def _earliest(wire: Wire, topic: str, index: int) -> int:
    part = {"partition_index": index, "current_leader_epoch": -1, "timestamp": -2}
    topics = [{"name": topic, "partitions": [part]}]
    answer = await wire.ask(ApiKey.LIST_OFFSETS, 7, replica_id=-1, isolation_level=0, topics=topics)
    offset: int = answer.topics[0].partitions[0].offset
    return offset


def _end(records: bytes) -> int:
    """The offset behind the last batch."""
    at = end = 0
    while at + 27 <= len(records):
        base = int.from_bytes(records[at : at + 8], "big", signed=True)
        end = base + int.from_bytes(records[at + 23 : at + 27], "big") + 1
        at += 12 + int.from_bytes(records[at + 8 : at + 12], "big")
    return end


async def _fetch(wire: Wire, topic: str, index: int, at: int) -> Any:
    part = {
        "partition": index,
        "current_leader_epoch": -1,
        "fetch_offset": at,
        "last_fetched_epoch": -1,
        "log_start_offset": -1,
        "partition_max_bytes": 1 << 20,
    }
    answer = await wire.ask(
        ApiKey.FETCH,
        12,
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 24,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[{"topic": topic, "partitions": [part]}],
        forgotten_topics_data=[],
        rack_id="",
    )
    return answer.responses[0].partitions[0]


async def _drain(world: World, wire: Wire, group: str) -> None:
    """One member accepts all there is, until nothing lags."""
    member = Member(world, f"drain-{group}", group, list(world.topics))
    until, got_at = world.loop.now + _WITHIN_S, world.loop.now
    # a lag may count offsets without records, or waiting records
    idle_s = _BACKOFF_S if group in world.queue_settings else 0.0
    lags: dict[str, int] = {}
    while world.loop.now < until and not world.story.violations:
        await member.beat()
        if len(member.assigned) < sum(world.topics.values()):
            await asyncio.sleep(0.2)
            continue
        await member.fetch(max_wait_ms=300)
        if member.held:
            held = {place: [(a, b, ACCEPT) for a, b in sorted(runs)] for place, runs in member.held.items()}
            member.held.clear()
            await member.acknowledge(held)
            got_at = world.loop.now
            continue
        if world.loop.now < got_at + idle_s:
            continue
        answer = await describe(wire, [group])
        # state that a leader has found lost is not reported until it is recreated
        lags = {f"{topic}-{index}": -1 for topic in _DRAINED for index in range(world.topics.get(topic, 0))}
        for topic in answer.groups[0].topics:
            for part in topic.partitions if topic.topic_name in _DRAINED else ():
                place = topic.topic_id, part.partition_index
                lags[f"{topic.topic_name}-{part.partition_index}"] = part.lag
                share = world.auditor.share((group, *place))
                is_told = not share.may_count_undone or world.loop.now < got_at + _UNTOLD_S
                if not is_told or not _waits(world, group, place, part.start_offset, part.lag):
                    del lags[f"{topic.topic_name}-{part.partition_index}"]
        if not lags:
            await member.leave()
            return
    world.story.broken("records are not delivered", f"{group} after {_WITHIN_S} s: lags {lags}")


def _waits(world: World, group: str, place: tuple[UUID, int], start: int, lag: int) -> bool:
    """Whether a group has to get something yet, by what is described: a lag of -1 is not known.

    Offsets that hold nothing for it, markers and what was aborted, count as lag until its next write, as with
    Kafka.
    """
    ledger = world.auditor.ledger
    committed = group in world.auditor.committed
    records = 0
    for offset, value in ledger.contents.get(place, {}).items():
        transaction = transaction_of(value)
        records += offset >= start and not (committed and transaction and transaction not in ledger.sure)
    if lag < 0:
        return records > 0
    return lag > max(0, ledger.ends.get(place, 0) - max(start, 0) - records)


def _all_delivered(world: World, groups: list[str]) -> None:
    """Whatever was answered to a producer was settled or delivered, unless it was not to be."""
    ledger = world.auditor.ledger
    for (topic_id, index), log in ledger.logs.items():
        name = ledger.names[topic_id]
        if name not in world.topics or name in ledger.compacted or ledger.retained(name):
            continue
        for group in groups:
            share = world.auditor.share((group, topic_id, index))
            for offset in log.answered:
                transaction = transaction_of(log.values[offset])
                committed = transaction is None or transaction in ledger.sure
                if group in world.auditor.committed and not committed:
                    continue
                if offset < log.gone_below or share.may_be_over(offset):
                    continue
                entry = share.entries.get(offset)
                state = "was never delivered" if entry is None else f"was left with {entry.member}"
                world.story.broken("record is not delivered", f"{share.where} offset {offset} {state}")
                return


async def _letters(world: World, wire: Wire) -> None:
    """Records that nobody could process have their letters."""
    auditor = world.auditor
    topics = {name for name in world.topics if name not in auditor.ledger.compacted}
    topics = {name for name in topics if not auditor.ledger.retained(name)}

    async def look() -> letters.Letters:
        there: letters.Letters = {}
        broker = world.machine.broker
        assert broker is not None
        if letters.TOPIC in broker.topics.names():
            start, end, chunks = await _read(world, wire, letters.TOPIC, 0)
            for records in chunks:
                there |= letters.read(records, start, end - 1)
        return there

    await letters.ended(world, topics, look)


async def _wake(world: World, wire: Wire, group: str) -> None:
    """A fetch that waits is answered soon when a record comes, and when a lock runs out."""
    member, other = (Member(world, f"{who}-{group}", group, ["second"]) for who in ("waits", "holds"))
    for each in (member, other):
        for _ in range(50):
            await each.beat()
            if each.assigned:
                break
            await asyncio.sleep(0.3)
        await each.fetch(max_wait_ms=0)
    await waking.look(
        world,
        group,
        member,
        other,
        lambda: _produce(world, wire),
        within_s=_WAKE_S,
        lock_within_s=_WAKE_LOCK_S,
    )
    await member.leave()


async def _produce(world: World, wire: Wire) -> None:
    records = batch([b"wake"], timestamps=[world.clock.now_ms()])
    answer = await wire.ask(ApiKey.PRODUCE, 12, **produced("second", 0, records))
    assert code_of(answer) == 0
