"""Records of a share group that are not settled, looked at without holding them."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from sharecore._core import Record, decode_records, whole_batches
from sharecore.admin.model import EARLIEST_TIMESTAMP
from sharecore.admin.share_state import LiveState
from sharecore.admin.state_fetch import read_state_topic
from sharecore.client.configs import ResourceKind, describe_configs
from sharecore.client.wire.cluster import TopicPartition
from sharecore.client.wire.transport import Transport
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import calls
from sharecore.sharestate.keys import SharePartitionKey
from sharecore.sharestate.records import StateBatch, unpack_batches

Run = tuple[int, int, int]
"""Offsets that are leased: the first, the last, and how often they were delivered."""
_ACQUIRED = "sharecore.acquired."
"""Prefix of the setting in which a broker of sharecore reports them, before topic and partition."""
_CHUNK_BYTES = 1 << 20
_CHUNKS_MAX = 16
STATES = {0: "available", 1: "acquired", 2: "acknowledged", 3: "archiving", 4: "archived"}
"""Delivery states as the records of share state have them."""
NOT_DELIVERED = "new"
"""Nothing durable is said of the record: it was never given back. It may be leased for the first time."""
UNSETTLED = frozenset({NOT_DELIVERED, "available", "acquired", "archiving", "unknown"})
ALL_STATES = UNSETTLED | {"acknowledged", "archived"}


@dataclass(frozen=True, slots=True)
class PeekedRecord:
    """A record from the start offset on.

    Args:
        state: `new`, `acquired` (leased now; only brokers of sharecore report it), `available` (released,
            or its lock expired), `acknowledged`, `archiving` (it waits for its dead letter) or `archived`.
        deliveries: how often it was delivered, as far as the durable state has it.
    """

    state: str
    deliveries: int
    record: Record


@dataclass(frozen=True, slots=True)
class Peeked:
    """What was seen of one share partition.

    Args:
        start_offset: None where the group has no state yet.
        end_offset: the end of the log; -1 where it was not read.
        next_offset: where there may be more; None: nowhere.
        hidden: why the states of records are not known, so that all look new; None where they are.
    """

    partition: TopicPartition
    start_offset: int | None
    end_offset: int
    records: Sequence[PeekedRecord]
    next_offset: int | None = None
    hidden: KafkaError | None = None


async def peek(
    transport: Transport,
    group_id: str,
    topic: str,
    *,
    partitions: Collection[int] = (),
    max_records: int = 20,
    settled: bool = False,
) -> list[Peeked]:
    """Return the next records of a share group in a topic, in each partition at most `max_records`.

    They are read as any consumer without a group reads them, and their state out of `__share_group_state`:
    nothing is leased, and no delivery counted. What is leased at this moment is not durable: a broker of
    sharecore reports it from memory, on others such a record looks as it did before.

    Args:
        partitions: only these.
        settled: show those too that are settled, behind one that is not.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND, UNKNOWN_TOPIC_OR_PARTITION, or a broker refused.
    """
    topic_id, known = await transport.topic(topic)
    unknown = set(partitions) - {each.partition for each in known}
    if unknown:
        text = f"{topic} has no partition {min(unknown)}"
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    starts = await _starts(transport, group_id, topic)
    looked_at = [each.partition for each in known if not partitions or each.partition in partitions]
    acquired = await _acquired(transport, group_id, topic, looked_at)
    found = []
    for each in known:
        if partitions and each.partition not in partitions:
            continue
        start = starts.get(each.partition, -1)
        if start < 0:
            found.append(Peeked(each, None, -1, ()))
            continue
        key = SharePartitionKey(group_id, topic_id, each.partition)
        hidden = None
        try:
            start, batches = await _state(transport, key, start)
        except KafkaError as error:
            if error.code not in (
                ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ):
                raise
            batches, hidden = [], error
        states = ALL_STATES if settled else UNSETTLED
        spans = Spans(start, batches, states, acquired.get(each.partition, ()))
        found.append(replace(await _all(transport, each, spans, max_records), hidden=hidden))
    return found


async def _all(transport: Transport, partition: TopicPartition, spans: Spans, max_records: int) -> Peeked:
    found = await look_at_records(transport, partition, spans, max_records=max_records)
    records = list(found.records)
    while found.next_offset is not None and len(records) < max_records:
        left = max_records - len(records)
        found = await look_at_records(transport, partition, spans, first=found.next_offset, max_records=left)
        records += found.records
    return Peeked(partition, spans.start, found.end_offset, records)


async def _starts(transport: Transport, group_id: str, topic: str) -> dict[int, int]:
    # for a missing group, the other answer is empty
    described = {"group_ids": [group_id], "include_authorized_operations": False}
    await transport.coordinator(
        group_id, calls.SHARE_GROUP_DESCRIBE, described, lambda answer: answer.groups[0]
    )
    message = {"groups": [{"group_id": group_id, "topics": None}]}
    group = await transport.coordinator(
        group_id, calls.DESCRIBE_SHARE_GROUP_OFFSETS, message, lambda answer: answer.groups[0]
    )
    return {
        part.partition_index: part.start_offset
        for each in group.topics
        if each.topic_name == topic
        for part in each.partitions
    }


async def _state(transport: Transport, key: SharePartitionKey, start: int) -> tuple[int, list[StateBatch]]:
    """Return start offset and state batches; raise KafkaError if share state is not readable."""
    live = await read_state_topic(transport, lambda: LiveState(key), key)
    for _, state in live.states():
        return max(start, state.start_offset), list(unpack_batches(state.batches()))
    return start, []


async def _acquired(
    transport: Transport, group_id: str, topic: str, partitions: Iterable[int]
) -> dict[int, list[Run]]:
    """Return the acquired records by partition, if the broker reports them."""
    names = {f"{_ACQUIRED}{topic}.{partition}": partition for partition in partitions}
    try:
        entries = await describe_configs(transport, ResourceKind.GROUP, group_id, names)
    except KafkaError:
        return {}  # no right, or a cluster without group settings
    return {
        names[name]: [(first, last, count) for first, last, count in json.loads(entry.value or "[]")]
        for name, entry in entries.items()
        if name in names
    }


class Spans:
    """The states of the offsets of a share partition from its start offset on.

    Args:
        batches: state batches; what lies between and behind them was never given back.
        states: which are wanted.
        acquired: the records acquired now, whatever the batches say.
    """

    def __init__(
        self,
        start: int,
        batches: Sequence[StateBatch],
        states: Collection[str],
        acquired: Sequence[Run] = (),
    ) -> None:
        self.start = start
        self._acquired = sorted(acquired)
        self._batches = [batch for batch in batches if batch[1] >= start]
        self._firsts = [first for first, *_ in self._batches]
        self.states = states

    def at(self, offset: int) -> tuple[str, int]:
        """State and delivery count."""
        at = bisect_right(self._acquired, offset, key=lambda run: run[0]) - 1
        if at >= 0 and offset <= self._acquired[at][1]:
            return "acquired", self._acquired[at][2]
        at = bisect_right(self._firsts, offset) - 1
        if at >= 0 and offset <= self._batches[at][1]:
            return STATES.get(self._batches[at][2], "unknown"), self._batches[at][3]
        return NOT_DELIVERED, 0

    def next_wanted(self, offset: int) -> int | None:
        """Return the first offset at or after `offset` with a wanted state, or None."""
        offset = max(offset, self.start)
        at = max(0, bisect_right(self._firsts, offset) - 1)
        for first, last, *_ in self._batches[at:]:
            if offset < first and NOT_DELIVERED in self.states:
                return offset
            if last >= offset:
                offset = max(offset, first)
                if self.at(offset)[0] in self.states:
                    return offset
                offset = last + 1
        return offset if NOT_DELIVERED in self.states else None


async def look_at_records(
    transport: Transport, partition: TopicPartition, spans: Spans, *, first: int = 0, max_records: int = 20
) -> Peeked:
    """Record of the states that are wanted, from offset `first` on, at most `max_records` of them.

    A call reads so many bytes at most; `next_offset` is where the following one goes on.

    Raises:
        KafkaError: a broker refused, or did not answer.
    """
    shown: list[PeekedRecord] = []
    offset, end = spans.next_wanted(first), -1
    for _ in range(_CHUNKS_MAX):
        if offset is None or len(shown) >= max_records or (end >= 0 and offset >= end):
            break
        try:
            answer = await transport.fetch(partition, offset, _CHUNK_BYTES)
        except KafkaError as error:
            # the records were deleted, or do not exist yet
            if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            start = (await transport.offsets_for([partition], EARLIEST_TIMESTAMP))[partition]
            if start <= offset:
                return Peeked(partition, spans.start, offset, shown)
            offset = spans.next_wanted(start)
            continue
        end = answer.high_watermark
        data = answer.records or b""
        behind = whole_batches(data)[1]
        if offset >= end or behind is None:
            break
        for record in decode_records(data, [(offset, end - 1, 1)], *partition, None)[0]:
            state, deliveries = spans.at(record.offset)
            if state in spans.states:
                if len(shown) == max_records:
                    behind = record.offset
                    break
                shown.append(PeekedRecord(state, deliveries, record))
        offset = spans.next_wanted(behind)
    more = offset if offset is not None and offset < end else None
    return Peeked(partition, spans.start, end, shown, more)
