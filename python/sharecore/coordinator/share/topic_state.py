"""Lifecycle of share-partition state: created on first subscription, deleted with its topic or group.

A group persists a plan in its StatePartitionMetadata record before acting, so that a restarted broker resumes
where it stopped (KIP-932, "Managing durable share-partition state").

Answers of the persister may be late. By then another coordinator, or this one after a replay, may have acted
on the group, so an answer counts only if the plan it belongs to still stands.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeGuard
from uuid import UUID

from sharecore.coordinator.share.group import ShareGroup, TopicState
from sharecore.coordinator.topics import NotedTopics, TopicInfo, existing
from sharecore.coordinator_log.runtime import CoordinatorRuntime
from sharecore.errors import ErrorCode, KafkaError
from sharecore.persister import Persister, StateSummary
from sharecore.sharestate.keys import SharePartitionKey
from sharecore.waiting import Done, Gather

logger = logging.getLogger(__name__)

_NOT_KNOWN = -1
_FROM_THE_START = 0
_RESIGNED = KafkaError(ErrorCode.NOT_COORDINATOR, "Another broker has coordinated the group in the meantime.")
_Missing = Sequence[tuple[TopicInfo, TopicState]]
"""Topics with their planned states."""


class ShareTopicStates:
    """Create and delete the share-partition state of groups.

    Args:
        persister: stores the state.
        records: `__consumer_offsets`.
        topics: the topics that exist.
    """

    def __init__(self, persister: Persister, records: CoordinatorRuntime, topics: NotedTopics) -> None:
        self._persister = persister
        self._records = records
        self._topics = topics
        self._clock = records.clock

    def making_ms(self, group: ShareGroup) -> int | None:
        """Return how long state creation has been pending; None if it is not."""
        since_ms = group.making_since_ms
        return None if since_ms is None else self._clock.monotonic_ms() - since_ms

    def initialize_missing(self, group: ShareGroup) -> None:
        """Create state for subscribed partitions without any."""
        if group.deleting:
            self._retry_deletions(group)
        if group.complete_at == self._topics.version or group.making_since_ms is not None:
            return
        missing = [(topic, TopicState(topic.name, some)) for topic, some in self._missing(group)]
        if not missing:
            group.complete_at = self._topics.version
            return
        group.making_since_ms = self._clock.monotonic_ms()
        group.initializing |= {topic.topic_id: state for topic, state in missing}

        def planned(error: KafkaError | None) -> None:
            if error is None:
                self._look(group, missing)
            else:
                group.making_since_ms = None

        self._write_plan(group, planned)

    def lost(self, group: ShareGroup, topic_id: UUID) -> None:
        """Forget lost state of a topic: the next heartbeat recreates it by the group's reset policy."""
        state = group.initialized.pop(topic_id, None)
        if state is not None:
            group.complete_at = -1
            logger.error(
                "lost the state of share group %s and topic %s; it will be recreated",
                group.group_id,
                state.name,
                extra={"group": group.group_id},
            )

    def check(self, group: ShareGroup, doubted: Callable[[SharePartitionKey], bool]) -> None:
        """Check that recorded state exists; recreate lost state (see `lost`).

        Args:
            doubted: selects the share partitions to check.
        """
        keys = (
            SharePartitionKey(group.group_id, topic_id, index)
            for topic_id, state in group.initialized.items()
            for index in state.partitions
        )
        found: Gather[SharePartitionKey] = Gather()
        for key in [key for key in keys if doubted(key)]:
            found.run(key, self._persister.summary, key)

        def answered() -> None:
            for key, summary in found.outcomes.items() if not group.resigned else ():
                if not isinstance(summary, KafkaError) and not _is_state(summary):
                    self.lost(group, key.topic_id)

        found.when_ended(answered)

    def _missing(self, group: ShareGroup) -> Iterable[tuple[TopicInfo, set[int]]]:
        for topic in existing(self._topics, group.subscribed):
            state = group.initialized.get(topic.topic_id)
            known = state.partitions if state is not None else set()
            if topic.topic_id not in group.deleting and len(known) < topic.partitions:
                yield topic, set(range(topic.partitions)) - known

    def _look(self, group: ShareGroup, missing: _Missing) -> None:
        """Look for existing state, so that a group whose record was lost keeps it.

        Recreated state would redeliver acknowledged records, unnoticed by the leader that has the old state.
        """
        found: Gather[SharePartitionKey] = Gather()
        for key in _keys(group, _wanted(group, missing)):
            found.run(key, self._persister.summary, key)
        found.when_ended(lambda: self._make(group, missing, found.outcomes))

    def _make(
        self,
        group: ShareGroup,
        missing: _Missing,
        found: Mapping[SharePartitionKey, StateSummary | KafkaError],
    ) -> None:
        if group.resigned:
            # state recreated under this broker's next term would lose acknowledgements made since
            return
        keys = list(_keys(group, _wanted(group, missing)))
        kept = {key: each for key in keys if _is_state(each := found[key])}
        if kept:
            self._keep(group, kept)
        made: Gather[SharePartitionKey] = Gather()
        for key in keys:
            if isinstance(found[key], KafkaError):
                made.put(key, found[key])
            elif key not in kept:
                # new partitions of a known topic are read from the start, so that no record is missed
                start_offset = _FROM_THE_START if key.topic_id in group.initialized else _NOT_KNOWN
                made.run(key, self._persister.initialize, key, group.epoch, start_offset)
        made.when_ended(lambda: self._initialized(group, missing, made.failed))

    def _keep(self, group: ShareGroup, kept: Mapping[SharePartitionKey, StateSummary]) -> None:
        """Adopt existing state; raise the group epoch to at least the state epoch."""
        logger.warning(
            "share group %s keeps the existing state of %d partitions",
            group.group_id,
            len(kept),
            extra={"group": group.group_id},
        )
        epoch = max(each.state_epoch for each in kept.values())
        if epoch > group.epoch:
            group.epoch = epoch
            self._records.append(group.group_id, [group.epoch_record()], _ignore)

    def _initialized(
        self, group: ShareGroup, missing: _Missing, failed: Mapping[SharePartitionKey, KafkaError]
    ) -> None:
        group.making_since_ms = None
        wanted = _wanted(group, missing)
        for topic, state in wanted:
            lost = {key.partition for key in failed if key.topic_id == topic.topic_id}
            group.add_initialized(topic, state.partitions - lost)
        for key, error in failed.items():
            logger.error(
                "cannot create the state of %s: %s",
                key.coordinator_key(),
                error,
                extra={"group": group.group_id, "partition": key.partition},
            )
        if wanted:
            self._write(group, _ignore)

    def begin_anew(
        self,
        group: ShareGroup,
        offsets: Mapping[tuple[TopicInfo, int], int],
        done: Mapping[tuple[TopicInfo, int], Done],
    ) -> None:
        """Reset state to start offsets; call each `done` once its reset is durable.

        As with Apache Kafka, the state gets the epoch of its group, which changes with members, not with
        resets: two resets without a member between them have the same one. It fences leaders that read their
        state for an earlier member; those of this broker end before a reset anyway (`ShareOffsets`).
        """
        partitions: dict[TopicInfo, set[int]] = {}
        for topic, partition in offsets:
            partitions.setdefault(topic, set()).add(partition)
        for topic, some in partitions.items():
            group.initializing[topic.topic_id] = TopicState(topic.name, some)

        def ended(failed: Mapping[tuple[TopicInfo, int], KafkaError]) -> None:
            for topic, some in partitions.items():
                self._add_made(group, topic, {each for each in some if (topic, each) not in failed})

            def written(error: KafkaError | None) -> None:
                for name, waiting in done.items():
                    waiting(failed.get(name, error))

            self._write(group, written)

        def planned(error: KafkaError | None) -> None:
            if error is not None:
                for waiting in done.values():
                    waiting(error)
                return
            made: Gather[tuple[TopicInfo, int]] = Gather()
            for (topic, partition), start_offset in offsets.items():
                key = SharePartitionKey(group.group_id, topic.topic_id, partition)
                made.run((topic, partition), self._persister.initialize, key, group.epoch, start_offset)
            made.when_ended(lambda: ended(made.failed))

        self._write_plan(group, planned)

    @staticmethod
    def _add_made(group: ShareGroup, topic: TopicInfo, partitions: Collection[int]) -> None:
        """Record that state exists, unless its deletion was requested in the meantime."""
        if topic.topic_id in group.initializing:
            group.add_initialized(topic, partitions)

    def delete_topics(self, group: ShareGroup, topic_ids: Collection[UUID], done: Done) -> None:
        """Delete the state of all partitions of some topics of a group."""
        keys: list[SharePartitionKey] = []
        for topic_id in topic_ids:
            topic = self._topics.find_id(topic_id)
            partitions = set() if topic is None else set(range(topic.partitions))
            for stage in (group.initializing, group.initialized):
                state = stage.get(topic_id)
                if state is not None:
                    partitions |= state.partitions
                    # a deleted topic stays listed while its partitions are known: it cannot be assigned
                    if topic is not None:
                        group.deleting[topic_id] = stage.pop(topic_id).name
            keys += [SharePartitionKey(group.group_id, topic_id, index) for index in sorted(partitions)]
        group.deletions |= set(topic_ids)

        def deleted(failed: Mapping[SharePartitionKey, KafkaError]) -> None:
            group.deletions -= set(topic_ids)
            for topic_id in set(topic_ids) - {key.topic_id for key in failed}:
                for stage in (group.initializing, group.initialized, group.deleting):
                    stage.pop(topic_id, None)
            group.complete_at = -1
            for error in failed.values():
                done(error)
                return
            self._write(group, done)

        def planned(error: KafkaError | None) -> None:
            if error is not None:
                group.deletions -= set(topic_ids)
                done(error)
                return
            gone: Gather[SharePartitionKey] = Gather()
            for key in keys:
                gone.run(key, self._persister.delete, key)
            gone.when_ended(lambda: deleted(gone.failed))

        self._write_plan(group, planned)

    def _retry_deletions(self, group: ShareGroup) -> None:
        """Retry failed deletions."""
        again = [each for each in group.deleting if each not in group.deletions]
        if again:
            self.delete_topics(group, again, _ignore)

    def delete_all(self, group: ShareGroup, done: Done) -> None:
        """Delete all state of a group."""
        topics = {**group.initializing, **group.initialized}
        self.delete_topics(group, [*topics, *(set(group.deleting) - set(topics))], done)

    def forget_topics(self, group: ShareGroup, topic_ids: Collection[UUID]) -> None:
        """Delete the state of topics that have been deleted."""
        known = [each for each in topic_ids if each in group.initialized or each in group.initializing]
        if known:
            self.delete_topics(group, known, _ignore)

    def resume(self, group: ShareGroup) -> None:
        """Resume after a restart: finish deletions now, and creations on demand."""
        for topic_id, state in list(group.initializing.items()):
            # an unconfirmed reset: the state is either the old one or the new one
            if topic_id in group.initialized:
                state.partitions -= group.initialized[topic_id].partitions
                if not state.partitions:
                    del group.initializing[topic_id]
        if group.deleting:
            self.delete_topics(group, list(group.deleting), _ignore)
        for topic_id, state in {**group.initialized, **group.initializing}.items():
            if self._topics.find_id(topic_id) is None:
                self._topics.when_gone(topic_id, state.name, partial(self.forget_topics, group, [topic_id]))

    def _write_plan(self, group: ShareGroup, planned: Done) -> None:
        """Persist the plan; `planned` is called once it is durable and may be executed."""
        self._write(group, planned)
        self._records.flush()

    def _write(self, group: ShareGroup, done: Done) -> None:
        if group.resigned:
            done(_RESIGNED)
            return

        def written(error: KafkaError | None) -> None:
            done(_RESIGNED if error is None and group.resigned else error)

        self._records.append(group.group_id, [group.topics_record()], written)


def _ignore(error: KafkaError | None) -> None:
    if error is not None:
        logger.error("cannot persist the topic states of a share group: %s", error)


def _wanted(group: ShareGroup, missing: _Missing) -> _Missing:
    """Return the part of a plan that no later deletion or reset has replaced."""
    return [each for each in missing if group.initializing.get(each[0].topic_id) is each[1]]


def _keys(group: ShareGroup, missing: _Missing) -> Iterator[SharePartitionKey]:
    for topic, state in missing:
        for partition in sorted(state.partitions):
            yield SharePartitionKey(group.group_id, topic.topic_id, partition)


def _is_state(found: StateSummary | KafkaError) -> TypeGuard[StateSummary]:
    """Return whether state exists; a summary without values means none."""
    return not isinstance(found, KafkaError) and (found.state_epoch > 0 or found.start_offset != _NOT_KNOWN)
