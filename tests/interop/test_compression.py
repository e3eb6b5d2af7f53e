"""A topic's compression.type: how batches are kept, whatever their producers sent."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.harness.broker import Broker
from tests.harness.clients import QUIET, configure_topic
from tests.harness.wire import Peer

from sharecore.protocol import ApiKey, codec

NUMBERS = {"none": 0, "uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
SENT = ("none", "gzip", "snappy", "lz4", "zstd")
ATTRIBUTES_AT, COMPRESSION_MASK = 21, 7
VALUES = [b"value %d " % n * 20 for n in range(300)]
SECONDS_MAX = 30


def create(broker: Broker, name: str, **settings: str) -> str:
    configs = {key.replace("_", "."): value for key, value in settings.items()}
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})
    admin.create_topics([NewTopic(name, 1, 1, config=configs)])[name].result(SECONDS_MAX)
    return name


def send(broker: Broker, topic: str, values: list[bytes], **settings: object) -> None:
    """Send values in few batches, and raise KafkaException where one is refused."""
    given = {"bootstrap.servers": broker.bootstrap, "linger.ms": 100}
    producer = Producer({**given, **{k.replace("_", "."): v for k, v in settings.items()}, **QUIET})
    failed = []
    if "transactional_id" in settings:
        producer.init_transactions(SECONDS_MAX)
        producer.begin_transaction()
    for value in values:
        producer.produce(
            topic, value, b"key", on_delivery=lambda error, _: failed.append(error) if error else None
        )
    producer.flush(SECONDS_MAX)
    if failed:
        raise KafkaException(failed[0])
    if "transactional_id" in settings:
        producer.commit_transaction(SECONDS_MAX)


def kept(broker: Broker, topic: str) -> list[int]:
    """How the batches of a topic are compressed, in the order of their offsets."""
    return list(compressions(fetched(broker, topic)))


def fetched(broker: Broker, topic: str) -> bytes:
    """All batches of a topic, as they are kept."""
    fetch = codec(ApiKey.FETCH, 11)
    partition = {
        "partition": 0,
        "current_leader_epoch": -1,
        "fetch_offset": 0,
        "log_start_offset": -1,
        "partition_max_bytes": 1 << 24,
    }
    fields: Mapping[str, object] = {
        "replica_id": -1,
        "max_wait_ms": 100,
        "min_bytes": 1,
        "max_bytes": 1 << 24,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "topics": [{"topic": topic, "partitions": [partition]}],
        "forgotten_topics_data": [],
        "rack_id": "",
    }
    with Peer(broker.port) as peer:
        peer.socket.sendall(fetch.write_request(1, "test", fields))
        correlation, rest = peer.receive()
    answer = fetch.read_response(struct.pack(">i", correlation) + rest)[1]
    return bytes(answer.responses[0].partitions[0].records)


def compressions(records: bytes) -> Iterator[int]:
    while records:
        size = 12 + struct.unpack_from(">i", records, 8)[0]
        (attributes,) = struct.unpack_from(">h", records, ATTRIBUTES_AT)
        if not attributes & 0x20:  # control batches do not come from a producer
            yield attributes & COMPRESSION_MASK
        records = records[size:]


def read(broker: Broker, topic: str, count: int) -> list[bytes | None]:
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": topic, "isolation.level": "read_committed"}
    consumer = Consumer({**settings, **QUIET})
    consumer.assign([TopicPartition(topic, 0, 0)])
    messages = consumer.consume(count, SECONDS_MAX)
    consumer.close()
    assert [message.error() for message in messages] == [None] * count
    return [message.value() for message in messages]


@pytest.mark.parametrize("wanted", ["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_batches_are_kept_as_their_topic_says(broker: Broker, topic: str, wanted: str) -> None:
    name = create(broker, f"{topic}-{wanted}", compression_type=wanted)
    for sent in SENT:
        send(broker, name, VALUES, compression_type=sent)
    wanted_numbers = [NUMBERS[sent] for sent in SENT] if wanted == "producer" else [NUMBERS[wanted]]
    assert list(dict.fromkeys(kept(broker, name))) == wanted_numbers
    assert read(broker, name, len(SENT) * len(VALUES)) == VALUES * len(SENT)


def test_a_batch_of_one_small_record_is_compressed_too(broker: Broker, topic: str) -> None:
    name = create(broker, f"{topic}-one", compression_type="lz4")
    send(broker, name, VALUES[:1])
    assert kept(broker, name) == [3]
    assert read(broker, name, 1) == VALUES[:1]


def test_a_change_counts_from_the_next_batch_on(broker: Broker, topic: str) -> None:
    for wanted in ("gzip", "zstd", "producer"):
        configure_topic(broker.bootstrap, topic, compression_type=wanted, compression_gzip_level=1)
        send(broker, topic, VALUES)
    assert list(dict.fromkeys(kept(broker, topic))) == [1, 4, 0]


@pytest.mark.parametrize(
    ("codec_name", "low", "high"), [("gzip", "1", "9"), ("zstd", "-5", "19")], ids=["gzip", "zstd"]
)
def test_a_level_decides_how_small_batches_are(
    broker: Broker, topic: str, codec_name: str, low: str, high: str
) -> None:
    """By compression.gzip.level and compression.zstd.level."""
    sizes = []
    for level in (low, high):
        settings = {"compression.type": codec_name, f"compression.{codec_name}.level": level}
        name = create(broker, f"{topic}-{codec_name}{level}", **settings)
        send(broker, name, [b"%d and %d" % (n, n * n) for n in range(2000)])
        sizes.append(len(fetched(broker, name)))
    assert sizes[1] < sizes[0]


def test_producers_with_ids_and_transactions_are_known_as_before(broker: Broker, topic: str) -> None:
    name = create(broker, f"{topic}-zstd", compression_type="zstd")
    send(broker, name, VALUES, enable_idempotence=True)
    send(broker, name, VALUES, transactional_id=name, compression_type="gzip")
    assert set(kept(broker, name)) == {4}
    assert read(broker, name, 2 * len(VALUES)) == VALUES * 2


def test_what_is_too_large_once_it_is_expanded_is_refused(broker: Broker, topic: str) -> None:
    name = create(broker, f"{topic}-plain", compression_type="uncompressed", max_message_bytes="100000")
    with pytest.raises(KafkaException, match="MSG_SIZE_TOO_LARGE"):
        send(broker, name, [bytes(500_000)], compression_type="zstd")
    send(broker, name, VALUES[:3], compression_type="zstd")
    assert set(kept(broker, name)) == {0}
