"""Topics by name and by id."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from uuid import UUID

from sharecore.storage.log import Log
from sharecore.waiting import settle


class TopicChange(Enum):
    """Kind of a topic change."""

    CREATED = "created"
    GREW = "grew"
    DELETED = "deleted"


Listener = Callable[[TopicChange, "Topic"], object]


class Topic:
    """A topic and its partitions in index order."""

    __slots__ = ("name", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: UUID, partitions: list[Log]) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions


class Topics(ABC):
    """All topics."""

    def __init__(self) -> None:
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[UUID, Topic] = {}
        self._folded: dict[str, dict[str, None]] = {}
        """Names by their form with '_' for '.'."""
        self._listeners: list[Listener] = []

    def __iter__(self) -> Iterator[Topic]:
        return iter(list(self._by_name.values()))

    def __len__(self) -> int:
        return len(self._by_name)

    def get(self, name: str) -> Topic | None:
        """Return the topic of that name."""
        return self._by_name.get(name)

    def by_id(self, topic_id: UUID | None) -> Topic | None:
        """Return the topic of that id."""
        return None if topic_id is None else self._by_id.get(topic_id)

    def find_alike(self, name: str) -> str | None:
        """Return another topic's name that differs only in '.' and '_', if any."""
        alike = self._folded.get(_fold(name), {})
        return next((other for other in alike if other != name), None)

    def names(self) -> list[str]:
        """Return the names of all topics."""
        return list(self._by_name)

    def log(self, name: str, index: int) -> Log | None:
        """Return a partition by topic name and index."""
        topic = self._by_name.get(name)
        return topic.partitions[index] if topic and 0 <= index < len(topic.partitions) else None

    @abstractmethod
    async def create(self, name: str, partitions: int, settings: Mapping[str, str] | None = None) -> Topic:
        """Create a topic; it is visible once durable.

        Raises:
            KafkaError: TOPIC_ALREADY_EXISTS, or KAFKA_STORAGE_ERROR if the write fails.
        """

    @abstractmethod
    async def add_partitions(self, name: str, count: int) -> None:
        """Extend a topic to `count` partitions.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION, INVALID_PARTITIONS if it has as many already,
                REASSIGNMENT_IN_PROGRESS during another change of it,
                KAFKA_STORAGE_ERROR if the write fails.
        """

    @abstractmethod
    async def delete(self, name: str) -> None:
        """Delete a topic with its records and settings; raise KafkaError as `add_partitions` does."""

    def on_change(self, listener: Listener) -> None:
        """Call back after a change of a topic, with its kind."""
        self._listeners.append(listener)

    def when_gone(self, topic_id: UUID, name: str, gone: Callable[[], object]) -> None:
        """Call back, now or later, if a noted topic was deleted."""
        if topic_id not in self._by_id:
            gone()

    def _add(self, topic: Topic) -> None:
        self._by_name[topic.name] = topic
        self._by_id[topic.topic_id] = topic
        self._folded.setdefault(_fold(topic.name), {})[topic.name] = None

    def _notify(self, change: TopicChange, topic: Topic) -> None:
        settle(tuple(self._listeners), change, topic)

    def _remove(self, topic: Topic) -> None:
        del self._by_name[topic.name], self._by_id[topic.topic_id]
        folded = _fold(topic.name)
        self._folded[folded].pop(topic.name, None)
        if not self._folded[folded]:
            del self._folded[folded]


def _fold(name: str) -> str:
    return name.replace(".", "_")
