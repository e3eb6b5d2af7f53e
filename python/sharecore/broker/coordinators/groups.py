"""Group and transaction coordinators, wired to the broker's topics."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TypeVar

from sharecore.broker.configs.groups import GroupConfigs
from sharecore.broker.coordinators.producer_ids import ProducerIds
from sharecore.broker.coordinators.state_logs import StateLogs
from sharecore.broker.coordinators.topic_view import TopicDirectory
from sharecore.clock import Clock
from sharecore.config import BrokerConfig
from sharecore.coordinator.classic import ClassicCoordinator, ClassicGroup, ClassicLimits
from sharecore.coordinator.commits import OffsetCommits
from sharecore.coordinator.consumer import ConsumerCoordinator, ConsumerGroup, ConsumerLimits
from sharecore.coordinator.offset_records import TopicPartition
from sharecore.coordinator.offsets import Offsets
from sharecore.coordinator.registry import Group, GroupRegistry
from sharecore.coordinator.transactions import TransactionCoordinator, TransactionLimits
from sharecore.coordinator_log.runtime import CoordinatorRuntime
from sharecore.coordinator_log.topic_log import Record
from sharecore.errors import ErrorCode, KafkaError
from sharecore.storage import Log, Topic, Topics
from sharecore.storage.topics import TopicChange
from sharecore.waiting import Done, FairThread

logger = logging.getLogger("sharecore.broker")

Found = TypeVar("Found")

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"


class Coordinators:
    """Coordinators of offset-committing groups and of transactions.

    Other coordinators with records in `__consumer_offsets` register with `records` before `start`.

    Args:
        config: returns the broker's current configuration.
        group_configs: configurations of groups.
        state: logs of the records.
        long_work: runs long work beside the event loop.
    """

    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        topics: Topics,
        group_configs: GroupConfigs,
        producer_ids: ProducerIds,
        state: StateLogs,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        long_work: FairThread,
    ) -> None:
        self._config = config
        self._topics = topics
        self._group_configs = group_configs
        self._clock = clock
        self._loop = loop
        self._long_work = long_work
        self._under_way: set[asyncio.Task[object]] = set()
        self._timers: dict[Callable[[], None], asyncio.TimerHandle] = {}
        self.registry = GroupRegistry(config().sharecore_groups_bytes_max, clock.monotonic_ms)
        self.records = CoordinatorRuntime(
            lambda: state.logs(OFFSETS_TOPIC),
            clock,
            loop,
            compacted=not state.self_compacting,
            owner_check=state.owner_check,
        )
        # markers follow a decision without waiting for it: if it fails, so do they, and are not retried
        self._transaction_records = CoordinatorRuntime(
            lambda: state.logs(TRANSACTIONS_TOPIC), clock, loop, attempts_max=1
        )
        now = config()
        self.offsets = Offsets(self.records, now.sharecore_group_offsets_bytes_max)
        self.classic = ClassicCoordinator(
            self.registry,
            self.records,
            ClassicLimits(
                now.group_min_session_timeout_ms,
                now.group_max_session_timeout_ms,
                now.group_max_size,
                max(now.group_initial_rebalance_delay_ms, 0),
                now.sharecore_group_bytes_max,
            ),
            replaced=self._replaced,
        )
        self.consumer = ConsumerCoordinator(
            self.registry,
            self.records,
            TopicDirectory(topics),
            self._consumer_limits,
            assignors=now.group_consumer_assignors,
            rack=now.broker_rack,
            replaced=self._replaced,
            apart=self._run_apart,
        )
        self.commits = OffsetCommits(
            self.registry,
            self.records,
            self.offsets,
            self.classic,
            clock,
            retention_ms=now.offsets_retention_minutes * 60_000,
        )
        self.transactions = TransactionCoordinator(
            self._transaction_records,
            TransactionLimits(
                now.transaction_max_timeout_ms,
                now.transactional_id_expiration_ms,
                now.sharecore_transactional_ids_bytes_max,
            ),
            new_producer_id=producer_ids.take,
            log_of=self._log_of,
            ended=self._transaction_ended,
        )
        topics.on_change(self._topic_changed)

    def start(self) -> None:
        """Replay the topics and resume.

        Raises:
            KafkaError: UNKNOWN_SERVER_ERROR for a damaged record.
        """
        self.records.load()
        self._transaction_records.load()
        self.classic.start()
        self.consumer.start()
        self.commits.start()
        self.transactions.start()
        config = self._config()
        self._repeat(config.offsets_retention_check_interval_ms, self.forget_unused)
        self._repeat(
            config.transaction_remove_expired_transaction_cleanup_interval_ms, self.transactions.expire
        )

    def stop(self) -> None:
        """Append the staged records and cancel the timers."""
        for timer in self._timers.values():
            timer.cancel()
        self.records.flush()
        self._transaction_records.flush()

    def offsets_partition(self, group_id: str) -> TopicPartition:
        """Return the `__consumer_offsets` partition of a group's records."""
        return TopicPartition(OFFSETS_TOPIC, self.records.partition_of(group_id))

    def forget_unused(self) -> None:
        """Delete expired offsets, and groups that have none left."""
        for group in self.commits.expire():
            self._delete(group, lambda error: None)

    def delete(self, group_id: str, done: Done) -> None:
        """Delete a group that commits offsets, with its offsets.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND if the group does not exist or has another type,
                NON_EMPTY_GROUP.
        """
        group = self.registry.get(group_id)
        if not isinstance(group, ClassicGroup | ConsumerGroup):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        group.check_delete()
        self._delete(group, done)

    def _delete(self, group: Group, done: Done) -> None:
        """Delete an empty group with its offsets, atomically with respect to commits."""
        group_id = group.group_id
        partitions = self.offsets.all_partitions(group_id)
        records = [*self.offsets.gone_records(group_id, partitions), *self._take_out(group)]

        def ended(error: KafkaError | None) -> None:
            if error is None:
                self.offsets.forget(group_id, partitions)

        self.records.append(group_id, records, done, ended=ended)

    def _replaced(self, group: Group) -> None:
        """Delete a group replaced by one of another protocol; its offsets stay."""
        self.records.append(group.group_id, self._take_out(group), lambda error: None)

    def _take_out(self, group: Group) -> list[Record]:
        if isinstance(group, ClassicGroup):
            return self.classic.delete(group)
        assert isinstance(group, ConsumerGroup)
        return self.consumer.delete(group)

    def _log_of(self, partition: TopicPartition) -> Log | None:
        return self._topics.log(partition.topic, partition.partition)

    def _run_apart(self, group_id: str, work: Callable[[], Found], done: Callable[[Found], object]) -> None:
        task = self._loop.create_task(self._long_work.run(f"group:{group_id}", work))
        self._under_way.add(task)

        def ended(_: object) -> None:
            self._under_way.discard(task)
            if not task.cancelled():
                done(task.result())

        task.add_done_callback(ended)

    def _consumer_limits(self, group_id: str) -> ConsumerLimits:
        own = self._group_configs.get(group_id)
        return ConsumerLimits(
            own.consumer_session_timeout_ms,
            own.consumer_heartbeat_interval_ms,
            own.consumer_assignment_interval_ms,
            self._config().group_consumer_max_size,
            self._config().group_consumer_regex_refresh_interval_ms,
            self._config().sharecore_group_bytes_max,
        )

    def _transaction_ended(self, producer_id: int, partition: TopicPartition, commit: bool) -> None:
        if partition.topic == OFFSETS_TOPIC:
            self.offsets.complete(producer_id, partition.partition, commit=commit)

    def _topic_changed(self, change: TopicChange, topic: Topic) -> None:
        if change is not TopicChange.DELETED:
            return
        if topic.name == OFFSETS_TOPIC:
            self.classic.forget_all()
            self.records.topic_deleted()
        elif topic.name == TRANSACTIONS_TOPIC:
            self.transactions.forget_all()
            self._transaction_records.topic_deleted()
        else:
            self.commits.topic_deleted(topic.name)

    def _repeat(self, interval_ms: int, work: Callable[[], None]) -> None:
        def fired() -> None:
            self._repeat(interval_ms, work)
            work()

        self._timers[work] = self._loop.call_later(interval_ms / 1000, fired)
