"""Hash of a group's topics in its epoch record, which reveals topic changes (KIP-1101)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from struct import Struct

from sharecore.coordinator.topics import TopicInfo
from sharecore.coordinator.xxh3 import xxh3_64

_MAGIC = b"\0"
_INT = Struct("<i")
_HASH = Struct("<Q")


def metadata_hash(topics: Iterable[TopicInfo], rack: str | None) -> int:
    """Return the signed 64-bit hash of the existing topics; 0 without any.

    Args:
        rack: the rack of the broker that has all partitions.
    """
    hashes = [_topic_hash(topic, rack) for topic in sorted(topics, key=lambda topic: topic.name)]
    if not hashes:
        return 0
    total = xxh3_64(b"".join(map(_HASH.pack, hashes)))
    return total - 2**64 if total >= 2**63 else total


@lru_cache(maxsize=4096)
def _topic_hash(topic: TopicInfo, rack: str | None) -> int:
    place = b"" if rack is None else _INT.pack(_length(rack)) + _string(rack)
    partitions = b"".join(_INT.pack(index) + place for index in range(topic.partitions))
    halves = topic.topic_id.int >> 64, topic.topic_id.int & 2**64 - 1
    head = _MAGIC + b"".join(map(_HASH.pack, halves)) + _string(topic.name)
    return xxh3_64(head + _INT.pack(topic.partitions) + partitions)


def _length(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _string(text: str) -> bytes:
    """Return UTF-16 followed by its length, as Java programs hash strings."""
    return text.encode("utf-16-le") + _INT.pack(_length(text))
