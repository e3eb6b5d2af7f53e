"""What should never reach a broker: its peer gets Kafka's answer or a closed connection, others nothing."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterator

import pytest
from tests.harness.broker import Broker
from tests.harness.clients import produce, settle, share_consumer
from tests.harness.wire import Peer, produce_v7, produce_v7_error, record_batch

API_VERSIONS, METADATA, PRODUCE = 18, 3, 0
CORRUPT_MESSAGE, UNSUPPORTED_VERSION = 2, 35
MEMORY_GROWTH_BYTES_MAX = 32 << 20


@pytest.fixture(autouse=True)
def bystander(broker: Broker) -> Iterator[Peer]:
    """A client with a connection of its own, which must be answered as before once the test is over."""
    with Peer(broker.port) as peer:
        assert peer.call(API_VERSIONS, 0)[:2] == b"\0\0"
        yield peer
        assert broker.running()
        began = time.monotonic()
        assert peer.call(API_VERSIONS, 0)[:2] == b"\0\0"
        assert time.monotonic() - began < 2


def expect_log_line(broker: Broker, peer: Peer) -> None:
    if broker.kind != "sharecore":
        return  # Apache logs it at debug level
    until = time.monotonic() + 5
    while f":{peer.local_port}" not in broker.read_log():
        assert time.monotonic() < until, "no line in the log names the peer"
        time.sleep(0.05)


def test_garbage(broker: Broker) -> None:
    with Peer(broker.port) as peer:
        peer.socket.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert peer.is_closed_by_broker()
        expect_log_line(broker, peer)


def test_random_bytes(broker: Broker) -> None:
    for _ in range(20):
        with Peer(broker.port) as peer:
            peer.socket.sendall(struct.pack(">i", 64) + os.urandom(64))
            assert peer.is_closed_by_broker()


@pytest.mark.parametrize("size", [2**31 - 1, -1, -(2**31)])
def test_a_frame_of_impossible_size(broker: Broker, size: int) -> None:
    before = broker.resident_bytes()
    with Peer(broker.port) as peer:
        peer.socket.sendall(struct.pack(">i", size) + b"x" * 1000)
        assert peer.is_closed_by_broker()
        expect_log_line(broker, peer)
    assert broker.resident_bytes() - before < MEMORY_GROWTH_BYTES_MAX


def test_a_truncated_request(broker: Broker) -> None:
    with Peer(broker.port) as peer:
        peer.socket.sendall(struct.pack(">ihhi", 1000, METADATA, 12, 1) + b"half")


def test_a_request_that_ends_too_early(broker: Broker) -> None:
    with Peer(broker.port) as peer:
        peer.send(METADATA, 1, struct.pack(">i", 1000) + b"\0\x05ab")
        assert peer.is_closed_by_broker()
        expect_log_line(broker, peer)


def test_an_array_of_two_billion_elements(broker: Broker) -> None:
    before = broker.resident_bytes()
    with Peer(broker.port) as peer:
        peer.send(METADATA, 1, struct.pack(">i", 2**31 - 1))
        assert peer.is_closed_by_broker()
        expect_log_line(broker, peer)
    assert broker.resident_bytes() - before < MEMORY_GROWTH_BYTES_MAX


def test_an_unknown_api(broker: Broker) -> None:
    with Peer(broker.port) as peer:
        peer.send(9999, 0)
        assert peer.is_closed_by_broker()
        expect_log_line(broker, peer)


def test_a_bad_version(broker: Broker) -> None:
    with Peer(broker.port) as peer:
        peer.send(METADATA, 99)
        assert peer.is_closed_by_broker()
        expect_log_line(broker, peer)


def test_api_versions_of_the_future_is_told_what_there_is(broker: Broker) -> None:
    with Peer(broker.port) as peer:
        answer = peer.call(API_VERSIONS, 99, b"\0")
        error, count = struct.unpack_from(">hi", answer)
        assert error == UNSUPPORTED_VERSION
        offered = {
            key: (low, high) for key, low, high in struct.iter_unpack(">hhh", answer[6 : 6 + 6 * count])
        }
        assert API_VERSIONS in offered
        assert peer.call(API_VERSIONS, 0)[:2] == b"\0\0"


def test_a_corrupt_batch(broker: Broker, topic: str, group: str) -> None:
    with Peer(broker.port) as peer:
        spoiled = peer.call(PRODUCE, 7, produce_v7(topic, record_batch(b"spoiled", spoil_crc=True)))
        assert produce_v7_error(spoiled, topic) == CORRUPT_MESSAGE
        cut = peer.call(PRODUCE, 7, produce_v7(topic, record_batch(b"cut")[:-3]))
        assert produce_v7_error(cut, topic) != 0
        sound = peer.call(PRODUCE, 7, produce_v7(topic, record_batch(b"sound")))
        assert produce_v7_error(sound, topic) == 0
    with share_consumer(broker.bootstrap, group, [topic]) as consumer:
        assert [message.value() for message in settle(consumer, 1)] == [b"sound"]


def test_requests_in_one_packet_are_answered_in_order(broker: Broker) -> None:
    with Peer(broker.port) as peer:
        sent = [peer.send(API_VERSIONS, number % 3) for number in range(50)]
        assert [peer.receive()[0] for _ in sent] == sent


def test_many_half_open_connections(broker: Broker, topic: str) -> None:
    peers = [Peer(broker.port) for _ in range(200)]
    for peer in peers:
        peer.socket.sendall(struct.pack(">ihh", 500, METADATA, 1))
    assert produce(broker.bootstrap, topic, [b"through"]) == [0]
    for peer in peers:
        peer.socket.close()
