"""Acknowledgements under measurement, on a running broker; the client is confluent-kafka in explicit mode."""

from __future__ import annotations

import time
from dataclasses import dataclass

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions
from tests.harness.broker import Broker
from tests.harness.clients import ACCEPT, QUIET, REJECT, commit, configure_group, create_topic, share_consumer
from tests.harness.running import Client

from sharecore.protocol import ApiKey

RECORD = b"x" * 100
BATCH_RECORDS = 100
"""Records of a producer's batch, and of a poll."""
_CREATED_MAX = 5000
"""Partitions that Apache Kafka makes in one request."""
STATE_TOPIC = "__share_group_state"
_DESCRIBE_LOG_DIRS_VERSION = 4
_SECONDS_MAX = 300


@dataclass(frozen=True, slots=True)
class Settled:
    """What settling some records took.

    Args:
        waits: seconds from an acknowledgement's sending to its durable answer, each.
        state_bytes: what the state log grew by.
    """

    records: int
    seconds: float
    waits: list[float]
    cpu_seconds: float
    state_bytes: int


class NotFinished(Exception):
    """A broker did not give out all records in time."""


def settle(broker: Broker, name: str, partitions: int, records: int, *, in_turn: bool, sync: bool) -> Settled:
    """Settles `records` records of a new topic, in a new group.

    Args:
        name: of topic and group.
        in_turn: accept and reject in turn, so that no two neighbors are settled alike; else accept all.
        sync: wait for the durable answer after every poll; else let acknowledgements go with the next fetch.

    Raises:
        NotFinished: it takes longer than any figure of it is worth.
    """
    _fill(broker, name, partitions, records)
    configure_group(broker.bootstrap, name, share_auto_offset_reset="earliest")
    before, cpu_before = state_log_bytes(broker), broker.cpu_seconds()
    waits: list[float] = []
    seen, began = 0, 0.0
    poll = {"max.poll.records": BATCH_RECORDS} if sync else {}
    with share_consumer(broker.bootstrap, name, [name], **poll) as consumer:
        until = time.monotonic() + _SECONDS_MAX
        while seen < records:
            if time.monotonic() > until:
                raise NotFinished(f"{seen:,} of {records:,} records came in {_SECONDS_MAX} s")
            messages = consumer.poll(1)
            began = began or time.monotonic()
            for message in messages:
                consumer.acknowledge(message, REJECT if in_turn and seen % 2 else ACCEPT)
                seen += 1
            if sync and messages:
                sent = time.monotonic()
                commit(consumer)
                waits.append(time.monotonic() - sent)
        commit(consumer)
        elapsed = time.monotonic() - began
    cpu = broker.cpu_seconds() - cpu_before
    return Settled(records, elapsed, waits, cpu, state_log_bytes(broker) - before)


def state_log_bytes(broker: Broker) -> int:
    """Bytes of all partitions of the state topic; 0 before there is one."""
    client = Client(broker.port)
    try:
        answer = client.ask(ApiKey.DESCRIBE_LOG_DIRS, _DESCRIBE_LOG_DIRS_VERSION, topics=None)
    finally:
        client.close()
    return sum(
        partition.partition_size
        for directory in answer.results
        for topic in directory.topics
        if topic.name == STATE_TOPIC
        for partition in topic.partitions
    )


def _fill(broker: Broker, topic: str, partitions: int, records: int) -> None:
    create_topic(broker.bootstrap, topic, min(partitions, _CREATED_MAX))
    address: dict[str, str | int | float | bool] = {"bootstrap.servers": broker.bootstrap}
    admin = AdminClient(address | QUIET)
    for count in range(2 * _CREATED_MAX, partitions + _CREATED_MAX, _CREATED_MAX):
        more = NewPartitions(topic, min(count, partitions))
        admin.create_partitions([more])[topic].result(120)
    until = time.monotonic() + 120
    while len(admin.list_topics(topic, 30).topics[topic].partitions) < partitions:
        if time.monotonic() > until:
            raise RuntimeError(f"{broker.kind} does not show all {partitions} partitions")
        time.sleep(0.1)
    failed: list[object] = []
    settings = {
        "bootstrap.servers": broker.bootstrap,
        "acks": "all",
        "linger.ms": 20,
        "batch.num.messages": BATCH_RECORDS,
        "queue.buffering.max.messages": 2_000_000,
    }
    producer = Producer(settings | QUIET)
    for number in range(records):
        producer.produce(
            topic,
            RECORD,
            partition=number * partitions // records,
            on_delivery=lambda error, _: failed.append(error) if error is not None else None,
        )
        if number % 1000 == 0:
            producer.poll(0)
    left = producer.flush(120)
    if left or failed:
        raise RuntimeError(f"{broker.kind} took {records - left - len(failed)} of {records} records")
