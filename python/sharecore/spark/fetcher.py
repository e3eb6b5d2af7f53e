"""Plain fetches of an executor, over connections that outlive its tasks."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any, Protocol, TypeVar
from uuid import UUID

from sharecore.client.errors import AuthenticationFailed, Disconnected
from sharecore.client.settings import ConnectionSettings, read_connection_settings
from sharecore.client.wire.cluster import Backoff, Cluster, TopicIdPartition
from sharecore.client.wire.connection import Connection
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import calls

Value = TypeVar("Value")

logger = logging.getLogger(__name__)

EARLIEST, LATEST = -2, -1
_FETCH_WAIT_MS = 500
_AGAIN = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.OFFSET_NOT_AVAILABLE,
}


class Part(Protocol):
    """A partition that is read."""

    @property
    def topic(self) -> str: ...
    @property
    def topic_id(self) -> UUID: ...
    @property
    def partition(self) -> int: ...
    @property
    def name(self) -> str:
        """For messages."""


class Fetcher:
    """Connections that outlive a task, with the event loop that they belong to."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self.settings = settings
        self.loop = asyncio.new_event_loop()
        self.cluster = self.loop.run_until_complete(self._cluster())

    async def _cluster(self) -> Cluster[ConnectionSettings]:
        return Cluster(self.settings)

    def begin(self, part: Part, offset: int, bytes_max: int) -> asyncio.Task[Any]:
        """Start a fetch; the request is on its way when this returns, if there is a connection."""
        task = self.loop.create_task(self._fetch(part, offset, bytes_max))
        self.loop.run_until_complete(asyncio.sleep(0))
        return task

    def end(self, task: asyncio.Task[Any]) -> Any:
        return self.loop.run_until_complete(task)

    def names_of(self, topic_ids: Iterable[UUID]) -> dict[UUID, str]:
        """Return the names of topics, without deleted ones; raise KafkaError."""
        wanted = set(topic_ids)

        async def ask() -> dict[UUID, str]:
            await self.cluster.refresh(topic_ids=wanted)
            topics = self.cluster.topics
            return {each: topics[each].name for each in wanted if each in topics}

        return self.loop.run_until_complete(self._until_answered(ask, "names of topics"))

    def offset_for(self, part: Part, timestamp: int) -> int:
        """Return an offset by timestamp: EARLIEST, LATEST; raise KafkaError."""
        key = TopicIdPartition(part.topic_id, part.partition)
        ask = partial(self._list_offset, part, key, timestamp)
        return self.loop.run_until_complete(self._until_answered(ask, part.name, key))

    async def _fetch(self, part: Part, offset: int, bytes_max: int) -> Any:
        key = TopicIdPartition(part.topic_id, part.partition)
        ask = partial(self._try, key, offset, bytes_max)
        return await self._until_answered(ask, f"{part.name} at {offset}", key)

    async def _until_answered(
        self, ask: Callable[[], Awaitable[Value]], what: str, key: TopicIdPartition | None = None
    ) -> Value:
        """Asks until there is an answer, an error that stays, or no time left (`default.api.timeout.ms`)."""
        backoff = Backoff(self.settings.retry_backoff_ms, self.settings.retry_backoff_max_ms)
        until = time.monotonic() + self.settings.default_api_timeout_ms / 1000
        while True:
            try:
                return await ask()
            except AuthenticationFailed:
                raise
            except KafkaError as error:
                if not isinstance(error, Disconnected) and error.code not in _AGAIN:
                    raise
                if time.monotonic() > until:
                    raise
                logger.info("%s: %s", what, error)
                if key is not None:
                    self.cluster.forget_leader(key)
            await asyncio.sleep(backoff.seconds())

    async def _leader(self, key: TopicIdPartition) -> Connection:
        if self.cluster.leader(key) < 0:
            await self.cluster.refresh(topic_ids=[key.topic_id])
        leader = self.cluster.leader(key)
        if leader < 0:
            topic = self.cluster.topics.get(key.topic_id)
            if topic is None or not topic.leaders:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"{key.topic_id}")
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"partition {key.partition} has no leader")
        return await self.cluster.connect(leader)

    async def _try(self, key: TopicIdPartition, offset: int, bytes_max: int) -> Any:
        connection = await self._leader(key)
        wanted = {
            "partition": key.partition,
            "fetch_offset": offset,
            "partition_max_bytes": bytes_max,
        }
        message = {
            "max_wait_ms": _FETCH_WAIT_MS,
            "min_bytes": 1,
            "max_bytes": bytes_max,
            "isolation_level": 0,
            "topics": [{"topic_id": key.topic_id, "partitions": [wanted]}],
        }
        response = await connection.request(calls.FETCH, message)
        if response.error_code:
            raise KafkaError(response.error_code, "the fetch was refused")
        (answer,) = response.responses[0].partitions
        if answer.error_code:
            raise KafkaError(answer.error_code, f"partition {key.partition} at {offset}")
        return answer

    async def _list_offset(self, part: Part, key: TopicIdPartition, timestamp: int) -> int:
        connection = await self._leader(key)
        wanted = [{"partition_index": part.partition, "timestamp": timestamp}]
        topics = [{"name": part.topic, "partitions": wanted}]
        message = {"replica_id": -1, "isolation_level": 0, "topics": topics}
        answer = await connection.request(calls.LIST_OFFSETS, message)
        found = answer.topics[0].partitions[0]
        if found.error_code:
            raise KafkaError(found.error_code, part.name)
        return int(found.offset)


_fetchers: dict[tuple[tuple[str, str], ...], Fetcher] = {}


def fetcher_for(connection: Mapping[str, str]) -> Fetcher:
    """Return the fetcher of this process with these settings."""
    # Spark forks and reuses its workers: the cached connection saves connecting for every task
    known = tuple(sorted(connection.items()))
    if known not in _fetchers:
        _fetchers[known] = Fetcher(read_connection_settings(connection))
    return _fetchers[known]
