"""Keys of share partitions, and the topic of their state."""

from __future__ import annotations

import base64
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

STATE_TOPIC = "__share_group_state"
"""The share-state topic."""


class SharePartitionKey(NamedTuple):
    """One topic partition as seen by one share group."""

    group_id: str
    topic_id: UUID
    partition: int

    def coordinator_key(self) -> str:
        """Return the FindCoordinator key: `group:topicId:partition`."""
        return f"{before_partition(self.group_id, self.topic_id)}{self.partition}"


def before_partition(group_id: str, topic_id: UUID) -> str:
    """Return the part before the partition in the coordinator keys of a topic's share partitions."""
    return f"{group_id}:{topic_id_text(topic_id)}:"


@lru_cache(maxsize=4096)
def topic_id_text(topic_id: UUID) -> str:
    """Return a topic id as printed by Kafka: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def topic_id_of(text: str) -> UUID:
    """Parse a topic id as printed by Kafka; raise ValueError if it is invalid."""
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))


def parse_coordinator_key(text: str) -> SharePartitionKey:
    """Return the share partition of a FindCoordinator key of type SHARE.

    Raises:
        ValueError: the text is not `group:topicId:partition`; group ids may contain colons.
    """
    parts = text.rsplit(":", 2)
    if len(parts) != 3 or not parts[0]:
        raise ValueError(f"{text!r} is not group:topicId:partition")
    try:
        topic_id = topic_id_of(parts[1])
        partition = int(parts[2])
    except ValueError as error:
        raise ValueError(f"{text!r} is not group:topicId:partition") from error
    if partition < 0:
        raise ValueError(f"{text!r} has a negative partition")
    return SharePartitionKey(parts[0], topic_id, partition)
