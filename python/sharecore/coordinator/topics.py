"""What share groups see of the topics: names, ids and numbers of partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol
from uuid import UUID


class TopicInfo(NamedTuple):
    """A topic that exists."""

    name: str
    topic_id: UUID
    partitions: int


class TopicView(Protocol):
    """The topics of the broker."""

    @property
    def version(self) -> int:
        """Grows with each topic that appears, goes, or gets more partitions."""

    def find(self, name: str) -> TopicInfo | None:
        """Return the topic of this name; share groups do not see internal topics."""

    def find_id(self, topic_id: UUID) -> TopicInfo | None:
        """Return the topic with this id."""


class NotedTopics(TopicView, Protocol):
    """The topics, and what became of those that are noted."""

    def when_gone(self, topic_id: UUID, name: str, gone: Callable[[], object]) -> None:
        """Call back, at once or later, if a topic that a group has noted was deleted; one that is not known
        yet is waited for.
        """


def existing(topics: TopicView, names: Iterable[str]) -> list[TopicInfo]:
    """Return the names that are topics, in the order given."""
    found = (topics.find(name) for name in sorted(names))
    return [topic for topic in found if topic is not None]
