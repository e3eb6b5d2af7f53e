"""Share-group services, wired to the broker's topics."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from uuid import UUID

from sharecore._core import StateContent, Timeouts
from sharecore.broker.cluster import Cluster
from sharecore.broker.configs.groups import GroupConfigs
from sharecore.broker.coordinators.state_logs import StateLogs
from sharecore.broker.coordinators.topic_view import TopicDirectory
from sharecore.clock import Clock
from sharecore.config import DEFAULT_PERSISTER, NO_PERSISTER, BrokerConfig
from sharecore.coordinator.registry import GroupRegistry
from sharecore.coordinator.share.coordinator import ShareGroupCoordinator
from sharecore.coordinator.share.group import ShareGroup
from sharecore.coordinator.share.offsets import ShareOffsets
from sharecore.coordinator.share.topic_state import ShareTopicStates
from sharecore.coordinator.topics import TopicInfo
from sharecore.coordinator_log.runtime import CoordinatorRuntime
from sharecore.deadletters import DeadLetterService
from sharecore.errors import NO_SUCH_PARTITION, ErrorCode, KafkaError
from sharecore.network import Connection
from sharecore.partition import SharePartition, SharePartitions
from sharecore.persister import CoordinatorPersister, NoOpPersister, Persister, load_plugin
from sharecore.session import ShareSession, ShareSessionCache
from sharecore.sharestate.coordinator import ShareCoordinator
from sharecore.sharestate.keys import STATE_TOPIC, SharePartitionKey
from sharecore.storage import Log, Topic, Topics
from sharecore.topic_names import INTERNAL_TOPICS
from sharecore.waiting import Done, MovableTime

logger = logging.getLogger("sharecore.broker")

_IDLE_CHECK_SECONDS = 60.0
_LEAVING_SECONDS = 5.0
"""How long a member that has left may acknowledge acquired records: as long as a write may take."""


class ShareServices:
    """Services of share groups.

    Args:
        registry: groups of all types.
        records: `__consumer_offsets`.
        dead_letters: writes dead-letter records.
        state: logs of the states.
        cluster: leaders of share partitions.
        lock_time: clock and timers of acquisition locks, if other than `clock` and `loop`.
    """

    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        topics: Topics,
        group_configs: GroupConfigs,
        registry: GroupRegistry,
        records: CoordinatorRuntime,
        dead_letters: DeadLetterService,
        state: StateLogs,
        cluster: Cluster,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        lock_time: MovableTime | None = None,
    ) -> None:
        self._config = config
        self._all_topics = topics
        self._cluster = cluster
        self._state = state
        self._loop = loop
        self.timeouts = Timeouts(clock.monotonic_ms, loop.call_later)
        self.dead_letters = dead_letters
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._leaving: dict[ShareSession, asyncio.TimerHandle] = {}
        self._watched: set[Connection] = set()
        self.topics = TopicDirectory(topics, hidden=INTERNAL_TOPICS)
        state_records = CoordinatorRuntime(
            lambda: state.logs(STATE_TOPIC),
            clock,
            loop,
            write_timeout_ms=config().share_coordinator_write_timeout_ms,
            compacted=False,
            owner_check=state.owner_check,
        )
        self.coordinator = ShareCoordinator(
            state_records,
            updates_per_snapshot=config().share_coordinator_snapshot_update_records_per_snapshot,
            cold_ms=config().share_coordinator_cold_partition_snapshot_interval_ms,
            route=state.route,
        )
        self.persister = _persister(config(), self.coordinator, state, loop)
        self.partitions = SharePartitions(
            self._find_log,
            group_configs.get,
            persister=self.persister,
            clock=lock_time or clock,
            call_later=(lock_time or loop).call_later,
            dead_letter_service=dead_letters,
            leader_epoch=lambda topic_id, partition: cluster.leader(topic_id, partition).epoch,
            stateless=lambda key: self.groups.state_lost(key),
            is_connected=lambda group_id, member_id: self.sessions.has(group_id, member_id),
            expanded_bytes=config().sharecore_expanded_cache_bytes,
            when_configured=group_configs.when_current,
        )
        self.sessions = ShareSessionCache(
            config().group_share_max_share_sessions,
            self._session_closed,
            partitions_max=config().sharecore_share_session_partitions_max,
            bytes_max=config().sharecore_share_sessions_bytes_max,
        )
        self.states = ShareTopicStates(self.persister, records, self.topics)
        self.groups = ShareGroupCoordinator(
            registry,
            records,
            self.topics,
            self.states,
            group_configs.get,
            max_size=config().group_share_max_size,
            bytes_max=config().sharecore_group_bytes_max,
            rack=config().broker_rack,
            member_left=self._member_left,
            member_joined=self._member_joined,
            member_gone=self.sessions.close_member,
        )
        self.offsets = ShareOffsets(
            registry,
            self.groups,
            self.states,
            self.persister,
            self.topics,
            self._end_offset,
            self.partitions.hold,
            self._at_hand if config().group_share_persister_class_name == DEFAULT_PERSISTER else None,
        )
        group_configs.on_change(self.partitions.reconfigure)
        topics.on_change(self._topic_changed)

    def start(self) -> None:
        """Resume the replayed groups."""
        self.groups.start()
        self._drop_idle()
        self._prune_later()
        if not self._state.self_compacting:
            self._load_later(0)

    def _load_later(self, partition: int) -> None:
        """Load the state topic one partition per turn, so that lag is measured for unused groups too."""
        self._timers["load"] = self._loop.call_later(0, self._load, partition)

    def _load(self, partition: int) -> None:
        if partition >= self.coordinator.partition_count:
            return
        # a failed load is logged, and refused to each client that needs the partition
        with suppress(KafkaError):
            self.coordinator.load(partition)
        self._load_later(partition + 1)

    async def finish(self) -> None:
        """Append staged records before the broker stops."""
        self.coordinator.flush()
        self.persister.close()
        await asyncio.sleep(0)  # run callbacks from a persister's threads

    def stop(self) -> None:
        """Close the leaders."""
        for timer in (*self._timers.values(), *self._leaving.values()):
            timer.cancel()
        self.dead_letters.stop()
        self.partitions.drop_all()

    def broker_reconfigured(self) -> None:
        """Apply a changed broker configuration, from which group limits may follow."""
        config = self._config()
        self.sessions.max_sessions = config.group_share_max_share_sessions
        self.groups.max_size = config.group_share_max_size
        self.partitions.reconfigure()

    def watch(self, connection: Connection) -> None:
        """End a connection's share sessions when it closes."""
        if connection not in self._watched:
            self._watched.add(connection)
            connection.on_close(lambda: self._connection_lost(connection))

    def _connection_lost(self, connection: Connection) -> None:
        self._watched.discard(connection)
        self.sessions.connection_lost(connection)

    def take_over(self, partition: int) -> None:
        """Take over a partition of the coordinator topics after its replay.

        Raises:
            KafkaError: share state in it cannot be read.
        """
        self.coordinator.load(partition)
        self.groups.start()

    def resign(self, partition: int, holds: Callable[[UUID, int], bool]) -> None:
        """Resign from a partition of the coordinator topics.

        Args:
            holds: returns whether it has the state of a topic partition.
        """
        self.partitions.drop_partitions(holds)
        self.partitions.resume(partition)
        self.groups.resign(partition)
        self.coordinator.resign(partition)

    def rest(self, partition: int, holds: Callable[[UUID, int], bool]) -> list[SharePartition]:
        """Stop acquiring records of share partitions with state in a partition; return their leaders."""
        return self.partitions.rest(partition, holds)

    def resume(self, partition: int) -> None:
        """Resume acquiring records."""
        self.partitions.resume(partition)

    def partition_count(self, topic_id: UUID) -> int | None:
        """Return a topic's number of partitions; None if the id is unknown."""
        topic = self._all_topics.by_id(topic_id)
        return None if topic is None else len(topic.partitions)

    def check_exists(self, key: SharePartitionKey) -> None:
        """Raise KafkaError(UNKNOWN_TOPIC_OR_PARTITION) unless the topic has such a partition."""
        if not 0 <= key.partition < (self.partition_count(key.topic_id) or 0):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NO_SUCH_PARTITION)

    def delete_group(self, group: ShareGroup, done: Done) -> None:
        """Delete an empty group with its state and share-partition leaders.

        Raises:
            KafkaError: NON_EMPTY_GROUP.
        """

        def deleted(error: KafkaError | None) -> None:
            release()
            if error is None:
                self.partitions.forget_group(group.group_id)
            done(error)

        group.check_delete()
        release = self.partitions.hold(group.group_id)
        self.groups.delete(group, deleted)

    def state_restarted(self, key: SharePartitionKey) -> None:
        """End the leader of a share partition whose state was reset or deleted, so that it reloads."""
        self.partitions.drop_one(key)

    def _find_log(self, topic_id: UUID, partition: int) -> Log:
        topic = self._all_topics.by_id(topic_id)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        if not 0 <= partition < len(topic.partitions):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        self._cluster.check_leader(topic_id, partition)
        return topic.partitions[partition]

    def _end_offset(self, topic: TopicInfo, partition: int, found: Callable[[int | None], None]) -> None:
        log = self._all_topics.log(topic.name, partition)
        if log is None:
            found(None)
        else:
            log.when_known(lambda error: found(log.high_watermark if error is None else None))

    def _at_hand(
        self, group_id: str, topic: TopicInfo, partitions: Iterable[int]
    ) -> Iterator[tuple[int, StateContent, int]]:
        found = self._all_topics.get(topic.name)
        logs = found.partitions if found is not None else ()
        ends = [log.high_watermark if log.is_known else None for log in logs]
        for partition, state in self.coordinator.at_hand(group_id, topic.topic_id, partitions):
            if partition < len(ends) and (end := ends[partition]) is not None:
                yield partition, state, end

    def _member_left(self, group_id: str, member_id: str) -> None:
        """Keep the session of a member that has left for a while, then end it."""
        session = self.sessions.leave(group_id, member_id)
        if session is not None and session not in self._leaving:
            self._leaving[session] = self._loop.call_later(_LEAVING_SECONDS, self.sessions.close, session)

    def _member_joined(self, group_id: str, member_id: str) -> None:
        """Keep the session of a member that left and has rejoined, with its acquired records."""
        self._stay(self.sessions.rejoin(group_id, member_id))

    def _stay(self, session: ShareSession | None) -> None:
        leaving = self._leaving.pop(session, None) if session is not None else None
        if leaving is not None:
            leaving.cancel()

    def _session_closed(self, session: ShareSession) -> None:
        self._stay(session)
        self.partitions.release(session.group_id, session.member_id, session.held)

    def _topic_changed(self, change: object, topic: Topic) -> None:
        if topic.name == STATE_TOPIC and self._all_topics.by_id(topic.topic_id) is None:
            self.coordinator.topic_deleted()
            self.partitions.drop_all()
        elif self._all_topics.by_id(topic.topic_id) is None:
            self.partitions.drop_topic(topic.topic_id)
            self.groups.topics_changed([topic.topic_id])

    def _drop_idle(self) -> None:
        self._timers["idle"] = self._loop.call_later(_IDLE_CHECK_SECONDS, self._drop_idle)
        self.partitions.drop_idle()

    def _prune_later(self) -> None:
        interval_ms = self._config().share_coordinator_state_topic_prune_interval_ms
        self._timers["prune"] = self._loop.call_later(interval_ms / 1000, self._prune)

    def _prune(self) -> None:
        self._prune_later()
        try:
            self.coordinator.prune()
        except KafkaError as error:
            logger.warning("cannot prune %s: %s", STATE_TOPIC, error)


def _persister(
    config: BrokerConfig, coordinator: ShareCoordinator, state: StateLogs, loop: asyncio.AbstractEventLoop
) -> Persister:
    name = config.group_share_persister_class_name
    if name == DEFAULT_PERSISTER:
        return state.persister(CoordinatorPersister(coordinator))
    if name in ("", NO_PERSISTER):
        return NoOpPersister()
    return load_plugin(name, config.persister_settings, loop)
