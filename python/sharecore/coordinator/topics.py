"""Topics as share groups see them: names, ids and partition counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol
from uuid import UUID


class TopicInfo(NamedTuple):
    """An existing topic."""

    name: str
    topic_id: UUID
    partitions: int


class TopicView(Protocol):
    """Topics of the broker."""

    @property
    def version(self) -> int:
        """Increases with each topic that is created, deleted or extended."""

    def find(self, name: str) -> TopicInfo | None:
        """Return the topic of this name; internal topics are hidden from share groups."""

    def find_id(self, topic_id: UUID) -> TopicInfo | None:
        """Return the topic with this id."""


class NotedTopics(TopicView, Protocol):
    """Topics, with notification of deletions."""

    def when_gone(self, topic_id: UUID, name: str, gone: Callable[[], object]) -> None:
        """Call back, now or later, if a noted topic was deleted; wait for a topic that is not known yet."""


def existing(topics: TopicView, names: Iterable[str]) -> list[TopicInfo]:
    """Return the existing topics among the names, sorted by name."""
    found = (topics.find(name) for name in sorted(names))
    return [topic for topic in found if topic is not None]
