"""Records of a share group that are not settled, looked at without holding them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sharecore._core import Record, decode_records
from sharecore.admin.model import TopicPartition
from sharecore.admin.share_state import LiveState
from sharecore.admin.state_fetch import read_state_topic
from sharecore.admin.transport import Transport
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import ApiKey
from sharecore.sharestate.keys import SharePartitionKey
from sharecore.sharestate.records import unpack_batches

_CHUNK_BYTES = 1 << 20
_STATES = {0: "available", 2: "acknowledged", 4: "archived"}
_SETTLED = {"acknowledged", "archived"}
NOT_DELIVERED = "new"
"""Nothing durable is said of the record: it was never given back. It may be leased for the first time."""


@dataclass(frozen=True, slots=True)
class PeekedRecord:
    """A record from the start offset on.

    Args:
        state: `new`, `available` (it was given back, or its lock ran out), `acknowledged` or `archived`.
        deliveries: how often it was delivered, as far as the durable state tells.
    """

    state: str
    deliveries: int
    record: Record


@dataclass(frozen=True, slots=True)
class Peeked:
    """What was seen of one share partition.

    Args:
        start_offset: None where the group has no state yet.
        end_offset: the end of the log.
    """

    partition: TopicPartition
    start_offset: int | None
    end_offset: int
    records: Sequence[PeekedRecord]


async def peek(
    transport: Transport,
    group_id: str,
    topic: str,
    *,
    partitions: Collection[int] = (),
    max_records: int = 20,
    settled: bool = False,
) -> list[Peeked]:
    """The next records of a share group in a topic, in each partition at most `max_records`.

    They are read as any consumer without a group reads them, and their state out of `__share_group_state`:
    nothing is leased, and no delivery counted. Who holds a lease is not durable, and so not told.

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
    found = []
    for each in known:
        if partitions and each.partition not in partitions:
            continue
        start = starts.get(each.partition, -1)
        if start < 0:
            found.append(Peeked(each, None, -1, ()))
            continue
        key = SharePartitionKey(group_id, topic_id, each.partition)
        start, batches = await _state(transport, key, start)
        found.append(await _records(transport, each, start, batches, max_records, settled))
    return found


async def _starts(transport: Transport, group_id: str, topic: str) -> dict[int, int]:
    # of a group that is not there the other answer is empty
    described = {"group_ids": [group_id], "include_authorized_operations": False}
    await transport.coordinator(
        group_id, ApiKey.SHARE_GROUP_DESCRIBE, described, lambda answer: answer.groups[0]
    )
    message = {"groups": [{"group_id": group_id, "topics": None}]}
    group = await transport.coordinator(
        group_id, ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, message, lambda answer: answer.groups[0]
    )
    return {
        part.partition_index: part.start_offset
        for each in group.topics
        if each.topic_name == topic
        for part in each.partitions
    }


async def _state(
    transport: Transport, key: SharePartitionKey, start: int
) -> tuple[int, list[tuple[int, int, int, int]]]:
    """Start offset and state batches; where share state may not be read, nothing but the start is known."""
    try:
        live = await read_state_topic(transport, lambda: LiveState(key), key)
    except KafkaError as error:
        if error.code not in (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            raise
        return start, []
    for _, state in live.states():
        return max(start, state.start_offset), list(unpack_batches(state.batches()))
    return start, []


async def _records(
    transport: Transport,
    partition: TopicPartition,
    start: int,
    batches: list[tuple[int, int, int, int]],
    max_records: int,
    settled: bool,
) -> Peeked:
    firsts = [first for first, *_ in batches]
    shown: list[PeekedRecord] = []
    offset, end = start, start + 1
    while offset < end and len(shown) < max_records:
        answer = await transport.fetch(partition, offset, _CHUNK_BYTES)
        end = answer.high_watermark
        wanted = [(offset, end - 1, 1)] if offset < end else []
        records = decode_records(answer.records or b"", wanted, *partition, None)[0]
        if not records:
            break
        for record in records:
            at = bisect_right(firsts, record.offset) - 1
            state, deliveries = NOT_DELIVERED, 0
            if at >= 0 and record.offset <= batches[at][1]:
                state, deliveries = _STATES.get(batches[at][2], "unknown"), batches[at][3]
            if settled or state not in _SETTLED:
                shown.append(PeekedRecord(state, deliveries, record))
        offset = records[-1].offset + 1
    return Peeked(partition, start, end, shown[:max_records])
