"""The share state of a cluster, read once and then followed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from uuid import UUID

from sharecore._core import StateContent
from sharecore.admin.model import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from sharecore.admin.share_state import LiveState
from sharecore.admin.state_topic import CHUNK_BYTES, feed
from sharecore.client.wire.cluster import TopicPartition
from sharecore.client.wire.transport import Transport
from sharecore.errors import ErrorCode, KafkaError
from sharecore.sharestate.keys import STATE_TOPIC, SharePartitionKey
from sharecore.sharestate.records import AVAILABLE, StateBatch, unpack_batches


class StateTail:
    """Follow `__share_group_state`; each look reads new records.

    Args:
        transport: an administrator's connections.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._live = LiveState()
        self._positions: dict[TopicPartition, int] = {}

    async def look(self) -> None:
        """Read on; raise KafkaError, UNKNOWN_TOPIC_OR_PARTITION when there never was any share state."""
        partitions = await self._transport.partitions_of(STATE_TOPIC)
        if not self._positions:
            self._live = LiveState()
            self._positions = await self._transport.offsets_for(partitions, EARLIEST_TIMESTAMP)
        ends = await self._transport.offsets_for(partitions, LATEST_TIMESTAMP)
        try:
            for partition, end in ends.items():
                await self._read(partition, end)
        except KafkaError as error:
            # snapshots made the unread records redundant: start from the beginning next time
            self._positions = {}
            if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise

    async def _read(self, partition: TopicPartition, end: int) -> None:
        offset = self._positions.setdefault(partition, 0)
        while offset < end:
            answer = await self._transport.fetch(partition, offset, CHUNK_BYTES)
            following = feed(self._live, partition.partition, answer.records or b"", offset, end)
            self._positions[partition] = max(offset, following)
            if following <= offset:
                return
            offset = following

    def state(self, key: SharePartitionKey) -> StateContent | None:
        """Return the known state of a share partition."""
        return self._live.state(key)

    def came_back(self, group_id: str, deliveries: int) -> Iterator[tuple[SharePartitionKey, StateBatch]]:
        """Yield the records of a group that came back so often and wait to be delivered again."""
        for key, state in self._live.states():
            if key.group_id == group_id:
                for batch in _waiting(state, deliveries):
                    yield key, batch

    def often_delivered(self, deliveries: int) -> Counter[tuple[str, UUID]]:
        """How many records came back so often and wait to be delivered again, by group and topic."""
        found: Counter[tuple[str, UUID]] = Counter()
        for key, records in self._live.waiting(deliveries):
            found[key.group_id, key.topic_id] += records
        return found


def _waiting(state: StateContent, deliveries: int) -> Iterator[StateBatch]:
    batches = state.batches()
    for first, last, kind, count in unpack_batches(batches) if batches else ():
        if kind == AVAILABLE and count >= deliveries and last >= state.start_offset:
            yield max(first, state.start_offset), last, kind, count
