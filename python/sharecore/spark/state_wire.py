"""Share state of a cluster, fetched from the leaders of the state topic's partitions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator

from sharecore._core import whole_batches
from sharecore.client.settings import read_connection_settings
from sharecore.client.wire.transport import Transport
from sharecore.errors import ErrorCode, KafkaError
from sharecore.sharestate.keys import STATE_TOPIC, topic_id_of
from sharecore.spark.fetcher import EARLIEST, LATEST, Fetcher, fetcher_for
from sharecore.spark.state_parts import CHUNK_BYTES, Moved, NoBatch, StatePartition

_HINTS = {
    ErrorCode.NETWORK_EXCEPTION: "no broker answers at kafka.bootstrap.servers={servers}",
    ErrorCode.SASL_AUTHENTICATION_FAILED: "kafka.sasl.* or kafka.ssl.*: not accepted",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: (
        f"the user may not read {STATE_TOPIC}: grant DESCRIBE and READ on that topic"
    ),
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: (
        f"the cluster at {{servers}} has no topic {STATE_TOPIC}: no share group has had anything to "
        "remember, or the user may not see the topic (grant DESCRIBE and READ on it)"
    ),
}


def explain(error: KafkaError, servers: str) -> KafkaError:
    """Return the error with advice, if there is any."""
    hint = _HINTS.get(error.code)
    return KafkaError(error.code, f"{hint.format(servers=servers)} ({error})") if hint else error


def plan(connection: dict[str, str]) -> list[StatePartition]:
    """Return the partitions of the state topic with their current offsets; empty ones are skipped.

    Raises:
        KafkaError: no broker can be reached, it refuses, or there is no share state.
    """
    return asyncio.run(_plan(connection))


async def _plan(connection: dict[str, str]) -> list[StatePartition]:
    transport = Transport(read_connection_settings(connection))
    try:
        topic_id, partitions = await transport.topic(STATE_TOPIC)
        starts = await transport.offsets_for(partitions, EARLIEST)
        ends = await transport.offsets_for(partitions, LATEST)
        return [
            StatePartition(partition.partition, start, ends[partition], topic_id)
            for partition, start in sorted(starts.items())
            if start < ends[partition]
        ]
    finally:
        await transport.close()


class WireLog:
    """One partition of the state topic, as its leader has it."""

    topic = STATE_TOPIC

    def __init__(self, part: StatePartition, connection: dict[str, str]) -> None:
        assert part.topic_id is not None, "planned by `plan`"
        self.topic_id, self.partition, self.name = part.topic_id, part.partition, part.name
        self._fetcher: Fetcher = fetcher_for(connection)

    def bounds(self) -> tuple[int, int]:
        return self._fetcher.offset_for(self, EARLIEST), self._fetcher.offset_for(self, LATEST)

    def chunks(self, first: int, end: int) -> Iterator[bytes]:
        patience = self._fetcher.settings.default_api_timeout_ms / 1000
        quiet_until = time.monotonic() + patience
        asked = self._fetcher.begin(self, first, CHUNK_BYTES)
        while first < end:
            records = self._end(asked)
            _, following = whole_batches(records)
            if following is not None and following > first:
                first = following
                quiet_until = time.monotonic() + patience
            elif records:
                raise NoBatch(first, "there is no whole record batch here")
            elif time.monotonic() > quiet_until:
                raise KafkaError(
                    ErrorCode.OFFSET_NOT_AVAILABLE, f"{self.name} has nothing at offset {first} of {end}"
                )
            if first < end:
                asked = self._fetcher.begin(self, first, CHUNK_BYTES)
            if records:
                yield records

    def _end(self, asked: asyncio.Task[object]) -> bytes:
        try:
            answer = self._fetcher.end(asked)
        except KafkaError as error:
            if error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
                raise Moved from error
            raise
        records: bytes = answer.records or b""
        return records

    def names(self, topic_ids: Iterable[str]) -> dict[str, str]:
        by_id = {topic_id_of(text): text for text in topic_ids}
        return {by_id[topic_id]: name for topic_id, name in self._fetcher.names_of(by_id).items()}

    def close(self) -> None:
        """Do nothing: the connections are kept for the next task."""
