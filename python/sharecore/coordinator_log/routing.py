"""Which partition of a coordinator's topic holds what: by hash, as Kafka computes it."""

from __future__ import annotations


def java_string_hash(text: str, before: int = 0) -> int:
    """Java's `String.hashCode`: over UTF-16 code units, as a signed 32-bit number.

    Args:
        before: the hash of what stands in front of `text`.
    """
    value = before
    units = text.encode("utf-16-be", "surrogatepass")
    for index in range(0, len(units), 2):
        value = (31 * value + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def partition_for(text: str, partitions: int) -> int:
    """Return the partition of a coordinator's topic that holds the state of `text`, a group id or a
    coordinator key.
    """
    return partition_of_hash(java_string_hash(text), partitions)


def partition_of_hash(value: int, partitions: int) -> int:
    """As `partition_for`, of the text's hash."""
    return (0 if value == -(1 << 31) else abs(value)) % partitions
