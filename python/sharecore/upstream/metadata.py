"""Cluster metadata: brokers, topics, leaders, and notification of changes. No I/O."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from sharecore.errors import ErrorCode
from sharecore.waiting import settle

if TYPE_CHECKING:
    from sharecore.protocol.received import MetadataResponse, MetadataResponseTopic

MISSING_MS = 1_000
"""Minimum time between two answers without a topic before it counts as deleted."""
_NAMESPACE = uuid.UUID("6f1a3c1e-4d0c-5a86-9d1b-0a9c5f0b7d32")
_ABSENT = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID}


class Node(NamedTuple):
    """A broker."""

    node_id: int
    host: str
    port: int
    rack: str | None


class Partition(NamedTuple):
    """A partition: its leader (-1: none), leader epoch (-1: unknown), and replicas."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class Topic(NamedTuple):
    """A topic.

    Attributes:
        topic_id: the cluster's id, or one derived from cluster id and name.
        has_id: whether the id is the cluster's.
        partitions: partitions by index.
    """

    name: str
    topic_id: uuid.UUID
    has_id: bool
    partitions: tuple[Partition, ...]
    internal: bool


class TopicChange(Enum):
    """Kind of a topic change."""

    CREATED = "created"
    GREW = "grew"
    LED = "led"
    """A partition has another leader or leader epoch."""
    DELETED = "deleted"
    RECREATED = "recreated"
    """Another topic has the name now."""


Changed = Callable[[TopicChange, Topic], None]
Gone = Callable[[], object]


