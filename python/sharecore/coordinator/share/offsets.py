"""Administration of share-group start offsets (KIP-932 "Administration", KIP-1226)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol
from uuid import UUID

from sharecore.coordinator.registry import GroupRegistry
from sharecore.coordinator.share.coordinator import ShareGroupCoordinator
from sharecore.coordinator.share.group import SHARE_PARTITION_BYTES, ShareGroup
from sharecore.coordinator.share.topic_state import ShareTopicStates
from sharecore.coordinator.topics import TopicInfo, TopicView
from sharecore.errors import ErrorCode, KafkaError
from sharecore.persister import Persister, StateSummary
from sharecore.sharestate.keys import SharePartitionKey
from sharecore.waiting import Done

_NOT_KNOWN = -1


class SharePartitionOffset(NamedTuple):
    """Offsets of a share partition; -1 if unknown.

    Attributes:
        lag: records that are not acknowledged or archived yet.
    """

    start_offset: int = _NOT_KNOWN
    leader_epoch: int = 0
    lag: int = _NOT_KNOWN
    error: KafkaError | None = None


_NOTHING = SharePartitionOffset()


class Summary(Protocol):
    """Summary of a share partition's state."""

    @property
    def leader_epoch(self) -> int: ...

    @property
    def start_offset(self) -> int: ...

    @property
    def delivery_complete_count(self) -> int: ...


AtHand = Callable[[str, TopicInfo, Iterable[int]], Iterable[tuple[int, Summary, int]]]
"""Returns the share partitions whose state and log end are known without waiting, with both."""


class ShareOffsets:
    """Describe, set and delete start offsets.

    Args:
        end_offset: finds the offset after the last readable record of a topic partition, and calls back with
            it, or with None if it is unknown.
        hold: called with a group and topics before their state is replaced or deleted; their share partitions
            have no leader until the returned callback is called.
        at_hand: avoids requests for share partitions led by this broker.
    """

    def __init__(
        self,
        registry: GroupRegistry,
        groups: ShareGroupCoordinator,
        states: ShareTopicStates,
        persister: Persister,
        topics: TopicView,
        end_offset: Callable[[TopicInfo, int, Callable[[int | None], None]], object],
        hold: Callable[[str, Collection[UUID]], Callable[[], None]],
        at_hand: AtHand | None = None,
    ) -> None:
        self._registry = registry
        self._groups = groups
        self._states = states
        self._persister = persister
        self._topics = topics
        self._end_offset = end_offset
        self._hold = hold
        self._at_hand = at_hand

    def initialized(self, group_id: str) -> list[tuple[TopicInfo, list[int]]]:
        """Return topics and partitions of a group that have state; empty if the group does not exist."""
        group = self._groups.find(group_id)
        found = []
        for topic_id, state in group.initialized.items() if group is not None else ():
            topic = self._topics.find_id(topic_id)
            if topic is not None:
                found.append((topic, sorted(state.partitions)))
        return found

    def describe(
        self,
        group_id: str,
        topic: TopicInfo,
        partitions: Iterable[int],
        done: Callable[[Mapping[int, SharePartitionOffset]], None],
    ) -> None:
        """Find start offsets and lag of a topic's share partitions, in request order."""
        found: dict[int, SharePartitionOffset] = dict.fromkeys(partitions, _NOTHING)
        for partition, state, end in self._at_hand(group_id, topic, found) if self._at_hand else ():
            found[partition] = _offset(state, end)
        waited_for = [partition for partition, offset in found.items() if offset is _NOTHING]
        left = len(waited_for)

        def ended(partition: int, offset: SharePartitionOffset) -> None:
            nonlocal left
            found[partition] = offset
            left -= 1
            if not left:
                done(found)

        def read(partition: int, summary: StateSummary | KafkaError) -> None:
            if isinstance(summary, KafkaError):
                ended(partition, SharePartitionOffset(error=summary))
            else:
                known = partial(_offset, summary)
                self._end_offset(topic, partition, lambda end: ended(partition, known(end)))

        for partition in waited_for:
            key = SharePartitionKey(group_id, topic.topic_id, partition)
            try:
                self._persister.summary(key, partial(read, partition))
            except KafkaError as error:
                read(partition, error.with_traceback(None))  # it would hold `found` in a cycle
        if not waited_for:
            done(found)

    def alter(
        self,
        group_id: str,
        topics: Sequence[TopicInfo],
        offsets: Mapping[tuple[TopicInfo, int], int],
        done: Mapping[tuple[TopicInfo, int], Done],
    ) -> None:
        """Set start offsets of a group without members; create a missing group.

        Args:
            topics: the existing topics of the request; without any, no group is created.
            offsets: start offsets; -1 applies the group's reset policy.
            done: called for each share partition.

        Raises:
            KafkaError: INVALID_GROUP_ID, NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND for a group of another type.
        """
        _check(group_id)
        group = self._groups.find(group_id)
        if group is not None and not group.is_empty:
            raise _not_empty()
        if group is None and topics:
            partitions = sum(topic.partitions for topic in topics)
            self._registry.reserve_memory(group_id, partitions * SHARE_PARTITION_BYTES)
            group = self._groups.create(group_id)
        if group is None or not offsets:
            return
        # a leader created in the meantime would overwrite the new state with its own
        release = self._hold(group_id, {topic.topic_id for topic, _ in offsets})
        left = set(offsets)

        def ended(name: tuple[TopicInfo, int], error: KafkaError | None) -> None:
            left.discard(name)
            if not left:
                release()
            done[name](error)

        self._states.begin_anew(group, offsets, {name: partial(ended, name) for name in offsets})

    def delete(self, group_id: str, topics: Sequence[TopicInfo], done: Done) -> None:
        """Delete the state of topics of a group without members.

        Raises:
            KafkaError: INVALID_GROUP_ID, NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND.
        """
        group = self.deletable(group_id)
        topic_ids = [topic.topic_id for topic in topics]
        release = self._hold(group_id, topic_ids)

        def ended(error: KafkaError | None) -> None:
            release()
            done(error)

        self._states.delete_topics(group, topic_ids, ended)

    def deletable(self, group_id: str) -> ShareGroup:
        """Return the group if its offsets may be deleted.

        Raises:
            KafkaError: INVALID_GROUP_ID, NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND.
        """
        _check(group_id)
        group = self._groups.find(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        if not group.is_empty:
            raise _not_empty()
        return group


def _offset(summary: Summary, end: int | None) -> SharePartitionOffset:
    lag, start, complete = _NOT_KNOWN, summary.start_offset, summary.delivery_complete_count
    if end is not None and start >= 0 and complete >= 0:
        lag = max(0, end - start - complete)
    return SharePartitionOffset(start, summary.leader_epoch, lag)


def _check(group_id: str) -> None:
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "The group id is invalid.")


def _not_empty() -> KafkaError:
    return KafkaError(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")
