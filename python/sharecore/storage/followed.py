"""The catalog and topics of a home that another broker leads, as read from its bucket."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from sharecore._core import Ticket
from sharecore.errors import ErrorCode, KafkaError
from sharecore.storage.catalog import Catalog
from sharecore.storage.log import Log
from sharecore.storage.store_topics import TOPIC_PREFIX, stored_topics
from sharecore.storage.topics import Topic, TopicChange, Topics


class FollowedCatalog(Catalog):
    """Entries that another broker writes."""

    def take(self, changed: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Apply changed entries; None means deleted."""
        changed = list(changed)
        self._changed(
            [(key, value) for key, value in changed if value is not None],
            [key for key, value in changed if value is None],
        )
        for key, _ in changed:
            self._notify(key)

    def change(self, puts: Iterable[tuple[bytes, bytes]] = (), deletes: Iterable[bytes] = ()) -> Ticket:
        """Refuse: another broker writes.

        Raises:
            KafkaError: NOT_CONTROLLER.
        """
        raise _elsewhere()


class FollowedTopics(Topics):
    """Topics that another broker leads."""

    def __init__(self, catalog: FollowedCatalog) -> None:
        super().__init__()
        self._catalog = catalog
        for entry in catalog.scan(TOPIC_PREFIX):
            self._take(*entry)
        catalog.watch(TOPIC_PREFIX, self._on_change)

    def _on_change(self, key: bytes) -> None:
        found = self.get(key.removeprefix(TOPIC_PREFIX).decode())
        value = self._catalog.get(key)
        if found is not None:
            self._remove(found)
            self._notify(TopicChange.DELETED, found)
        if value is not None:
            self._take(key, value)

    def _take(self, key: bytes, value: bytes) -> None:
        for name, topic_id, log_ids in stored_topics([(key, value)]):
            logs: list[Log] = [LogElsewhere(name, index, topic_id) for index in range(len(log_ids))]
            topic = Topic(name, topic_id, logs)
            self._add(topic)
            self._notify(TopicChange.CREATED, topic)

    async def create(self, name: str, partitions: int, settings: Mapping[str, str] | None = None) -> Topic:
        raise _elsewhere()

    async def add_partitions(self, name: str, count: int) -> None:
        raise _elsewhere()

    async def delete(self, name: str) -> None:
        raise _elsewhere()


def _elsewhere() -> KafkaError:
    return KafkaError(ErrorCode.NOT_CONTROLLER, "This broker stands by: another one leads.")


class LogElsewhere(Log):
    """A partition that another broker leads: nothing can be read or written here."""

    __slots__ = ()

    size_bytes = 0

    def _refuse(self, *args: Any, **named: Any) -> NoReturn:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    append = append_local = append_marker = read = read_cached = read_apart = _refuse
    readable_bytes = find_offset = find_max_timestamp = aborted = active_producers = _refuse

    def configure(self, *args: Any, **named: Any) -> None:
        """Do nothing: the leader applies the settings."""