class _Lookup:
    """A noted topic that is not in any answer yet.

    Attributes:
        since_ms: time of the first of the consecutive answers without that id; None before it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.since_ms: int | None = None
        self.callbacks: list[Gone] = []


def made_id(cluster_id: str, name: str) -> uuid.UUID:
    """Return the derived id of a topic, the same on every node and at any time."""
    return uuid.uuid5(_NAMESPACE, f"{cluster_id}/{name}")


class Metadata:
    """Brokers and topics from answers; outdated answers change nothing.

    Attributes:
        cluster_id: empty until the first answer.
        controller: the broker for CreateTopics; -1 if unknown.
        nodes: the brokers by id.
    """

    def __init__(self) -> None:
        self.cluster_id = ""
        self.controller = -1
        self.nodes: dict[int, Node] = {}
        self._topics: dict[str, Topic] = {}
        self._names: dict[uuid.UUID, str] = {}
        self._missing_ms: dict[str, int] = {}
        self._older_ms: dict[str, int] = {}
        """Topics without ids whose leader epochs have decreased, with the time of the first such answer."""
        self._gone: set[uuid.UUID] = set()
        """Ids of deleted topics, which a lagging broker may still report."""
        self._sought: dict[uuid.UUID, _Lookup] = {}
        self._callbacks: list[Changed] = []

    def on_change(self, callback: Changed) -> None:
        """Call back at each change of a kept topic; a deletion passes the old topic."""
        self._callbacks.append(callback)

    def get(self, name: str) -> Topic | None:
        """Return a known topic by name."""
        return self._topics.get(name)

    def by_id(self, topic_id: uuid.UUID) -> Topic | None:
        """Return a known topic by id."""
        name = self._names.get(topic_id)
        return None if name is None else self._topics[name]

    def names(self) -> list[str]:
        """Return the names of known topics."""
        return list(self._topics)

    def __iter__(self) -> Iterator[Topic]:
        return iter(list(self._topics.values()))

    def leader(self, name: str, partition: int) -> tuple[int, int]:
        """Return leader and leader epoch of a partition; -1 without one."""
        topic = self._topics.get(name)
        if topic is None or not 0 <= partition < len(topic.partitions):
            return -1, -1
        found = topic.partitions[partition]
        return (found.leader if found.leader in self.nodes else -1), found.leader_epoch

    def forget(self, names: Iterable[str]) -> None:
        """Drop topics without notification."""
        for name in names:
            topic = self._topics.pop(name, None)
            self._missing_ms.pop(name, None)
            self._older_ms.pop(name, None)
            if topic is not None:
                self._names.pop(topic.topic_id, None)

    def drop(self, name: str) -> None:
        """Drop a topic that the cluster has reported deleted; ignore answers that still have it."""
        topic = self._topics.get(name)
        if topic is not None:
            self.forget([name])
            self._bury(topic)
            self._notify(TopicChange.DELETED, topic)

    def take(self, response: MetadataResponse, now_ms: int, *, whole: bool = False) -> dict[str, int]:
        """Apply an answer.

        Args:
            response: a Metadata response.
            now_ms: monotonic time.
            whole: whether all topics were requested, so that absent ones are missing.

        Returns:
            The error codes of topics, by name.
        """
        self.cluster_id = response.cluster_id or self.cluster_id
        self.controller = response.controller_id
        self.nodes = {
            each.node_id: Node(each.node_id, each.host, each.port, each.rack) for each in response.brokers
        }
        refused: dict[str, int] = {}
        absent: set[str] = set()
        # topics are requested by name
        topics = {topic.name: topic for topic in response.topics if topic.name is not None}
        for name, topic in topics.items():
            if topic.error_code in _ABSENT:
                absent.add(name)
                self._miss(name, now_ms)
            else:
                self._missing_ms.pop(name, None)
            # a topic with a leaderless partition still exists
            if topic.error_code and topic.error_code != ErrorCode.LEADER_NOT_AVAILABLE:
                refused[name] = topic.error_code
            else:
                self._put(name, topic, now_ms)
        if whole:
            for name in self._topics.keys() - topics.keys():
                self._missing_ms.setdefault(name, now_ms)
        self._seek(absent, now_ms)
        return refused

    def _miss(self, name: str, now_ms: int) -> None:
        if name not in self._topics:
            return
        since_ms = self._missing_ms.setdefault(name, now_ms)
        if now_ms - since_ms >= MISSING_MS:
            self.drop(name)

    def when_gone(self, topic_id: uuid.UUID, name: str, gone: Gone) -> None:
        """Call back once an unknown noted topic is certainly deleted.

        A topic that is too new for any answer is not reported.
        """
        if topic_id in self._gone:
            gone()
        elif topic_id not in self._names:
            self._sought.setdefault(topic_id, _Lookup(name)).callbacks.append(gone)

    def _seek(self, absent: Collection[str], now_ms: int) -> None:
        """Check sought topics: found, or absent for long enough."""
        for topic_id, sought in list(self._sought.items()):
            if topic_id in self._names:
                del self._sought[topic_id]
            elif sought.name in absent or sought.name in self._topics:
                if sought.since_ms is None:
                    sought.since_ms = now_ms
                if now_ms - sought.since_ms >= MISSING_MS:
                    del self._sought[topic_id]
                    self._gone.add(topic_id)
                    settle(sought.callbacks)

    @property
    def missing(self) -> set[str]:
        """Topics absent from an answer with all topics.

        Only a request by name shows whether they were deleted, or may not be described.
        """
        return self._missing_ms.keys() | {
            sought.name for sought in self._sought.values() if sought.name not in self._topics
        }

    @property
    def doubtful(self) -> bool:
        """Whether another answer must confirm a missing or different topic."""
        absent = any(sought.since_ms is not None for sought in self._sought.values())
        return absent or bool(self._missing_ms or self._older_ms)

    def _put(self, name: str, answer: MetadataResponseTopic, now_ms: int) -> None:
        given = getattr(answer, "topic_id", None)
        before = self._topics.get(name)
        if given is None and before is not None and before.has_id:
            # a broker of an older version during an upgrade
            given = before.topic_id
        if given in self._gone:
            return
        topic_id = given or made_id(self.cluster_id, name)
        same = before if before is not None and before.topic_id == topic_id else None
        anew = same is not None and self._begins_anew(answer, same, now_ms)
        partitions = _partitions(answer, same, older=anew)
        topic = Topic(name, topic_id, given is not None, partitions, answer.is_internal)
        if topic == before:
            return
        if before is not None:
            self._names.pop(before.topic_id, None)
            if same is None:
                self._bury(before)
        self._topics[topic.name] = topic
        self._names[topic.topic_id] = topic.name
        for change in _changes(before, topic):
            self._notify(change, topic)

    def _begins_anew(self, answer: MetadataResponseTopic, known: Topic, now_ms: int) -> bool:
        """Return whether decreased leader epochs belong to a recreated topic.

        Without topic ids, an old answer looks the same. So another answer must confirm it, and none in
        between may have the later epochs.
        """
        gone_back = not known.has_id and any(
            each.leader_epoch < known.partitions[each.partition_index].leader_epoch
            for each in answer.partitions
            if each.partition_index < len(known.partitions)
        )
        if not gone_back:
            self._older_ms.pop(known.name, None)
            return False
        since_ms = self._older_ms.setdefault(known.name, now_ms)
        if now_ms - since_ms < MISSING_MS:
            return False
        del self._older_ms[known.name]
        return True

    def _bury(self, topic: Topic) -> None:
        if topic.has_id:
            self._gone.add(topic.topic_id)

    def _notify(self, change: TopicChange, topic: Topic) -> None:
        settle(list(self._callbacks), change, topic)


def _partitions(answer: MetadataResponseTopic, before: Topic | None, *, older: bool) -> tuple[Partition, ...]:
    """Return an answer's partitions; known newer ones are kept, unless `older` is set."""
    known = before.partitions if before is not None else ()
    found = list(known)
    for each in sorted(answer.partitions, key=lambda partition: partition.partition_index):
        new = Partition(each.leader_id, each.leader_epoch, tuple(each.replica_nodes), tuple(each.isr_nodes))
        index = each.partition_index
        if index >= len(found):
            found += [Partition(-1, -1, (), ())] * (index - len(found))
            found.append(new)
        elif older or new.leader_epoch >= found[index].leader_epoch:
            found[index] = new
    return tuple(found)


def _changes(before: Topic | None, now: Topic) -> list[TopicChange]:
    if before is None:
        return [TopicChange.CREATED]
    if before.topic_id != now.topic_id:
        return [TopicChange.RECREATED]
    changes = []
    if len(now.partitions) > len(before.partitions):
        changes.append(TopicChange.GREW)
    pairs = zip(before.partitions, now.partitions, strict=False)
    if any(old[:2] != new[:2] for old, new in pairs):
        changes.append(TopicChange.LED)
    return changes
