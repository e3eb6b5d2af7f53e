"""Topics of any Kafka cluster: listed, described, created, changed and deleted."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from sharecore.admin.administration import Administration
from sharecore.admin.model import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from sharecore.admin.overview import GroupOverview, look_at_groups
from sharecore.client.configs import ConfigEntry, ResourceKind, alter_configs, describe_configs
from sharecore.client.topics import BROKER_DEFAULT, TIMEOUT_MS, create_topic
from sharecore.client.wire.cluster import TopicPartition
from sharecore.client.wire.refusals import accept, refused_topic
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import calls

if TYPE_CHECKING:
    from sharecore.protocol.received import MetadataResponseTopic


@dataclass(frozen=True, slots=True)
class TopicListing:
    """A topic in a list.

    Args:
        internal: it is the brokers' own.
    """

    name: str
    topic_id: UUID
    partitions: int
    replication_factor: int
    internal: bool


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """A partition.

    Args:
        leader: the broker that leads it; -1: none does.
        start, end: the first offset, and the one behind the last; None where no leader says it.
    """

    index: int
    leader: int
    replicas: Sequence[int]
    in_sync: Sequence[int]
    start: int | None
    end: int | None


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic, and the share groups that have state for it.

    Args:
        configs: what was set for the topic.
        groups: None where the cluster has no share groups, or does not list them to this client.
    """

    listing: TopicListing
    partitions: Sequence[PartitionDescription]
    configs: Sequence[ConfigEntry]
    groups: Sequence[GroupOverview] | None


class TopicAdmin(Administration):
    """Administers topics.

    Settings are an administrator's (`sharecore.admin.Admin`); `async with` closes it.
    """

    async def list_topics(self) -> list[TopicListing]:
        """Return all topics that show, by name; raises KafkaError."""
        answer = await self._metadata(None)
        return sorted(
            (_listing(topic) for topic in answer if not topic.error_code), key=lambda each: each.name
        )

    async def describe(self, name: str) -> TopicDescription:
        """Return all that is known of a topic; raises KafkaError (UNKNOWN_TOPIC_OR_PARTITION)."""
        (topic,) = await self._metadata([name])
        if topic.error_code:
            raise refused_topic(name, topic.error_code)
        led = [TopicPartition(name, part.partition_index) for part in topic.partitions if part.leader_id >= 0]
        starts = await self._transport.offsets_for(led, EARLIEST_TIMESTAMP)
        ends = await self._transport.offsets_for(led, LATEST_TIMESTAMP)
        partitions = []
        for part in sorted(topic.partitions, key=lambda part: part.partition_index):
            place = TopicPartition(name, part.partition_index)
            partitions.append(
                PartitionDescription(
                    part.partition_index,
                    part.leader_id,
                    tuple(part.replica_nodes),
                    tuple(part.isr_nodes),
                    starts.get(place),
                    ends.get(place),
                )
            )
        configs = await describe_configs(self._transport, ResourceKind.TOPIC, name)
        own = [entry for entry in configs.values() if entry.own]
        return TopicDescription(_listing(topic), partitions, own, await self._readers(name))

    async def create(
        self,
        name: str,
        *,
        partitions: int = BROKER_DEFAULT,
        replication_factor: int = BROKER_DEFAULT,
        configs: Mapping[str, object] | None = None,
    ) -> None:
        """Create a topic; see `sharecore.client.topics.create_topic`."""
        await create_topic(
            self._transport,
            name,
            partitions=partitions,
            replication_factor=replication_factor,
            configs=configs,
        )

    async def grow(self, name: str, partitions: int) -> None:
        """Give a topic more partitions; raises KafkaError (INVALID_PARTITIONS) for as many or fewer."""
        topic = {"name": name, "count": partitions, "assignments": None}
        message = {"topics": [topic], "timeout_ms": TIMEOUT_MS, "validate_only": False}
        await self._transport.controller(calls.CREATE_PARTITIONS, message, lambda answer: answer.results[0])

    async def alter_configs(
        self, name: str, values: Mapping[str, object], *, unset: Collection[str] = ()
    ) -> None:
        """Set settings of a topic, and take others back to their defaults; raises KafkaError."""
        await alter_configs(self._transport, ResourceKind.TOPIC, name, values, unset=unset)

    async def delete(self, name: str) -> None:
        """Delete a topic with its records; raises KafkaError (UNKNOWN_TOPIC_OR_PARTITION)."""
        # by name or id, since version 6
        message = {
            "topics": [{"name": name, "topic_id": UUID(int=0)}],
            "topic_names": [name],
            "timeout_ms": TIMEOUT_MS,
        }
        await self._transport.controller(calls.DELETE_TOPICS, message, lambda answer: answer.responses[0])

    async def _metadata(self, names: list[str] | None) -> Sequence[MetadataResponseTopic]:
        topics = None if names is None else [{"name": name} for name in names]
        message = {"topics": topics, "allow_auto_topic_creation": False}
        return accept(await self._transport.any(calls.METADATA, message)).topics

    async def _readers(self, name: str) -> list[GroupOverview] | None:
        try:
            groups = await look_at_groups(self._transport)
        except KafkaError as error:
            if error.code not in (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.CLUSTER_AUTHORIZATION_FAILED):
                raise
            return None
        return [group for group in groups if name in group.positions]


def _listing(topic: MetadataResponseTopic) -> TopicListing:
    replicas = [len(part.replica_nodes) for part in topic.partitions]
    return TopicListing(
        topic.name or "",
        topic.topic_id or UUID(int=0),
        len(replicas),
        max(replicas, default=0),
        bool(topic.is_internal),
    )
