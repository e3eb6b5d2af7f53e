"""The life of share-partition state, as a share group asks for it: made when first wanted, deleted when done
with.

What a group has asked for stands in its StatePartitionMetadata record before it is done, so that a broker
that stops in the middle goes on where it was (KIP-932, "Managing durable share-partition state").

Answers of the persister may come late. Who coordinates the group then, perhaps this broker once more, has
read from the log what became of it since, so nothing is concluded from an answer to what was asked before.
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
_RESIGNED = KafkaError(ErrorCode.NOT_COORDINATOR, "Another broker has coordinated the group meanwhile.")
_Missing = Sequence[tuple[TopicInfo, TopicState]]
"""Topics, with what is planned to be made of them."""


class ShareTopicStates:
    """Makes and deletes the state of a group's share partitions.

    Args:
        persister: keeps the state.
        records: `__consumer_offsets`.
        topics: the topics that exist.
    """

    def __init__(self, persister: Persister, records: CoordinatorRuntime, topics: NotedTopics) -> None:
        self._persister = persister
        self._records = records
        self._topics = topics
        self._clock = records.clock

    def making_ms(self, group: ShareGroup) -> int | None:
        """For how long the creation of state has been under way; None where there is none."""
        since_ms = group.making_since_ms
        return None if since_ms is None else self._clock.monotonic_ms() - since_ms

    def initialize_missing(self, group: ShareGroup) -> None:
        """Create state for subscribed partitions that have none."""
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
        """A leader has found no state where the group has noted some: what is missing is made anew with the
        next heartbeat, and begins where the group's reset policy says.
        """
        state = group.initialized.pop(topic_id, None)
        if state is not None:
            group.complete_at = -1
            logger.error(
                "state of share group %s and topic %s is lost",
                group.group_id,
                state.name,
                extra={"group": group.group_id},
            )

    def check(self, group: ShareGroup, doubted: Callable[[SharePartitionKey], bool]) -> None:
        """Asks whether state that the group has noted is there; what is lost is made anew (`lost`).

        Args:
            doubted: which of it is asked for.
        """
        keys = (
            SharePartitionKey(group.group_id, topic_id, index)
            for topic_id, state in group.initialized.items()
            for index in state.partitions
        )
        found: Gather[SharePartitionKey] = Gather()
        for key in [key for key in keys if doubted(key)]:
            found.run(key, self._persister.summary, key)

        def told() -> None:
            for key, summary in found.outcomes.items() if not group.resigned else ():
                if not isinstance(summary, KafkaError) and not _is_state(summary):
                    self.lost(group, key.topic_id)

        found.when_ended(told)

    def _missing(self, group: ShareGroup) -> Iterable[tuple[TopicInfo, set[int]]]:
        for topic in existing(self._topics, group.subscribed):
            state = group.initialized.get(topic.topic_id)
            known = state.partitions if state is not None else set()
            if topic.topic_id not in group.deleting and len(known) < topic.partitions:
                yield topic, set(range(topic.partitions)) - known

    def _look(self, group: ShareGroup, missing: _Missing) -> None:
        """Asks what state there is already: a group whose record of it was lost keeps it.

        Begun anew, it would give out again what is settled, and the leader that has it would not notice.
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
            # begun anew under this broker's next term, state would lose what was settled since
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
                # partitions that a known topic has grown by are new: nothing in them may be missed
                start_offset = _FROM_THE_START if key.topic_id in group.initialized else _NOT_KNOWN
                made.run(key, self._persister.initialize, key, group.epoch, start_offset)
        made.when_ended(lambda: self._initialized(group, missing, made.failed))

    def _keep(self, group: ShareGroup, kept: Mapping[SharePartitionKey, StateSummary]) -> None:
        """Goes on with state that was there already; the group's epoch is to be no lower than the state's."""
        logger.warning(
            "share group %s keeps the state that there is of %d partitions",
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
                "state of %s was not made: %s",
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
        """Reset state to start offsets; `done` is called for each once that is durable."""
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
        """Note that state exists now, unless its deletion was asked for meanwhile."""
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
                    # a topic that is gone stays where its partitions are known: nobody can be assigned them
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
        """Try again what could not be deleted."""
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
        """Goes on after a restart: what was being deleted is deleted; what was being made is made when it is
        wanted.
        """
        for topic_id, state in list(group.initializing.items()):
            # begun anew, which nobody was told of: it is there as it was, or as it was to be
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
        """Write down what is about to be done; it may be done once that is durable."""
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
        logger.error("the state of a share group's topics was not written: %s", error)


def _wanted(group: ShareGroup, missing: _Missing) -> _Missing:
    """Return what of a plan stands: nobody has asked meanwhile for the state to be deleted, or begun anew."""
    return [each for each in missing if group.initializing.get(each[0].topic_id) is each[1]]


def _keys(group: ShareGroup, missing: _Missing) -> Iterator[SharePartitionKey]:
    for topic, state in missing:
        for partition in sorted(state.partitions):
            yield SharePartitionKey(group.group_id, topic.topic_id, partition)


def _is_state(found: StateSummary | KafkaError) -> TypeGuard[StateSummary]:
    """Whether there is state; of none a summary says that nothing is known."""
    return not isinstance(found, KafkaError) and (found.state_epoch > 0 or found.start_offset != _NOT_KNOWN)
