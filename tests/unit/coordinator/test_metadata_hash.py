"""Hashes of a group's topics, as Apache Kafka 4.3.1 wrote them for these topics."""

from __future__ import annotations

import base64
from uuid import UUID

import pytest

from sharecore.coordinator.metadata_hash import metadata_hash
from sharecore.coordinator.topics import TopicInfo
from sharecore.coordinator.xxh3 import xxh3_64

XXH3 = [
    (4, "e41090fa396e2123"),
    (8, "0ddc676ecfe1929a"),
    (9, "88175479170b5b82"),
    (16, "9d71b1eecea7e0d6"),
    (17, "ae7bc55216c7f267"),
    (32, "7338ddc67af10df9"),
    (33, "ea306dd4ab40bf28"),
    (64, "3c7f8a9ccc0aaa9a"),
    (65, "02f29465cf2e01c5"),
    (96, "aa533be9fa5a271c"),
    (97, "2e102aad2ce7011b"),
    (128, "85088f996a27d119"),
    (129, "59ffcb682f065f13"),
    (160, "992031efa77ae3d0"),
    (161, "8bbc5879803adbff"),
    (240, "c499b1cac93859db"),
    (241, "976b9583f6f1260b"),
    (1024, "766deab70359a275"),
    (1025, "4f56762cb45f572e"),
    (5000, "56f9bfd955ee8c04"),
]


def topic(name: str, topic_id: str, partitions: int) -> TopicInfo:
    return TopicInfo(name, UUID(bytes=base64.urlsafe_b64decode(topic_id + "==")), partitions)


@pytest.mark.parametrize(
    ("topics", "rack", "known"),
    [
        ([], None, 0),
        ([topic("orders", "shNn4YcaQxCAGZ59aSMuLQ", 3)], None, -842877734415563269),
        (
            [topic("orders", "QyzKJwZIRxWgKBfZjYS7xw", 3), topic("Bills", "0HINBf5fQC-tHD2dmfowVg", 40)],
            None,
            -9108433116026863518,
        ),
        (
            [topic("orders", "bfLEUGqJRQ6LyDij8Wdj4Q", 3), topic("Bills", "lR7QbAnQT7Wctm3doei4tQ", 40)],
            "r1",
            -7334026140677952747,
        ),
    ],
)
def test_the_hash_is_the_one_that_kafka_writes(topics: list[TopicInfo], rack: str | None, known: int) -> None:
    assert metadata_hash(topics, rack) == known
    assert metadata_hash(reversed(topics), rack) == known


@pytest.mark.parametrize(("size", "known"), XXH3)
def test_xxh3(size: int, known: str) -> None:
    """Every branch of the algorithm; the hashes are from xxHash's own library."""
    data = bytes(number * 37 % 251 for number in range(size))
    assert f"{xxh3_64(data):016x}" == known
