"""Committed offsets as Apache Kafka 4.3.1 writes them."""

from __future__ import annotations

from uuid import UUID

import pytest

from sharecore.coordinator.offset_records import (
    CommittedOffset,
    TopicPartition,
    decode_offset,
    decode_offset_key,
    encode_offset,
    encode_offset_key,
)

TOPIC_ID = UUID("8eae2166-f2eb-4e20-9c5f-f34989067785")

# seen in __consumer_offsets of a broker: a consumer with subscribe, one with assign, a transaction
SEEN = [
    (
        "0004000000000000000a0000000001000001a1fd04250b0100108eae2166f2eb4e209c5ff34989067785",
        CommittedOffset(10, 0, "", 1795246269707, topic_id=TOPIC_ID),
    ),
    (
        "00040000000000000005ffffffff0768656c6c6f00000001a1fd0427510100108eae2166f2eb4e209c5ff34989067785",
        None,
    ),
    ("00040000000000000007ffffffff01000001a1fd042c3700", CommittedOffset(7, -1, "", 1795246271543)),
]


@pytest.mark.parametrize(("text", "value"), SEEN)
def test_values_are_the_bytes_that_kafka_writes(text: str, value: CommittedOffset | None) -> None:
    decoded = decode_offset(bytes.fromhex(text))
    assert value is None or decoded == value
    assert encode_offset(decoded).hex() == text


def test_key_is_the_bytes_that_kafka_writes() -> None:
    key = encode_offset_key("classic", TopicPartition("t", 1))
    assert key.hex() == "00010007636c617373696300017400000001"
    assert decode_offset_key(key) == ("classic", TopicPartition("t", 1))


def test_an_offset_with_its_own_end_is_written_in_version_1() -> None:
    value = CommittedOffset(4, metadata="x", commit_ms=5, expire_ms=77)
    assert encode_offset(value)[:2] == b"\x00\x01"
    assert decode_offset(encode_offset(value)) == value


@pytest.mark.parametrize("text", ["", "0004", "0009" + "00" * 40, "0004000000000000000a00000000ff"])
def test_damaged_values_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"damaged|unknown version|too short"):
        decode_offset(bytes.fromhex(text))
