"""Well-formed requests without meaning, and bytes that are not requests: other clients do not notice."""

from __future__ import annotations

import logging
import random
import socket
import struct

import pytest
from tests.harness.messages import STRINGS, random_message
from tests.harness.running import Client, RunningBroker

from sharecore.broker.handlers import SERVED
from sharecore.protocol import ApiKey, codec

ROUNDS = 25


def is_well(broker: RunningBroker, topic: str) -> None:
    """Return whether another client's request gets a prompt and correct response."""
    answer = broker.ask(ApiKey.METADATA, 12, topics=[{"name": topic}], allow_auto_topic_creation=False)
    assert len(answer.topics[0].partitions) == 2


@pytest.mark.heavy
@pytest.mark.parametrize("api_key", sorted(SERVED), ids=lambda key: ApiKey(key).name)
def test_senseless_requests_of_every_version(
    broker: RunningBroker, topic: str, api_key: ApiKey, caplog: pytest.LogCaptureFixture
) -> None:
    rnd = random.Random(int(api_key))
    caplog.set_level(logging.WARNING)
    served = SERVED[api_key]
    topic_ids = [broker.ask(ApiKey.METADATA, 13, topics=[{"name": topic}]).topics[0].topic_id]
    for version in range(served.min_version, served.max_version + 1):
        request_schema = codec(api_key, version).request.struct
        client = Client(broker.port)
        for _ in range(ROUNDS):
            message = random_message(request_schema, rnd, strings=[*STRINGS, topic], topic_ids=topic_ids)
            for field in ("max_wait_ms", "timeout_ms"):
                if field in message:
                    message[field] = min(message[field], 5)
            if message.get("acks") == 0:
                message["acks"] = 1
            for topics in [message.get("topics") or [], message.get("topic_data") or []]:
                for each in topics:
                    if isinstance(each, dict) and each.get("num_partitions", 0) > 100:
                        each["num_partitions"] = 3
                    if isinstance(each, dict) and each.get("count", 0) > 100:
                        each["count"] = 3
            try:
                client.ask(api_key, version, **message)
            except EOFError:
                client.close()
                client = Client(broker.port)
        client.close()
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


@pytest.mark.parametrize("seed", range(5))
def test_bytes_that_are_no_requests(broker: RunningBroker, topic: str, seed: int) -> None:
    rnd = random.Random(seed)
    for _ in range(60):
        with socket.create_connection(("127.0.0.1", broker.port), timeout=5) as peer:
            body = struct.pack(">hh", rnd.choice(list(SERVED)), rnd.randrange(14)) + rnd.randbytes(
                rnd.randrange(60)
            )
            peer.sendall(struct.pack(">i", len(body)) + body + rnd.randbytes(rnd.randrange(5)))
            peer.shutdown(socket.SHUT_WR)
            while peer.recv(65536):
                pass
    is_well(broker, topic)


def test_requests_cut_short(broker: RunningBroker, topic: str) -> None:
    request = codec(ApiKey.METADATA, 12).write_request(1, "cut", {"topics": [{"name": topic}]})
    for size in range(len(request)):
        with socket.create_connection(("127.0.0.1", broker.port), timeout=5) as peer:
            peer.sendall(request[:size])
    is_well(broker, topic)


def test_a_frame_of_two_gigabytes(
    broker: RunningBroker, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_connection(("127.0.0.1", broker.port), timeout=5) as peer:
        peer.sendall(struct.pack(">i", 2**31 - 1) + bytes(1000))
        assert peer.recv(1) == b""
    is_well(broker, topic)
    assert "a frame claims 2147483647 bytes" in caplog.text
