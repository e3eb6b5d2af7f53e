"""The log cleaner: chooses when to compact which log."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

from sharecore.broker.configs.topics import TopicConfigs
from sharecore.clock import Clock
from sharecore.config import BrokerConfig, TopicConfig
from sharecore.config.keys import LONG_MAX
from sharecore.errors import ErrorCode, KafkaError
from sharecore.storage import Storage, StoreLog, store_logs
from sharecore.storage.cleaner import Dirt, Limits, LogCleaner
from sharecore.topic_names import INTERNAL_TOPICS
from sharecore.waiting import Periodic

log = logging.getLogger("sharecore.broker")

_THREADS_MAX = 16
_SEAL_SECONDS = 0.2


class _Candidate(NamedTuple):
    log: StoreLog
    config: TopicConfig
    dirt: Dirt

    def ratio(self, *, with_active: bool = False) -> float:
        """Return the uncompacted fraction of a log's bytes."""
        dirty = self.dirt.dirty_bytes + (self.dirt.active_bytes if with_active else 0)
        return dirty / max(1, self.dirt.clean_bytes + dirty)

    def is_due(self, now_ms: int) -> bool:
        """Return whether a log is dirty enough, or has been dirty long enough."""
        since = self.dirt.dirty_since_ms
        overdue = since is not None and since < now_ms - self.config.max_compaction_lag_ms
        return self.dirt.dirty_bytes > 0 and (overdue or self.ratio() > self.config.min_cleanable_dirty_ratio)

    def wants_new_segment(self, now_ms: int) -> bool:
        """Return whether the active journal segment has records that would be due once sealed."""
        dirt, config = self.dirt, self.config
        if dirt.active_since_ms is None:
            return False
        age_ms = now_ms - dirt.active_since_ms
        overdue = age_ms > config.max_compaction_lag_ms
        rolled = dirt.active_bytes >= config.segment_bytes or age_ms >= config.segment_ms
        enough = self.ratio(with_active=True) > config.min_cleanable_dirty_ratio
        return overdue or (rolled and enough and age_ms >= config.min_compaction_lag_ms)


class Cleaner:
    """Compact logs of topics whose cleanup policy has `compact`, dirtiest first.

    Internal topics are compacted by their coordinators.

    Args:
        storage: the logs.
        topic_configs: compaction settings of each topic.
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
        self._cleaner = LogCleaner(storage)
        self._topic_configs = topic_configs
        self._broker_config = broker_config
        self._clock = clock
        self._executor = ThreadPoolExecutor(_THREADS_MAX, thread_name_prefix="log-cleaner")
        self._rounds = Periodic(self.check, lambda: broker_config().log_cleaner_backoff_ms, "the log cleaner")
        self._busy: set[int] = set()
        self._unreadable: set[int] = set()

    def start(self) -> None:
        """Start to check, every log.cleaner.backoff.ms."""
        self._rounds.start()

    def stop(self) -> None:
        """Stop starting passes; running ones end when the storage is closed."""
        self._rounds.stop()
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def check(self) -> None:
        """Compact until no log is due."""
        passes: set[asyncio.Task[bool]] = set()
        failed: set[int] = set()
        try:
            while True:
                config = self._broker_config()
                threads = min(config.log_cleaner_threads, _THREADS_MAX)
                while config.log_cleaner_enable and len(passes) < threads:
                    found = await self._next(failed)
                    if found is None:
                        break
                    self._busy.add(found.log.log_id)
                    passes.add(asyncio.create_task(self._pass(found, config, failed)))
                if not passes:
                    return
                _, passes = await asyncio.wait(passes, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in passes:
                each.cancel()

    async def _next(self, failed: set[int]) -> _Candidate | None:
        passed_over = failed | self._busy | self._unreadable
        logs = [
            (partition, config)
            for topic in self._storage.topics
            if topic.name not in INTERNAL_TOPICS
            and "compact" in (config := self._topic_configs.get(topic.name)).cleanup_policy
            for partition in store_logs(topic)
            if partition.log_id not in passed_over
        ]
        if not logs:
            return None
        now_ms = self._clock.now_ms()
        look = partial(self._look, logs, now_ms)
        candidates = await asyncio.get_running_loop().run_in_executor(self._executor, look)
        due = [each for each in candidates if each.is_due(now_ms)]
        return max(due, key=_Candidate.ratio, default=None)

    def _look(self, logs: list[tuple[StoreLog, TopicConfig]], now_ms: int) -> list[_Candidate]:
        """Return the dirty part of each log; runs on a thread that may wait for the disk."""
        found = self._dirt(logs, now_ms)
        if any(each.wants_new_segment(now_ms) for each in found):
            self._cleaner.roll()
            # a pass that starts after the segment is indexed includes its records
            time.sleep(_SEAL_SECONDS)
            found = self._dirt(logs, now_ms)
        return found

    def _dirt(self, logs: list[tuple[StoreLog, TopicConfig]], now_ms: int) -> list[_Candidate]:
        found = []
        for partition, config in logs:
            try:
                dirt = self._cleaner.dirt(partition, _newest_ms(config, now_ms))
            except KafkaError as error:
                # a topic is being deleted, or a segment was replaced in the meantime
                log.debug("cannot check %s-%d: %s", partition.topic, partition.index, error)
                continue
            found.append(_Candidate(partition, config, dirt))
        return found

    async def _pass(self, found: _Candidate, config: BrokerConfig, failed: set[int]) -> bool:
        partition, now_ms = found.log, self._clock.now_ms()
        where = f"{partition.topic}-{partition.index}"
        clean = partial(
            self._cleaner.clean,
            partition,
            now_ms=now_ms,
            newest_ms=_newest_ms(found.config, now_ms),
            delete_retention_ms=found.config.delete_retention_ms,
            limits=_limits(config),
        )
        about = {"topic": partition.topic, "partition": partition.index}
        try:
            done = await asyncio.get_running_loop().run_in_executor(self._executor, clean)
        except KafkaError as error:
            failed.add(partition.log_id)
            if error.code == ErrorCode.CORRUPT_MESSAGE:
                self._unreadable.add(partition.log_id)
                log.error("cannot compact %s until the broker restarts: %s", where, error, extra=about)
            else:
                log.warning("cannot compact %s now: %s", where, error, extra=about)
            return False
        finally:
            self._busy.discard(partition.log_id)
        if done is None:
            failed.add(partition.log_id)
            return False
        if done.first_unreadable is not None:
            log.warning(
                "%s: compaction kept the batch at offset %d and others like it: nobody can read them. "
                "Delete them with DeleteRecords once everything before them may go",
                where,
                done.first_unreadable,
                extra=about,
            )
        log.info(
            "%s: compacted to offset %d, %d of %d records and %d of %d bytes stay",
            where,
            done.end_offset,
            done.records_kept,
            done.records_read,
            done.bytes_after,
            done.bytes_before,
            extra=about,
        )
        return True


def _newest_ms(config: TopicConfig, now_ms: int) -> int:
    return now_ms - config.min_compaction_lag_ms if config.min_compaction_lag_ms > 0 else LONG_MAX


def _limits(config: BrokerConfig) -> Limits:
    """Return the limits of one of several concurrent passes."""
    threads = max(1, min(config.log_cleaner_threads, _THREADS_MAX))
    return Limits(
        keys_bytes=max(0, config.log_cleaner_dedupe_buffer_size) // threads,
        keys_load=config.log_cleaner_io_buffer_load_factor,
        read_bytes=config.log_cleaner_io_buffer_size // threads,
        bytes_per_second=config.log_cleaner_io_max_bytes_per_second / threads,
    )
