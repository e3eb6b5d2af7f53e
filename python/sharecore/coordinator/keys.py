"""How a share partition is named, and where its state lives."""

from __future__ import annotations

import base64
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID


class SharePartitionKey(NamedTuple):
    """One partition of one topic as one share group sees it."""

    group_id: str
    topic_id: UUID
    partition: int

    def coordinator_key(self) -> str:
        """The key that clients name in FindCoordinator: `group:topicId:partition`."""
        return f"{self.group_id}:{topic_id_text(self.topic_id)}:{self.partition}"


@lru_cache(maxsize=4096)
def topic_id_text(topic_id: UUID) -> str:
    """A topic id as Kafka prints it: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def topic_id_of(text: str) -> UUID:
    """The topic id that Kafka prints so; raises ValueError where the text is none."""
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))


def parse_coordinator_key(text: str) -> SharePartitionKey:
    """The share partition that a FindCoordinator key of type SHARE names.

    Raises:
        ValueError: the text is not `group:topicId:partition`; group ids may hold colons themselves.
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


def java_string_hash(text: str) -> int:
    """Java's `String.hashCode`: over UTF-16 code units, as a signed 32-bit number."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for index in range(0, len(units), 2):
        value = (31 * value + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def partition_for(text: str, partitions: int) -> int:
    """The partition of a coordinator's topic that holds the state of `text`, a group id or a coordinator
    key.
    """
    value = java_string_hash(text)
    return (0 if value == -(1 << 31) else abs(value)) % partitions
