"""Retention: moves log start offsets past records beyond the age or size limit."""

from __future__ import annotations

import logging
from collections.abc import Callable

from sharecore.broker.configs.topics import TopicConfigs
from sharecore.clock import Clock
from sharecore.config import BrokerConfig, TopicConfig
from sharecore.errors import KafkaError
from sharecore.storage import Storage, StoreLog, store_logs
from sharecore.waiting import Periodic

log = logging.getLogger("sharecore.broker")


class Retention:
    """Apply retention to topics with the cleanup policy `delete`, and forget idle producers.

    Args:
        storage: the logs.
        topic_configs: retention of each topic.
        broker_config: returns the broker's current configuration.
        clock: the time for the age of records.
    """

    def __init__(
        self,
        storage: Storage,
        topic_configs: TopicConfigs,
        broker_config: Callable[[], BrokerConfig],
        clock: Clock,
    ) -> None:
        self._storage = storage
        self._topic_configs = topic_configs
        self._broker_config = broker_config
        self._clock = clock
        self._maintenance_error: str | None = None
        self._rounds = Periodic(
            self.check, lambda: broker_config().log_retention_check_interval_ms, "retention"
        )

    def start(self) -> None:
        """Start to check, every log.retention.check.interval.ms."""
        self._rounds.start()

    def stop(self) -> None:
        """Stop checking."""
        self._rounds.stop()

    async def check(self) -> None:
        """Check every log once."""
        now_ms = self._clock.now_ms()
        for topic in tuple(self._storage.topics):
            config = self._topic_configs.get(topic.name)
            if "delete" in config.cleanup_policy:
                for partition in store_logs(topic):
                    await self._trim(partition, config, now_ms)
        idle_since = now_ms - self._broker_config().producer_id_expiration_ms
        self._storage.store.expire_producers(idle_since)
        self._look_at_maintenance()

    def _look_at_maintenance(self) -> None:
        """Log a new reason why the store's files cannot be completed or compacted."""
        error = self._storage.store.maintenance_error
        if error not in (None, self._maintenance_error):
            log.error("cannot complete or compact files of the journal: %s. Trying again", error)
        self._maintenance_error = error

    async def _trim(self, partition: StoreLog, config: TopicConfig, now_ms: int) -> None:
        oldest_ms = None if config.retention_ms < 0 else now_ms - config.retention_ms
        max_bytes = None if config.retention_bytes < 0 else config.retention_bytes
        about = {"topic": partition.topic, "partition": partition.index}
        try:
            if await partition.retain(oldest_ms=oldest_ms, max_bytes=max_bytes) is not None:
                log.info("%s-%d: retention moves the start", partition.topic, partition.index, extra=about)
        except KafkaError as error:
            log.warning("%s-%d: retention failed: %s", partition.topic, partition.index, error, extra=about)
