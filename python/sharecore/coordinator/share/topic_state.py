"""The life of share-partition state, as a share group asks for it: made when first wanted, deleted when done
with.

What a group has asked for stands in its StatePartitionMetadata record before it is done, so that a broker
that stops in the middle goes on where it was (KIP-932, "Managing durable share-partition state").
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from uuid import UUID

from sharecore.coordinator.share.group import ShareGroup, TopicState
from sharecore.coordinator.topics import TopicInfo, TopicView, existing
from sharecore.coordinator_log.runtime import CoordinatorRuntime
from sharecore.errors import KafkaError
from sharecore.persister import Persister
from sharecore.sharestate.keys import SharePartitionKey
from sharecore.waiting import Done, Gather

logger = logging.getLogger(__name__)

_NOT_KNOWN = -1
_FROM_THE_START = 0


class ShareTopicStates:
    """Makes and deletes the state of a group's share partitions.

    Args:
        persister: keeps the state.
        records: `__consumer_offsets`.
        topics: the topics that exist.
    """

    def __init__(self, persister: Persister, records: CoordinatorRuntime, topics: TopicView) -> None:
        self._persister = persister
        self._records = records
        self._topics = topics
        self._clock = records.clock
        self._making: dict[str, int] = {}
        self._deletions: set[tuple[str, UUID]] = set()

    def making_ms(self, group: ShareGroup) -> int | None:
        """For how long the creation of state has been under way; None where there is none."""
        since_ms = self._making.get(group.group_id)
        return None if since_ms is None else self._clock.monotonic_ms() - since_ms

    def initialize_missing(self, group: ShareGroup) -> None:
        """Creates state for subscribed partitions that have none."""
        if group.deleting:
            self._retry_deletions(group)
        if group.complete_at == self._topics.version or group.group_id in self._making:
            return
        missing = list(self._missing(group))
        if not missing:
            group.complete_at = self._topics.version
            return
        self._making[group.group_id] = self._clock.monotonic_ms()
        for topic, partitions in missing:
            group.initializing[topic.topic_id] = TopicState(topic.name, set(partitions))

        def planned(error: KafkaError | None) -> None:
            if error is None:
                self._make(group, [each for each in missing if each[0].topic_id in group.initializing])
            else:
                del self._making[group.group_id]

        self._write_plan(group, planned)

    def _make(self, group: ShareGroup, missing: Sequence[tuple[TopicInfo, list[int]]]) -> None:
        made: Gather[tuple[UUID, int]] = Gather()
        for topic, partitions in missing:
            # partitions that a known topic has grown by are new: nothing in them may be missed
            grown = topic.topic_id in group.initialized
            for partition in partitions:
                key = SharePartitionKey(group.group_id, topic.topic_id, partition)
                start_offset = _FROM_THE_START if grown else _NOT_KNOWN
                made.run(
                    (topic.topic_id, partition), self._persister.initialize, key, group.epoch, start_offset
                )
        made.when_ended(lambda: self._initialized(group, missing, made.failed))

    def _missing(self, group: ShareGroup) -> Iterable[tuple[TopicInfo, list[int]]]:
        for topic in existing(self._topics, group.subscribed):
            state = group.initialized.get(topic.topic_id)
            known = state.partitions if state is not None else set()
            if topic.topic_id not in group.deleting and len(known) < topic.partitions:
                yield topic, [index for index in range(topic.partitions) if index not in known]

    @staticmethod
    def _count(missing: Iterable[tuple[TopicInfo, list[int]]]) -> int:
        return sum(len(partitions) for _, partitions in missing)

    def _initialized(
        self,
        group: ShareGroup,
        missing: Iterable[tuple[TopicInfo, list[int]]],
        failed: Mapping[tuple[UUID, int], KafkaError],
    ) -> None:
        del self._making[group.group_id]
        for topic, partitions in missing:
            self._add_made(
                group, topic, {each for each in partitions if (topic.topic_id, each) not in failed}
            )
        for (topic_id, partition), error in failed.items():
            logger.error(
                "state of %s partition %d of %s was not made: %s",
                topic_id,
                partition,
                group.group_id,
                error,
                extra={"group": group.group_id, "partition": partition},
            )
        self._write(group, _ignore)

    def begin_anew(
        self,
        group: ShareGroup,
        offsets: Mapping[tuple[TopicInfo, int], int],
        done: Mapping[tuple[TopicInfo, int], Done],
    ) -> None:
        """Resets state to start offsets; `done` is called for each once that is durable."""
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
        """Notes that state exists now, unless its deletion was asked for meanwhile."""
        if topic.topic_id in group.initializing:
            group.add_initialized(topic, partitions)

    def delete_topics(self, group: ShareGroup, topic_ids: Collection[UUID], done: Done) -> None:
        """Deletes the state of all partitions of some topics of a group."""
        keys: list[SharePartitionKey] = []
        for topic_id in topic_ids:
            topic = self._topics.find_id(topic_id)
            partitions = set() if topic is None else set(range(topic.partitions))
            for stage in (group.initializing, group.initialized):
                state = stage.get(topic_id)
                if state is not None:
                    partitions |= state.partitions
                    # a topic that is gone stays where its partitions are known: nobody can be assigned them
                    if topic is not None:
                        group.deleting[topic_id] = stage.pop(topic_id).name
            keys += [SharePartitionKey(group.group_id, topic_id, index) for index in sorted(partitions)]
        self._deletions |= {(group.group_id, topic_id) for topic_id in topic_ids}

        def deleted(failed: Mapping[SharePartitionKey, KafkaError]) -> None:
            self._deletions -= {(group.group_id, topic_id) for topic_id in topic_ids}
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
                self._deletions -= {(group.group_id, topic_id) for topic_id in topic_ids}
                done(error)
                return
            gone: Gather[SharePartitionKey] = Gather()
            for key in keys:
                gone.run(key, self._persister.delete, key)
            gone.when_ended(lambda: deleted(gone.failed))

        self._write_plan(group, planned)

    def _retry_deletions(self, group: ShareGroup) -> None:
        """Tries again what could not be deleted."""
        again = [each for each in group.deleting if (group.group_id, each) not in self._deletions]
        if again:
            self.delete_topics(group, again, _ignore)

    def delete_all(self, group: ShareGroup, done: Done) -> None:
        """Deletes all state of a group."""
        topics = {**group.initializing, **group.initialized}
        self.delete_topics(group, [*topics, *(set(group.deleting) - set(topics))], done)

    def forget_topics(self, group: ShareGroup, topic_ids: Collection[UUID]) -> None:
        """Deletes the state of topics that have been deleted."""
        known = [each for each in topic_ids if each in group.initialized or each in group.initializing]
        if known:
            self.delete_topics(group, known, _ignore)

    def resume(self, group: ShareGroup) -> None:
        """Goes on after a restart: what was being deleted is deleted; what was being made is made when it is
        wanted.
        """
        for topic_id, state in list(group.initializing.items()):
            # begun anew, which nobody was told of: it is there as it was, or as it was to be
            if topic_id in group.initialized:
                state.partitions -= group.initialized[topic_id].partitions
                if not state.partitions:
                    del group.initializing[topic_id]
        gone = [
            topic_id
            for topic_id in (*group.initialized, *group.initializing)
            if self._topics.find_id(topic_id) is None
        ]
        unfinished = [*group.deleting, *gone]
        if unfinished:
            self.delete_topics(group, unfinished, _ignore)

    def _write_plan(self, group: ShareGroup, planned: Done) -> None:
        """Writes down what is about to be done; it may be done once that is durable."""
        self._write(group, planned)
        self._records.flush()

    def _write(self, group: ShareGroup, done: Done) -> None:
        self._records.append(group.group_id, [group.topics_record()], done)


def _ignore(error: KafkaError | None) -> None:
    if error is not None:
        logger.error("the state of a share group's topics was not written: %s", error)
