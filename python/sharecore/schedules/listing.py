"""Pending schedules, as a scheduler will find them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import closing
from itertools import islice
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, TopicMetadata

from sharecore.schedules.index import Entry, Index
from sharecore.schedules.topics import (
    POSITION,
    changes_of,
    first_offset,
    read_state,
    read_to_end,
    state_key,
    state_topic,
)

Settings = Mapping[str, Any]
"""Settings of confluent-kafka."""

_TRIES = 5


def list_all(settings: Settings, topic: str, limit: int, seconds: float) -> tuple[list[Entry], int]:
    """Return the next due schedules, and the total number.

    Args:
        seconds: timeout for the cluster's answers.

    Raises:
        KafkaException: the topics do not exist, or cannot be read.
    """
    there = _topics(settings, topic, seconds)
    with closing(Index()) as index:
        for partition in there[topic].partitions:
            position = 0
            if state_topic(topic) in there:
                position = read_state(settings, topic, partition, index)
            for messages in read_to_end(settings, TopicPartition(topic, partition, position)):
                index.change(changes_of(messages))
        return list(islice(index, limit)), len(index)


def find(settings: Settings, topic: str, keys: Collection[bytes], seconds: float) -> set[bytes] | None:
    """Return which of these schedules are pending; None if they cannot be read.

    It reads all schedules.

    Args:
        seconds: timeout for the cluster's answers.

    Raises:
        KafkaException: the topic does not exist, or the cluster does not answer.
    """
    try:
        there = _topics(settings, topic, seconds)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            return None
        raise
    has_state = state_topic(topic) in there
    found: set[bytes] = set()
    try:
        for partition in there[topic].partitions:
            here = _pending_in(settings, topic, partition, keys, has_state)
            if here is None:
                return None
            found |= here
    except KafkaException:
        return None
    return found


def _topics(settings: Settings, topic: str, seconds: float) -> dict[str, TopicMetadata]:
    admin = AdminClient(dict(settings))
    there = admin.list_topics(timeout=seconds).topics
    if topic in there:
        return there
    # the list leaves out what the user may not see
    error = admin.describe_topics(TopicCollection([topic]))[topic].exception(seconds)
    if isinstance(error, KafkaException) and error.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        text = f"the right DESCRIBE on topic {topic} is missing"
        raise KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, text))
    text = f"topic {topic} does not exist; `sharecore schedules run` creates it"
    raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART, text))


def _pending_in(
    settings: Settings, topic: str, partition: int, keys: Collection[bytes], has_state: bool
) -> set[bytes] | None:
    """Return the pending schedules of a partition; None if a scheduler is always ahead of the reader."""
    place = TopicPartition(topic, partition)
    for _ in range(_TRIES):
        found: set[bytes] = set()
        position = _find_in_state(settings, topic, partition, keys, found) if has_state else 0
        for messages in read_to_end(settings, TopicPartition(topic, partition, position)):
            for message in messages:
                key = message.key() or b""
                if key in keys:
                    (found.discard if message.value() is None else found.add)(key)
        # records that a scheduler has applied since, and deleted, were in neither
        if not has_state or first_offset(settings, place) <= position:
            return found
    return None


def _find_in_state(
    settings: Settings, topic: str, partition: int, keys: Collection[bytes], found: set[bytes]
) -> int:
    """Add the keys with a state in a partition; return the next schedule offset."""
    position = 0
    wanted = {state_key(key): key for key in keys}
    for messages in read_to_end(settings, TopicPartition(state_topic(topic), partition, OFFSET_BEGINNING)):
        for message in messages:
            key = message.key() or b""
            if key == POSITION:
                position = int(message.value() or b"0")
            elif key in wanted:
                (found.discard if message.value() is None else found.add)(wanted[key])
    return position
