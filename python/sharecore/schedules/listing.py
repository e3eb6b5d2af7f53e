"""Pending schedules, as a scheduler will find them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import closing
from itertools import islice
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from sharecore.schedules.index import Entry, Index
from sharecore.schedules.topics import POSITION, changes_of, read_state, read_to_end, state_key, state_topic

Settings = Mapping[str, Any]
"""Settings of confluent-kafka."""


def list_all(settings: Settings, topic: str, limit: int, seconds: float) -> tuple[list[Entry], int]:
    """Return the next due schedules, and the total number.

    Args:
        seconds: timeout for the cluster's answers.

    Raises:
        KafkaException: the topics do not exist, or cannot be read.
    """
    there = AdminClient(dict(settings)).list_topics(timeout=seconds).topics
    if topic not in there:
        text = f"topic {topic} does not exist; `sharecore schedules run` creates it"
        raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART, text))
    with closing(Index()) as index:
        for partition in there[topic].partitions:
            position = 0
            if state_topic(topic) in there:
                position = read_state(settings, topic, partition, index)
            for messages in read_to_end(settings, TopicPartition(topic, partition, position)):
                index.change(changes_of(messages))
        return list(islice(index, limit)), len(index)


def find(settings: Settings, topic: str, keys: Collection[bytes], seconds: float) -> set[bytes] | None:
    """Return which of these schedules are pending; None if the topics are not there, or may not be read.

    Args:
        seconds: timeout for the cluster's answers.

    Raises:
        KafkaException: the topics cannot be read.
    """
    there = AdminClient(dict(settings)).list_topics(timeout=seconds).topics
    if topic not in there:
        return None
    found: set[bytes] = set()
    try:
        for partition in there[topic].partitions:
            position = 0
            if state_topic(topic) in there:
                position = _find_in_state(settings, topic, partition, keys, found)
            for messages in read_to_end(settings, TopicPartition(topic, partition, position)):
                for key, entry in changes_of(each for each in messages if each.key() in keys):
                    (found.discard if entry is None else found.add)(key)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            return None
        raise
    return found


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
