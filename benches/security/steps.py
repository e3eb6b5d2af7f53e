"""What is measured on a broker."""

from __future__ import annotations

import socket
import ssl
import statistics
import threading
import time
from typing import Any

from benches.security.brokers import Secured
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

RECORD = b"x" * 100
LATENCY_RECORDS = 500
_FLOOD_RECORDS = 20_000


def throughput(client: dict[str, Any], topic: str, records: int) -> tuple[float, float]:
    """Records a second that are produced, and then consumed by a plain consumer."""
    _create(client, topic)
    producer = Producer({**client, "linger.ms": 20, "queue.buffering.max.messages": 1_000_000})
    began = time.monotonic()
    for _ in range(records):
        producer.produce(topic, RECORD)
        producer.poll(0)
    assert producer.flush(300) == 0
    produced = records / (time.monotonic() - began)
    settings = {"group.id": topic, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({**client, **settings})
    consumer.subscribe([topic])
    count = len(consumer.consume(1, 60))
    began = time.monotonic()
    while count < records:
        count += len(consumer.consume(10_000, 1))
    consumed = records / (time.monotonic() - began)
    consumer.close()
    return produced, consumed


def latency_ms(client: dict[str, Any], topic: str) -> float:
    """From a record to its acknowledgement, one after the other; the median."""
    _create(client, topic)
    producer = Producer({**client, "linger.ms": 0})
    waited = []
    for _ in range(LATENCY_RECORDS):
        began = time.perf_counter()
        producer.produce(topic, RECORD)
        assert producer.flush(30) == 0
        waited.append((time.perf_counter() - began) * 1000)
    return statistics.median(waited[LATENCY_RECORDS // 10 :])


def flooded_latency_ms(broker: Secured, client: dict[str, Any], topic: str) -> float:
    """Return the same beside a client that sends all it can, of which its quota takes 1 MB a second."""
    broker.limit("flood", "producer_byte_rate", 1 << 20)
    _create(client, f"{topic}-flood")
    flood = Producer({**client, "client.id": "flood", "queue.buffering.max.messages": 100_000})
    stopping = threading.Event()

    def send() -> None:
        while not stopping.is_set():
            if len(flood) < _FLOOD_RECORDS:
                flood.produce(f"{topic}-flood", RECORD * 100)
            else:
                flood.poll(0.01)

    thread = threading.Thread(target=send)
    thread.start()
    time.sleep(1)
    try:
        return latency_ms(client, topic)
    finally:
        stopping.set()
        thread.join()
        flood.purge()


def handshakes(broker: Secured, count: int) -> float:
    """TLS handshakes a second, one after the other, without resumption."""
    context = ssl.create_default_context(cafile=str(broker.ca))
    began = time.monotonic()
    for _ in range(count):
        with (
            socket.create_connection(("127.0.0.1", broker.tls_port)) as plain,
            context.wrap_socket(plain, server_hostname="localhost"),
        ):
            pass
    return count / (time.monotonic() - began)


def _create(client: dict[str, Any], topic: str) -> None:
    admin = AdminClient(client)
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
