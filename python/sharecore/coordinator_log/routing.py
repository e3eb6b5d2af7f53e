"""Which partition of a coordinator's topic holds what: by hash, as Kafka computes it."""

from __future__ import annotations

from sharecore import _core


def java_string_hash(text: str, before: int = 0) -> int:
    """Java's `String.hashCode`: over UTF-16 code units, as a signed 32-bit number.

    Args:
        before: the hash of what stands in front of `text`.
    """
    return _core.java_hash(text.encode("utf-16-be", "surrogatepass"), before)


def partition_for(text: str, partitions: int) -> int:
    """Return the partition of a coordinator's topic that holds the state of `text`, a group id or a
    coordinator key.
    """
    return partition_of_hash(java_string_hash(text), partitions)


def partition_of_hash(value: int, partitions: int) -> int:
    """As `partition_for`, of the text's hash."""
    return (0 if value == -(1 << 31) else abs(value)) % partitions
