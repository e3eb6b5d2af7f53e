"""Topics whose names and logs are in the store's catalog."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from uuid import UUID, uuid4

from sharecore.errors import ErrorCode, KafkaError
from sharecore.storage.catalog import encode_object
from sharecore.storage.configs import Configs, ResourceType, config_key
from sharecore.storage.log import Log
from sharecore.storage.store_catalog import StoreCatalog
from sharecore.storage.store_log import StoreLog
from sharecore.storage.topics import Topic, TopicChange, Topics
from sharecore.topic_names import INTERNAL_TOPICS

TOPIC_PREFIX = b"topic/"
_RESERVED_IDS = frozenset({UUID(int=0), UUID(int=1)})

OpenLog = Callable[[int, str, int, UUID], StoreLog]
"""Creates the log object for an id, a topic name, a partition index and a topic id."""


class StoreTopics(Topics):
    """The topics of a data directory.

    Args:
        new_log_id: returns an id for a new log.
        open_log: creates the object for a log.
        keep_local: gets the logs of internal topics, which are read on the event loop: their records must
            stay on the local disk.
    """

    def __init__(
        self,
        catalog: StoreCatalog,
        configs: Configs,
        new_log_id: Callable[[], int],
        open_log: OpenLog,
        keep_local: Callable[[Sequence[int]], None],
    ) -> None:
        super().__init__()
        self._catalog = catalog
        self._configs = configs
        self._new_log_id = new_log_id
        self._open_log = open_log
        self._keep_local = keep_local
        self._changing: set[str] = set()
        stored = list(stored_topics(catalog.scan(TOPIC_PREFIX)))
        # all at once, and even if there are none: it allows the store to evict others
        keep_local([log_id for name, _, log_ids in stored for log_id in self._internal(name, log_ids)])
        for name, topic_id, log_ids in stored:
            self._add(Topic(name, topic_id, self._logs(log_ids, name, topic_id)))

    async def create(self, name: str, partitions: int, settings: Mapping[str, str] | None = None) -> Topic:
        if name in self._by_name or name in self._changing:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        topic_id = _new_topic_id()
        log_ids = [self._new_log_id() for _ in range(partitions)]
        puts = [_entry(name, topic_id, log_ids)]
        if settings:
            puts.append((config_key(ResourceType.TOPIC, name), encode_object(settings)))
        self._changing.add(name)
        try:
            self._keep_local(self._internal(name, log_ids))
            await self._catalog.change(puts, create_logs=log_ids)
        finally:
            self._changing.discard(name)
        topic = Topic(name, topic_id, self._logs(log_ids, name, topic_id))
        self._add(topic)
        if settings:
            self._configs.changed(ResourceType.TOPIC, name, settings)
        self._notify(TopicChange.CREATED, topic)
        return topic

    async def add_partitions(self, name: str, count: int) -> None:
        topic = self._claim(name)
        have = len(topic.partitions)
        if count <= have:
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {have} partition(s).")
        added = [self._new_log_id() for _ in range(count - have)]
        log_ids = [log.log_id for log in store_logs(topic)] + added
        self._changing.add(name)
        try:
            self._keep_local(self._internal(name, added))
            await self._catalog.change([_entry(name, topic.topic_id, log_ids)], create_logs=added)
        finally:
            self._changing.discard(name)
        topic.partitions += self._logs(log_ids, name, topic.topic_id)[have:]
        self._notify(TopicChange.GREW, topic)

    async def delete(self, name: str) -> None:
        topic = self._claim(name)
        self._changing.add(name)
        try:
            await self._catalog.change(
                deletes=[TOPIC_PREFIX + name.encode(), config_key(ResourceType.TOPIC, name)],
                drop_logs=[log.log_id for log in store_logs(topic)],
            )
        finally:
            self._changing.discard(name)
        self._remove(topic)
        self._configs.changed(ResourceType.TOPIC, name, {})
        self._notify(TopicChange.DELETED, topic)

    def _claim(self, name: str) -> Topic:
        topic = self._by_name.get(name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if name in self._changing:
            raise KafkaError(
                ErrorCode.REASSIGNMENT_IN_PROGRESS, f"Topic '{name}' is being changed; try again."
            )
        return topic

    def _internal(self, name: str, log_ids: Sequence[int]) -> Sequence[int]:
        """Return these logs if the topic is internal, else none."""
        return log_ids if name in INTERNAL_TOPICS else ()

    def _logs(self, log_ids: list[int], name: str, topic_id: UUID) -> list[Log]:
        return [self._open_log(log_id, name, index, topic_id) for index, log_id in enumerate(log_ids)]


def store_logs(topic: Topic) -> list[StoreLog]:
    """Return the partitions of a store topic."""
    return [log for log in topic.partitions if isinstance(log, StoreLog)]


def stored_topics(entries: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[str, UUID, list[int]]]:
    """Yield name, id and logs of the topics in catalog entries."""
    for key, value in entries:
        if key.startswith(TOPIC_PREFIX):
            stored = json.loads(value)
            yield key.removeprefix(TOPIC_PREFIX).decode(), UUID(stored["id"]), stored["logs"]


def topic_entry(name: str, log_ids: list[int]) -> tuple[bytes, bytes]:
    """Return the catalog entry of a new topic with existing logs."""
    return _entry(name, _new_topic_id(), log_ids)


def _entry(name: str, topic_id: UUID, log_ids: list[int]) -> tuple[bytes, bytes]:
    return TOPIC_PREFIX + name.encode(), json.dumps({"id": str(topic_id), "logs": log_ids}).encode()


def _new_topic_id() -> UUID:
    """Return a random topic id as Kafka would choose it: not reserved, and without a leading dash as text."""
    while True:
        topic_id = uuid4()
        if topic_id not in _RESERVED_IDS and not base64.urlsafe_b64encode(topic_id.bytes).startswith(b"-"):
            return topic_id
