"""Share state over the wire, from sharecore as from Apache Kafka."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sharecore.admin.model import EARLIEST_TIMESTAMP
from sharecore.admin.state_topic import CHUNK_BYTES, StateProblem, StateSink, feed
from sharecore.client.wire.cluster import TopicPartition
from sharecore.client.wire.transport import Transport
from sharecore.coordinator_log.routing import partition_for
from sharecore.errors import ErrorCode, KafkaError
from sharecore.sharestate.keys import STATE_TOPIC, SharePartitionKey

Sink = TypeVar("Sink", bound=StateSink)
_ATTEMPTS = 5


async def read_state_topic(
    transport: Transport, new_sink: Callable[[], Sink], key: SharePartitionKey | None = None
) -> Sink:
    """Read the topic as it is now, or only the partition that has the state of `key`.

    Raises:
        KafkaError: UNKNOWN_TOPIC_OR_PARTITION when there is no such topic, or a broker refused.
    """
    partitions = await transport.partitions_of(STATE_TOPIC)
    if key is not None:
        partitions = [TopicPartition(STATE_TOPIC, partition_for(key.coordinator_key(), len(partitions)))]
    for attempt in range(_ATTEMPTS):
        sink = new_sink()
        starts = await transport.offsets_for(partitions, EARLIEST_TIMESTAMP)
        try:
            for partition, start in sorted(starts.items()):
                await _read(transport, partition, start, sink)
        except KafkaError as error:
            # snapshots made the records being read redundant, and they were deleted
            if error.code != ErrorCode.OFFSET_OUT_OF_RANGE or attempt == _ATTEMPTS - 1:
                raise
        else:
            return sink
    raise AssertionError("the last attempt returns or raises")


async def _read(transport: Transport, partition: TopicPartition, offset: int, sink: StateSink) -> None:
    answer = await transport.fetch(partition, offset, CHUNK_BYTES)
    end = answer.high_watermark
    while offset < end:
        following = feed(sink, partition.partition, answer.records or b"", offset, end)
        if following == offset:
            sink.problem(StateProblem(partition.partition, offset, "nothing from here on can be read"))
            return
        offset = following
        if offset < end:
            answer = await transport.fetch(partition, offset, CHUNK_BYTES)
