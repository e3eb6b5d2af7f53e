"""One partition of a scheduler: applies schedule records, and writes due records, in transactions."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from sharecore.client.producing.schedules import DUE, NAME, Pair, Schedule
from sharecore.schedules.index import Entry, Index
from sharecore.schedules.topics import (
    POSITION,
    STATE_BYTES_MAX,
    changes_of,
    read_state,
    state_key,
    state_topic,
)

logger = logging.getLogger(__name__)

_SECONDS = 30.0
_DUE_AT_ONCE = 500
_AGAIN_MS = 1000
_PUT_OFF_MS = 30_000
"""Delay before a failed schedule is retried; others continue."""


class Shard:
    """Schedules of one partition; the constructor loads their state.

    Only the scheduler writes the state topic. A transaction contains both the records written to targets and
    the resulting state changes, so a crash leaves both or neither: a read-committed consumer gets each
    occurrence once. `init_transactions` fences a predecessor before its state is loaded.

    Args:
        settings: librdkafka settings.
        topic: the schedule topic.

    Attributes:
        position: offset of the next schedule record to apply.
        written: number of records written to targets.

    Raises:
        KafkaException: the cluster does not answer, or refuses.
    """

    def __init__(self, settings: Mapping[str, object], topic: str, partition: int) -> None:
        self._topic, self._partition = topic, partition
        self._producer = Producer(
            {
                **settings,
                "transactional.id": f"{topic}.scheduler.{partition}",
                "transaction.timeout.ms": 60_000,
                "delivery.timeout.ms": 30_000,
                "partitioner": "murmur2_random",
                "linger.ms": 5,
                "message.max.bytes": STATE_BYTES_MAX,
            }
        )
        self._producer.init_transactions(_SECONDS)
        self._index = Index()
        try:
            self.position = read_state(settings, topic, partition, self._index)
        except BaseException:
            self._index.close()
            raise
        self._asked: list[Message] = []
        """Records that are read but not applied yet."""
        self._again_ms = 0
        """Time of the next attempt after a failure."""
        self._failed: dict[bytes, str] = {}
        self._known: set[str] = set()
        self.written = 0
        logger.info(
            "%s-%d: %d schedules, from offset %d on", topic, partition, len(self._index), self.position
        )

    def close(self) -> None:
        self._index.close()

    def next_ms(self) -> int | None:
        """Return the next due time."""
        return self._index.next_ms()

    def turn(self, messages: Sequence[Message], now_ms: int) -> bool:
        """Apply schedule records and write due records; return whether more may be due already.

        Raises:
            KafkaException: another scheduler has taken over, or the outcome of the transaction is unknown:
                the state has to be read again.
        """
        self._asked += messages
        if now_ms < self._again_ms:
            return False
        changes = dict(changes_of(self._asked))
        due = [each for each in self._index.due(now_ms, _DUE_AT_ONCE) if each.schedule.key not in changes]
        due = [each for each in due if self._has_target(each.schedule, now_ms)]
        if not self._asked and not due:
            return False
        self._failed.clear()
        position = _offset(self._asked[-1]) + 1 if self._asked else self.position
        self._producer.begin_transaction()
        try:
            for key, entry in changes.items():
                self._keep(key, entry)
            for entry in due:
                changes[entry.schedule.key] = self._fire(entry)
            if position != self.position:
                self._write(state_topic(self._topic), POSITION, str(position).encode())
        except KafkaException as error:
            self._abort(error, now_ms)
            return False
        try:
            self._producer.commit_transaction(_SECONDS)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            self._abort(error, now_ms)
            return False
        self._index.change(changes.items())
        self._asked.clear()
        self.position = position
        self.written += len(due)
        return bool(changes)

    def _has_target(self, schedule: Schedule, now_ms: int) -> bool:
        """Return whether the target exists; otherwise postpone the schedule."""
        if schedule.target in self._known:
            return True
        try:
            found = self._producer.list_topics(schedule.target, _SECONDS).topics[schedule.target]
            why = found.error
        except KafkaException as error:
            why = error.args[0]
        if why is None:
            self._known.add(schedule.target)
            return True
        self._put_off(schedule.key, str(why), now_ms)
        return False

    def _put_off(self, key: bytes, why: str, now_ms: int) -> None:
        logger.warning("cannot write schedule %r, retrying in %d s: %s", key, _PUT_OFF_MS // 1000, why)
        self._index.put_off(key, now_ms + _PUT_OFF_MS)

    def _fire(self, entry: Entry) -> Entry | None:
        """Write a schedule's record, and store its next due time."""
        due_ms, schedule = entry
        headers: list[Pair] = [
            *schedule.headers,
            (NAME, schedule.key),
            (DUE, str(due_ms).encode()),
        ]
        self._write(schedule.target, schedule.record_key, schedule.value, headers, schedule.key)
        next_ms = schedule.after(due_ms)
        following = None if next_ms is None else Entry(next_ms, schedule)
        self._keep(schedule.key, following)
        return following

    def _keep(self, key: bytes, entry: Entry | None) -> None:
        headers = None if entry is None else [*entry.schedule.as_headers(), (DUE, str(entry.due_ms).encode())]
        value = None if entry is None else entry.schedule.value
        self._write(state_topic(self._topic), state_key(key), value, headers, key)

    def _write(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: list[Pair] | None = None,
        schedule: bytes | None = None,
    ) -> None:
        def answered(error: KafkaError | None, _: Message) -> None:
            if error is not None and schedule is not None and error.code() not in _FOLLOWS:
                self._failed.setdefault(schedule, error.str())

        where = {"partition": self._partition} if topic == state_topic(self._topic) else {}
        until = time.monotonic() + _SECONDS
        while not self._offer(topic, value, key, headers=headers, on_delivery=answered, **where):
            if time.monotonic() > until:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no space to write"))
            self._producer.poll(0.1)

    def _offer(self, *record: Any, **more: Any) -> bool:
        """Pass a record to the producer; return False if its queue is full."""
        try:
            self._producer.produce(*record, **more)
        except BufferError:
            return False
        return True

    def _abort(self, error: KafkaException, now_ms: int) -> None:
        """Abort a failed transaction, and postpone the schedules that caused the failure."""
        if error.args[0].fatal():
            raise error
        self._producer.abort_transaction(_SECONDS)
        logger.warning("%s-%d: transaction aborted: %s", self._topic, self._partition, error.args[0].str())
        self._again_ms = now_ms + _AGAIN_MS
        for key, why in self._failed.items():
            self._known.clear()
            self._put_off(key, why, now_ms)


def _offset(message: Message) -> int:
    offset = message.offset()
    assert offset is not None, "it was read"
    return offset


_FOLLOWS = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})
"""Errors of records whose transaction was aborted because of others."""
