"""Which partition of a coordinator's topic holds what: by hash, as Kafka computes it."""

from __future__ import annotations


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
