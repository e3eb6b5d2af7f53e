"""Partitions of a coordinator topic by key hash, as Kafka computes it."""

from __future__ import annotations

from sharecore import _core


def java_string_hash(text: str, before: int = 0) -> int:
    """Return Java's `String.hashCode`: over UTF-16 code units, as a signed 32-bit number.

    Args:
        before: the hash of the text before `text`.
    """
    return _core.java_hash(text.encode("utf-16-be", "surrogatepass"), before)


def partition_for(text: str, partitions: int) -> int:
    """Return the coordinator-topic partition of `text`, a group id or a coordinator key."""
    return partition_of_hash(java_string_hash(text), partitions)


def partition_of_hash(value: int, partitions: int) -> int:
    """Return the partition for a hash; see `partition_for`."""
    return (0 if value == -(1 << 31) else abs(value)) % partitions
