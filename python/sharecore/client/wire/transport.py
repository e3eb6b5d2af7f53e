"""Sends requests to the right brokers: any, a group's coordinator, the leaders of partitions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar
from uuid import UUID

from sharecore.client.errors import RETRIED, Disconnected
from sharecore.client.settings import ConnectionSettings
from sharecore.client.wire.cluster import Backoff, Cluster, TopicIdPartition, TopicPartition
from sharecore.client.wire.connection import SOFTWARE, Dial
from sharecore.client.wire.refusals import (
    accept,
    on_changed,
    on_cluster,
    on_group,
    on_topic,
    refused_topic,
    worded,
)
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import calls
from sharecore.protocol.calls import Call

if TYPE_CHECKING:
    from sharecore.protocol.received import (
        FetchPartitionData,
        MetadataResponseTopic,
    )

Value = TypeVar("Value")
Value_co = TypeVar("Value_co", covariant=True)
Response = TypeVar("Response")


class _OfTopic(Protocol[Value_co]):
    @property
    def partitions(self) -> Sequence[Value_co]: ...


class ShareStates(Protocol[Value_co]):
    """A share coordinator's response: a `Value_co` for each share partition."""

    @property
    def results(self) -> Sequence[_OfTopic[Value_co]]: ...


class Transport:
    """Connections of an admin client.

    Args:
        settings: connection settings and timeouts.
        dial: opens all connections, whatever the brokers' addresses.
    """

    def __init__(self, settings: ConnectionSettings, dial: Dial | None = None) -> None:
        self._settings = settings
        self._cluster: Cluster[ConnectionSettings] = Cluster(settings, dial)

    async def any(self, call: Call[Response], message: Mapping[str, object]) -> Response:
        """Return the response of any broker; raise KafkaError."""

        async def ask() -> Response:
            connection = await self._cluster.any_connection()
            return accept(await connection.request(call, message), on_cluster(call.key))

        return await self._try(ask)

    async def check(self) -> None:
        """Check the response of any broker; raise KafkaError."""
        await self.any(calls.METADATA, {"topics": [], "allow_auto_topic_creation": False})

    async def all(self, call: Call[Response], message: Mapping[str, object]) -> list[Response]:
        """Return the responses of all brokers; raise KafkaError if one does not respond."""

        return list((await self.by_node(call, message)).values())

    async def by_node(self, call: Call[Response], message: Mapping[str, object]) -> dict[int, Response]:
        """Return as `all`, by broker ID."""

        async def ask() -> dict[int, Response]:
            await self._cluster.refresh()
            nodes = list(self._cluster.nodes)
            answers = await asyncio.gather(*(self._ask_node(node, call, message) for node in nodes))
            return dict(zip(nodes, answers, strict=True))

        return await self._try(ask)

    async def node(self, node: int, call: Call[Response], message: Mapping[str, object]) -> Response:
        """Return the response of one broker; raise KafkaError."""
        return await self._try(lambda: self._ask_node(node, call, message))

    async def controller(
        self,
        call: Call[Response],
        message: Mapping[str, object],
        pick: Callable[[Response], Value],
    ) -> Value:
        """Return the response of the controller, or of any broker if the metadata has no controller.

        Args:
            pick: selects the part of the response with the error code.

        Raises:
            KafkaError: the error in that part, or a timeout.
        """

        async def ask() -> Value:
            await self._cluster.refresh()
            node = self._cluster.controller
            known = node in self._cluster.nodes
            connection = await (self._cluster.connect(node) if known else self._cluster.any_connection())
            changed = pick(await connection.request(call, message))
            return accept(changed, on_changed(call.key, changed))

        return await self._try(ask)

    async def nodes(self) -> list[int]:
        """Return the IDs of all brokers; raise KafkaError."""

        async def ask() -> list[int]:
            await self._cluster.refresh()
            return self._cluster.nodes

        return await self._try(ask)

    async def coordinator(
        self,
        group_id: str,
        call: Call[Response],
        message: Mapping[str, object],
        pick: Callable[[Response], Value],
    ) -> Value:
        """Return the response of a group's coordinator.

        Args:
            pick: selects the part of the response with the group's error code.

        Raises:
            KafkaError: the group's error, or a timeout.
        """

        async def ask() -> Value:
            missing = on_group(call.key, group_id)
            try:
                connection = await self._cluster.coordinator(group_id)
            except KafkaError as error:
                # locating it only takes DESCRIBE, which every other permission implies
                raise worded(error, missing) from None
            return accept(pick(await connection.request(call, message)), missing)

        return await self._try(ask)

    async def share_coordinator(
        self,
        key: str,
        call: Call[ShareStates[Value]],
        message: Mapping[str, object],
    ) -> Value:
        """Return the share coordinator's response about a share partition.

        Args:
            key: of the coordinator, `group:topicId:partition`.
            message: about this one share partition.

        Raises:
            KafkaError: the partition's error, or a timeout.
        """

        async def ask() -> Value:
            connection = await self._cluster.share_coordinator(key)
            answer = await connection.request(call, message)
            return accept(answer.results[0].partitions[0])

        return await self._try(ask)

    async def partitions_of(self, topic: str) -> list[TopicPartition]:
        """Return the partitions of a topic; raise KafkaError (UNKNOWN_TOPIC_OR_PARTITION)."""
        return (await self.topic(topic))[1]

    async def topic(self, topic: str) -> tuple[UUID, list[TopicPartition]]:
        """Return the ID and the partitions of a topic; raise KafkaError (UNKNOWN_TOPIC_OR_PARTITION)."""
        (found,) = await self._topics([topic])
        if found.topic_id is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"the broker has no ID for topic {topic}")
        return found.topic_id, [TopicPartition(topic, part.partition_index) for part in found.partitions]

    async def topic_names(self) -> list[str]:
        """Return the names of all visible topics, sorted; raise KafkaError."""
        answer = await self.any(calls.METADATA, {"topics": None, "allow_auto_topic_creation": False})
        return sorted(
            topic.name for topic in answer.topics if topic.name is not None and not topic.error_code
        )

    async def wait_for_topic(self, topic: str) -> None:
        """Wait until a broker shows a new topic; raise KafkaError after a timeout."""

        async def ask() -> None:
            try:
                await self.topic(topic)
            except KafkaError as error:
                if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise
                raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"topic {topic}") from None

        await self._try(ask)

    async def features(self) -> dict[str, tuple[int, int]]:
        """Return each feature's level, and the highest that the broker supports; raise KafkaError."""
        answer = await self.any(calls.API_VERSIONS, SOFTWARE)
        levels = {each.name: each.max_version_level for each in getattr(answer, "finalized_features", ())}
        highest = {each.name: each.max_version for each in getattr(answer, "supported_features", ())}
        return {name: (levels.get(name, 0), highest.get(name, 0)) for name in {*levels, *highest}}

    async def offsets_for(
        self, partitions: Iterable[TopicPartition], timestamp: int
    ) -> dict[TopicPartition, int]:
        """Return offsets by timestamp, -1 and -2 meaning the end and the start; -1 if there is none.

        Raises:
            KafkaError: a topic is unknown, or a leader did not respond.
        """
        wanted = sorted(set(partitions))

        async def ask() -> dict[TopicPartition, int]:
            by_leader: dict[int, list[TopicPartition]] = {}
            for partition, leader in (await self._leaders(wanted)).items():
                by_leader.setdefault(leader, []).append(partition)
            found: dict[TopicPartition, int] = {}
            for leader, some in by_leader.items():
                found |= await self._list_offsets(leader, some, timestamp)
            return found

        return await self._try(ask) if wanted else {}

    async def fetch(self, partition: TopicPartition, offset: int, max_bytes: int) -> FetchPartitionData:
        """Return the records of a partition from an offset: its part of a Fetch response.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE, the topic is unknown, or its leader did not respond.
        """

        async def ask() -> FetchPartitionData:
            leader = (await self._leaders([partition]))[partition]
            ids = {topic.name: topic_id for topic_id, topic in self._cluster.topics.items()}
            asked = {
                "partition": partition.partition,
                "fetch_offset": offset,
                "partition_max_bytes": max_bytes,
                "current_leader_epoch": -1,
                "last_fetched_epoch": -1,
                "log_start_offset": -1,
            }
            message = {
                "max_wait_ms": 0,
                "min_bytes": 0,
                "max_bytes": max_bytes,
                "session_epoch": -1,
                "topics": [{"topic_id": ids[partition.topic], "partitions": [asked]}],
            }
            answer = await self._ask_node(leader, calls.FETCH, message)
            return accept(answer.responses[0].partitions[0], on_topic("READ", partition.topic))

        return await self._try(ask)

    async def produce(self, partition: TopicPartition, records: bytes) -> int:
        """Append a record batch; return the offset of its first record.

        Unanswered requests are retried, so the batch may be duplicated.

        Raises:
            KafkaError: the broker returned an error, or the leader did not respond.
        """

        async def ask() -> int:
            leader = (await self._leaders([partition]))[partition]
            batch = {"index": partition.partition, "records": records}
            message = {
                "transactional_id": None,
                "acks": -1,
                "timeout_ms": self._settings.request_timeout_ms,
                "topic_data": [{"name": partition.topic, "partition_data": [batch]}],
            }
            answer = await self._ask_node(leader, calls.PRODUCE, message)
            part = answer.responses[0].partition_responses[0]
            return accept(part, on_topic("WRITE", partition.topic)).base_offset

        return await self._try(ask)

    async def names_of(self, topic_ids: Iterable[UUID]) -> dict[UUID, str]:
        """Return the names of topics, without deleted ones; raise KafkaError."""
        wanted = set(topic_ids)
        if wanted:

            async def ask() -> None:
                await self._cluster.refresh(topic_ids=wanted)

            await self._try(ask)
        return {
            topic_id: topic.name for topic_id, topic in self._cluster.topics.items() if topic_id in wanted
        }

    async def close(self) -> None:
        """End all connections."""
        await self._cluster.close()

    async def _ask_node(self, node: int, call: Call[Response], message: Mapping[str, object]) -> Response:
        connection = await self._cluster.connect(node)
        return accept(await connection.request(call, message))

    async def _topics(self, names: Iterable[str]) -> Sequence[MetadataResponseTopic]:
        asked = [{"name": name} for name in sorted(set(names))]
        answer = await self.any(calls.METADATA, {"topics": asked, "allow_auto_topic_creation": False})
        for topic in answer.topics:
            if topic.error_code:
                raise refused_topic(topic.name or "", topic.error_code)
        return list(answer.topics)

    async def _leaders(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        names = {partition.topic for partition in partitions}
        refused = await self._cluster.refresh(names)
        for name, code in refused.items():
            if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                raise refused_topic(name, code)
        ids = {
            topic.name: topic_id for topic_id, topic in self._cluster.topics.items() if topic.name in names
        }
        leaders = {}
        for partition in partitions:
            topic_id = ids.get(partition.topic)
            if topic_id is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {partition.topic}")
            if partition.partition not in self._cluster.topics[topic_id].leaders:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, str(partition))
            leader = self._cluster.leader(TopicIdPartition(topic_id, partition.partition))
            if leader < 0:
                raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, str(partition))
            leaders[partition] = leader
        return leaders

    async def _list_offsets(
        self, node: int, partitions: Iterable[TopicPartition], timestamp: int
    ) -> dict[TopicPartition, int]:
        topics: dict[str, list[dict[str, int]]] = {}
        for topic, partition in partitions:
            topics.setdefault(topic, []).append({"partition_index": partition, "timestamp": timestamp})
        message = {
            "replica_id": -1,
            "isolation_level": 0,
            "topics": [{"name": name, "partitions": some} for name, some in topics.items()],
            "timeout_ms": self._settings.request_timeout_ms,
        }
        answer = await self._ask_node(node, calls.LIST_OFFSETS, message)
        return {
            TopicPartition(topic.name, part.partition_index): accept(
                part, on_topic("DESCRIBE", topic.name)
            ).offset
            for topic in answer.topics
            for part in topic.partitions
        }

    async def _try(self, ask: Callable[[], Awaitable[Value]]) -> Value:
        """Retry until there is a response, a permanent error, or a timeout (`default.api.timeout.ms`)."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._settings.default_api_timeout_ms / 1000
        backoff = Backoff(self._settings.retry_backoff_ms, self._settings.retry_backoff_max_ms)
        while True:
            try:
                return await ask()
            except KafkaError as error:  # noqa: PERF203
                pause = backoff.seconds()
                again = isinstance(error, Disconnected) or error.code in RETRIED
                if not again or loop.time() + pause > until:
                    raise
                await asyncio.sleep(pause)
