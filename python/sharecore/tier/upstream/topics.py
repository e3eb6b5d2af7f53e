"""The cluster's topics as a node presents them, by id: a recreated topic is another one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol
from uuid import UUID, uuid5

from sharecore.errors import ErrorCode, KafkaError
from sharecore.storage import Configs, ResourceType, Topic, Topics
from sharecore.storage.topics import TopicChange
from sharecore.tier.upstream.log import UpstreamLog
from sharecore.tier.upstream.sources import Sources
from sharecore.upstream import Metadata
from sharecore.upstream import Topic as UpstreamTopic
from sharecore.upstream import TopicChange as Change

INTERNAL_PREFIX = "__"
"""Name prefix of topics hidden from clients."""
OWN_SETTINGS = frozenset({"errors.deadletterqueue.group.enable"})
"""Topic settings unknown to clusters without share groups; the tier stores them itself."""


class Making(Protocol):
    """Creates topics (`upstream.Administration`)."""

    async def has_topic(self, name: str) -> bool: ...

    async def create_topic(
        self, name: str, partitions: int, replication: int, settings: Mapping[str, str]
    ) -> bool: ...


class UpstreamTopics(Topics):
    """All topics of the cluster except internal ones.

    Args:
        metadata: the cluster's metadata, kept fresh for all topics.
        making: creates topics.
        configs: settings stored by the tier.
        shown: internal topics visible to clients, with their names; the first name keeps the cluster's id.
    """

    def __init__(
        self,
        metadata: Metadata,
        sources: Sources,
        making: Making,
        configs: Configs,
        shown: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> None:
        super().__init__()
        self._shown = shown
        # a name presented here hides an upstream topic of that name
        self._taken = {name for names in shown.values() for name in names}
        self._metadata = metadata
        self._sources = sources
        self._making = making
        self._configs = configs
        for topic in metadata:
            self._appeared(topic)
        metadata.on_change(self._changed)

    async def create(self, name: str, partitions: int, settings: Mapping[str, str] | None = None) -> Topic:
        settings = settings or {}
        theirs = {key: value for key, value in settings.items() if key not in OWN_SETTINGS}
        ours = {key: value for key, value in settings.items() if key in OWN_SETTINGS}
        if ours:
            # stored before the topic is created: a node failure in between would otherwise leave it without
            # them forever
            if await self._making.has_topic(name):
                raise _exists(name)
            await self._configs.replace(ResourceType.TOPIC, name, ours)
        if not await self._making.create_topic(name, partitions, -1, theirs):
            raise _exists(name)
        topic = self.get(name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{name}' was deleted immediately.")
        return topic

    async def add_partitions(self, name: str, count: int) -> None:
        raise _elsewhere()

    async def delete(self, name: str) -> None:
        raise _elsewhere()

    def when_gone(self, topic_id: UUID, name: str, gone: Callable[[], object]) -> None:
        # another node may have noted a topic that this one does not know yet
        if self.by_id(topic_id) is None:
            self._metadata.when_gone(topic_id, name, gone)

    def _changed(self, change: Change, topic: UpstreamTopic) -> None:
        if change is Change.CREATED:
            self._appeared(topic)
        elif change is Change.DELETED:
            self._gone(topic)
        elif change is Change.RECREATED:
            self._gone(topic)
            self._appeared(topic)
        elif change is Change.GREW:
            self._grew(topic)

    def _seen(self, topic: UpstreamTopic) -> Iterator[tuple[str, UUID]]:
        """Yield names and ids of a topic for clients; none if it is hidden."""
        if topic.name in self._shown:
            for number, name in enumerate(self._shown[topic.name]):
                yield name, id_under(name, topic.topic_id) if number else topic.topic_id
        elif not (topic.internal or topic.name.startswith(INTERNAL_PREFIX) or topic.name in self._taken):
            yield topic.name, topic.topic_id

    def _appeared(self, topic: UpstreamTopic) -> None:
        for name, topic_id in self._seen(topic):
            found = Topic(name, topic_id, [])
            found.partitions += self._logs(topic, range(len(topic.partitions)))
            self._add(found)
            self._notify(TopicChange.CREATED, found)

    def _grew(self, topic: UpstreamTopic) -> None:
        for name, _ in self._seen(topic):
            if (found := self.get(name)) is not None:
                found.partitions += self._logs(topic, range(len(found.partitions), len(topic.partitions)))
                self._notify(TopicChange.GREW, found)

    def _gone(self, topic: UpstreamTopic) -> None:
        for name, _ in self._seen(topic):
            if (found := self.get(name)) is not None:
                self._remove(found)
                self._notify(TopicChange.DELETED, found)

    def _logs(self, topic: UpstreamTopic, indexes: Iterable[int]) -> list[UpstreamLog]:
        return [UpstreamLog(topic.name, index, topic.topic_id, self._sources) for index in indexes]


def id_under(name: str, topic_id: UUID) -> UUID:
    """Return the id of a topic under an additional name."""
    return uuid5(topic_id, name)


def _exists(name: str) -> KafkaError:
    return KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")


def _elsewhere() -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, "Topics are changed on the cluster behind this tier.")
