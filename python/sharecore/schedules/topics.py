"""The two topics of a scheduler: schedule records, and pending schedules."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from sharecore.client.producing.schedules import DUE, Pair, read_schedule
from sharecore.errors import ConfigError, PackageMissing
from sharecore.schedules.index import Entry, Index

logger = logging.getLogger(__name__)

STATE_BYTES_MAX = 2 << 20
"""Record limit of the state topic, above that of the schedule topic: state has additional fields."""
_SECONDS = 30.0
_READ_AT_ONCE = 1000
_STATE_SETTINGS = {"cleanup.policy": "compact", "max.message.bytes": str(STATE_BYTES_MAX)}
POSITION = b"p"
"""State-topic key of the offset up to which the scheduler has applied schedule records."""
_SCHEDULE = b"s"
"""Key prefix of schedules in the state topic."""


def state_topic(topic: str) -> str:
    """Return the name of the state topic, which only the scheduler writes."""
    return f"{topic}.state"


def state_key(key: bytes) -> bytes:
    """Return a schedule's key in the state topic."""
    return _SCHEDULE + key


def create_topics(settings: Mapping[str, Any], topic: str, partitions: int) -> None:
    """Create missing topics with equal partition counts.

    Raises:
        KafkaException: they cannot be created.
    """
    admin = AdminClient(dict(settings))
    # the scheduler deletes applied records
    wanted = {topic: {"retention.ms": "-1"}, state_topic(topic): _STATE_SETTINGS}
    there = admin.list_topics(timeout=_SECONDS).topics
    if topic in there:
        partitions = len(there[topic].partitions)
    new = [NewTopic(name, partitions, config=config) for name, config in wanted.items() if name not in there]
    for future in admin.create_topics(new, operation_timeout=_SECONDS).values() if new else ():
        error = future.exception(_SECONDS)
        if error is not None and error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise error


def read_state(settings: Mapping[str, object], topic: str, partition: int, index: Index) -> int:
    """Load a partition of the state topic into an index; return the next schedule offset.

    Raises:
        KafkaException: the partition cannot be read.
        PackageMissing: as `changes_of`.
    """
    position = 0
    place = TopicPartition(state_topic(topic), partition, OFFSET_BEGINNING)
    for messages in read_to_end(settings, place):
        changes: list[tuple[bytes, Entry | None]] = []
        for message in messages:
            key, value = message.key() or b"", message.value()
            if key == POSITION:
                position = int(value or b"0")
            elif value is None:
                changes.append((key[1:], None))
            else:
                changes.append((key[1:], _pending(message, key[1:], value)))
        index.change(changes)
    return position


def _pending(message: Message, key: bytes, value: bytes) -> Entry | None:
    headers = _headers(message)
    try:
        return Entry(int(dict(headers)[DUE] or b"0"), read_schedule(key, value, headers))
    except PackageMissing:
        raise
    except ConfigError as error:
        # an earlier version accepted it, although it can never be written
        _ignore(message, error)
        return None


def changes_of(messages: Iterable[Message]) -> list[tuple[bytes, Entry | None]]:
    """Return the changes of schedule records; invalid records are logged.

    Raises:
        PackageMissing: a schedule that this machine cannot evaluate; ignoring it would lose it.
    """
    return [change for message in messages if (change := _change(message)) is not None]


def _change(message: Message) -> tuple[bytes, Entry | None] | None:
    try:
        return _read_change(message)
    except PackageMissing:
        raise
    except ConfigError as error:
        _ignore(message, error)
        return None


def _ignore(message: Message, error: ConfigError) -> None:
    place = f"{message.topic()}-{message.partition()}@{message.offset()}"
    logger.warning("ignoring %s, which is not a schedule: %s", place, error)


def _read_change(message: Message) -> tuple[bytes, Entry | None]:
    key, value = message.key() or b"", message.value()
    if value is None:
        return key, None
    schedule = read_schedule(key, value, _headers(message))
    due_ms = schedule.first(message.timestamp()[1])
    return key, None if due_ms is None else Entry(due_ms, schedule)


def _headers(message: Message) -> list[Pair]:
    return [
        (name, content.encode() if isinstance(content, str) else content)
        for name, content in cast("list[tuple[str, bytes | str | None]]", message.headers() or [])
    ]


def first_offset(settings: Mapping[str, object], place: TopicPartition) -> int:
    """Return the first offset that a partition still has.

    Raises:
        KafkaException: the cluster does not answer.
    """
    consumer = _reader(settings, place)
    try:
        first: int = consumer.get_watermark_offsets(place, _SECONDS)[0]
        return first
    finally:
        consumer.close()


def _reader(settings: Mapping[str, object], place: TopicPartition) -> Consumer:
    return Consumer(
        {
            **settings,
            "group.id": f"{place.topic}.reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
        }
    )


def read_to_end(settings: Mapping[str, object], place: TopicPartition) -> Iterator[list[Message]]:
    """Yield committed records of a partition, up to its current end."""
    consumer = _reader(settings, place)
    try:
        consumer.assign([place])
        until = time.monotonic() + _SECONDS
        while True:
            found: list[Message] = []
            has_ended = False
            for message in consumer.consume(_READ_AT_ONCE, 0.5):
                error = message.error()
                if error is None:
                    found.append(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    has_ended = True
                elif not error.retriable() and error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:
                    # the group is a name that librdkafka wants: nothing of it is read or committed
                    raise KafkaException(error)
            if found:
                until = time.monotonic() + _SECONDS
                yield found
            if has_ended:
                return
            if time.monotonic() > until:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"{place.topic} was not read"))
    finally:
        consumer.close()
