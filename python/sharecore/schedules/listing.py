"""Pending schedules, as a scheduler will find them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from itertools import islice
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from sharecore.schedules.index import Entry, Index
from sharecore.schedules.topics import changes_of, read_state, read_to_end, state_topic


def list_all(settings: Mapping[str, Any], topic: str, limit: int, seconds: float) -> tuple[list[Entry], int]:
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
