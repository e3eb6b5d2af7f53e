"""The scheduler: members of one consumer group share the partitions of the schedule topic."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from sharecore.schedules.shard import Shard
from sharecore.schedules.topics import create_topics

logger = logging.getLogger(__name__)

_READ_AT_ONCE = 500
_WAIT_SECONDS_MAX = 0.5
_AGAIN_SECONDS = 1.0
_DELETED_AT_ONCE = 1000
_SESSION_MS = 6_000
_READING_MS_MAX = 3_600_000
"""Loading the state of many millions of schedules takes minutes between two polls."""


class Scheduler:
    """Write schedules' records when they are due; several schedulers may run, on any machines.

    Args:
        settings: librdkafka settings, without a group.
        topic: the schedule topic; created if missing, with `partitions` partitions.
    """

    def __init__(self, settings: Mapping[str, Any], topic: str, *, partitions: int = 1) -> None:
        self._settings, self._topic, self._partitions = dict(settings), topic, partitions
        self._shards: dict[int, Shard] = {}
        self._deleted: dict[int, int] = {}
        self._stopping = threading.Event()
        self._written = 0

    @property
    def written(self) -> int:
        """Number of records written to targets."""
        return self._written + sum(shard.written for shard in self._shards.values())

    def stop(self) -> None:
        """Make `run` return; may be called from any thread."""
        self._stopping.set()

    def run(self) -> None:
        """Run until `stop`, through outages of the cluster.

        Raises:
            KafkaException: the topics cannot be created.
            PackageMissing: a schedule needs a package that is not installed here.
        """
        create_topics(self._settings, self._topic, self._partitions)
        while not self._stopping.is_set():
            try:
                self._serve()
            except KafkaException as error:
                logger.warning("next try in %d s: %s", _AGAIN_SECONDS, error.args[0].str())
            except sqlite3.OperationalError as error:
                logger.error(
                    "the temporary file of schedules: %s; free space in TMPDIR, next try in %d s",
                    error,
                    _AGAIN_SECONDS,
                )
            self._stopping.wait(_AGAIN_SECONDS)

    def _serve(self) -> None:
        consumer = Consumer(
            {
                **self._settings,
                "group.id": f"{self._topic}.scheduler",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "session.timeout.ms": _SESSION_MS,
                "max.poll.interval.ms": _READING_MS_MAX,
                "partition.assignment.strategy": "range",
            }
        )
        try:
            consumer.subscribe(
                [self._topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
            )
            admin = AdminClient(self._settings)
            has_more = False
            while not self._stopping.is_set():
                messages = consumer.consume(_READ_AT_ONCE, 0 if has_more else self._wait_seconds())
                has_more = self._turn(messages)
                self._delete_read(admin)
        finally:
            self._revoked(consumer, [])
            consumer.close()

    def _wait_seconds(self) -> float:
        """Return the maximum poll time: until the next schedule is due."""
        due = [at_ms for shard in self._shards.values() if (at_ms := shard.next_ms()) is not None]
        left = min(due, default=float("inf")) / 1000 - time.time()
        return max(0.0, min(left, _WAIT_SECONDS_MAX))

    def _turn(self, messages: list[Message]) -> bool:
        found: defaultdict[int | None, list[Message]] = defaultdict(list)
        for message in messages:
            error = message.error()
            if error is None:
                found[message.partition()].append(message)
            elif error.fatal() or error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise KafkaException(error)
        now_ms = time.time_ns() // 1_000_000
        has_more = False
        for index, shard in list(self._shards.items()):
            has_more |= shard.turn(found[index], now_ms)
        return has_more

    def _delete_read(self, admin: AdminClient) -> None:
        """Delete schedules that are in the state topic, to keep their topic small."""
        read = {
            index: shard.position
            for index, shard in self._shards.items()
            if shard.position - self._deleted.get(index, 0) >= _DELETED_AT_ONCE
        }
        if read:
            self._deleted |= read
            places = [TopicPartition(self._topic, index, position) for index, position in read.items()]
            for future in admin.delete_records(places).values():
                future.add_done_callback(_log_failure)

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._revoked(consumer, [])
        places = []
        for each in partitions:
            shard = self._shards[each.partition] = Shard(self._settings, self._topic, each.partition)
            # deleted records have been applied
            low, _ = consumer.get_watermark_offsets(each, _AGAIN_SECONDS * 10)
            places.append(TopicPartition(self._topic, each.partition, max(low, shard.position)))
        consumer.assign(places)

    def _revoked(self, _: Consumer, __: list[TopicPartition]) -> None:
        for shard in self._shards.values():
            self._written += shard.written
            shard.close()
        self._shards.clear()


def _log_failure(future: Any) -> None:
    error = future.exception()
    if error is not None:
        logger.warning("cannot delete applied schedules: %s", error)
