"""Slots: the units that move between nodes. Each is a partition of the state topic with one owner.

A slot's owner leads the share partitions of its topic partitions, coordinates its groups, and is the only
writer of its partition of the state topic.
"""

from __future__ import annotations

from uuid import UUID
from zlib import crc32

from sharecore.coordinator_log.routing import partition_for


def slot_of_partition(topic_id: UUID, partition: int, slots: int) -> int:
    """Return the slot of a topic partition; consecutive partitions map to consecutive slots."""
    return (crc32(topic_id.bytes) + partition) % slots


def slot_of_group(group_id: str, slots: int) -> int:
    """Return the slot of a group, by Kafka's hash of its name."""
    return partition_for(group_id, slots)
