"""The broker's topics as seen by group coordinators."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from sharecore.coordinator.topics import TopicInfo
from sharecore.storage import Topic, Topics
from sharecore.storage.topics import TopicChange


class TopicDirectory:
    """Topic names, ids and partition counts.

    Args:
        hidden: topics that no group may subscribe to.
    """

    def __init__(self, topics: Topics, *, hidden: frozenset[str] = frozenset()) -> None:
        self.version = self.created = 0
        self._topics = topics
        self._hidden = hidden
        topics.on_change(self._changed)

    def find(self, name: str) -> TopicInfo | None:
        """Return the topic of this name."""
        return self._info(self._topics.get(name))

    def find_id(self, topic_id: UUID) -> TopicInfo | None:
        """Return the topic with this id."""
        return self._info(self._topics.by_id(topic_id))

    def when_gone(self, topic_id: UUID, name: str, gone: Callable[[], object]) -> None:
        """Call back if a topic that is not found was deleted."""
        self._topics.when_gone(topic_id, name, gone)

    def names(self) -> list[str]:
        """Return the names of all topics."""
        return [name for name in self._topics.names() if name not in self._hidden]

    def _info(self, topic: Topic | None) -> TopicInfo | None:
        if topic is None or topic.name in self._hidden:
            return None
        return TopicInfo(topic.name, topic.topic_id, len(topic.partitions))

    def _changed(self, change: TopicChange, topic: Topic) -> None:
        self.version += 1
        self.created += change is TopicChange.CREATED
