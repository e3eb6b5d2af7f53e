"""Diagnosis and repair of a tier's state topic.

Nodes continue with what an unclean upstream election has left. They cannot continue after an unreadable
record, a lost claim (compaction deletes all but the last), or the loss of the topic. A repair rewrites the
readable records after a new claim.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from sharecore.broker.cluster import NOBODY
from sharecore.clock import SystemClock
from sharecore.coordinator_log.staged_log import cut
from sharecore.coordinator_log.topic_log import Record
from sharecore.errors import ErrorCode, KafkaError
from sharecore.tier.names import transactional_id
from sharecore.tier.operation.operator import Operator
from sharecore.tier.settings.topic import make_own_topic, topics_of
from sharecore.tier.slots.claims import SlotHistory, claim_record, is_mark
from sharecore.tier.upstream.batches import Batch, Scanned, cut_batches, decode
from sharecore.tier.upstream.replay import bounds_of, replay
from sharecore.upstream import ExclusiveWriter


class Finding(NamedTuple):
    """State of one slot.

    Attributes:
        records: number of readable records.
        lost: missing offsets before later records.
        unclaimed: records before the first claim, which are ignored.
        unreadable: errors of unreadable batches.
        kept: records to rewrite; empty if the slot is whole.
    """

    slot: int
    records: int
    lost: int
    unclaimed: int
    unreadable: Sequence[str]
    epoch: int
    end: int
    kept: Sequence[Record]

    @property
    def is_whole(self) -> bool:
        """Whether no repair is needed."""
        return not (self.lost or self.unclaimed or self.unreadable)


class _Reading:
    """Reader of a slot's partition, whatever it contains."""

    def __init__(self, name: str, start: int) -> None:
        self.history = SlotHistory(name)
        self.records: list[Scanned] = []
        self.counted: list[Scanned] = []
        self.lost = self.unclaimed = 0
        self.unreadable: list[str] = []
        self._name, self._expected = name, start

    def take(self, batch: Batch) -> None:
        self.lost += max(0, batch.base_offset - self._expected)
        self._expected = batch.last_offset + 1
        if batch.is_control:
            return  # of a foreign transaction
        try:
            records = decode([batch], self._name)
        except ValueError as error:
            claim = self.history.claim
            if claim is None or batch.producer == claim.producer:
                self.unreadable.append(str(error))
            return
        self.lost += batch.last_offset - batch.base_offset + 1 - len(records)
        own = [record for record in records if not is_mark(record)]
        self.records += own
        try:
            self.counted += self.history.take(batch.data)
        except ValueError as error:
            self.unreadable.append(f"offset {batch.base_offset} to {batch.last_offset}: {error}")
            self.counted += own
        if self.history.claim is None:
            self.unclaimed += len(own)


async def look(operator: Operator, slot: int) -> Finding:
    """Diagnose a slot.

    Raises:
        KafkaError: the cluster cannot be read.
    """
    start, end = await bounds_of(operator.admin, operator.topic, slot)
    reading = _Reading(f"{operator.topic}-{slot}", start)
    async for some in replay(operator.admin, operator.topic, slot, start, end):
        for batch in cut_batches(some):
            reading.take(batch)
    claim = reading.history.claim
    # with lost claims, void and valid batches look the same
    kept = reading.records if reading.lost or reading.unclaimed else reading.counted
    return Finding(
        slot,
        len(reading.records),
        reading.lost,
        reading.unclaimed,
        reading.unreadable,
        -1 if claim is None else claim.epoch,
        end,
        [(key or b"", value) for _, _, key, value in kept],
    )


async def rewrite(operator: Operator, finding: Finding) -> None:
    """Rewrite a slot's records after a new claim, and delete the old ones.

    Raises:
        KafkaError: another writer is active, or the cluster refuses.
    """
    slot, topic = finding.slot, operator.topic
    writer = ExclusiveWriter(operator.outlet, topic, slot, transactional_id(topic, slot))
    await writer.open(finding.end)
    now_ms = SystemClock().now_ms()
    await _append(writer, [claim_record(slot, finding.epoch + 1, NOBODY, now_ms)], now_ms)
    for records in cut(finding.kept) if finding.kept else ():
        await _append(writer, records, now_ms)
    deleted = (await operator.admin.delete_records(topic, {slot: finding.end}))[slot]
    if isinstance(deleted, KafkaError):
        raise deleted


async def _append(writer: ExclusiveWriter, records: Sequence[Record], now_ms: int) -> None:
    ended: asyncio.Future[KafkaError | None] = asyncio.get_running_loop().create_future()
    writer.append(records, now_ms, ended.set_result)
    error = await ended
    if error is not None:
        raise error


async def is_missing(operator: Operator) -> bool:
    """Return whether the state topic of an existing tier is missing.

    Raises:
        KafkaError: there is no such tier, or the cluster cannot be queried.
    """
    found = await operator.upstream.topics([operator.topic, operator.catalog.topic])
    state, settings = found[operator.topic], found[operator.catalog.topic]
    if isinstance(settings, KafkaError):
        raise settings
    if isinstance(state, KafkaError) and state.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise state
    return isinstance(state, KafkaError)


async def make_topic(operator: Operator) -> None:
    """Recreate the state topic with the same number of slots; raise ConfigError or KafkaError."""
    await operator.catalog.load()
    name, partitions, replicas, settings = topics_of(operator.config)[0]
    slots = operator.catalog.slots or partitions
    await make_own_topic(operator.admin, name, slots, replicas, settings)
