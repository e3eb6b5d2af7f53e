"""Producers and their transactions, as several families ask for them."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.differential.wire.script import Ask, Fields

TRANSACTIONAL = 0x10
V1, V2 = 1, 2
"""Versions of transactions: from 2 on writing to a partition adds it, and each end raises the epoch."""


def initialize(
    name: str | None,
    *,
    on: str = "a",
    version: int = 5,
    timeout_ms: int = 60_000,
    producer: Any = -1,
    epoch: Any = -1,
) -> Ask:
    """A producer wants its id; without a name it is one that only leaves out duplicates."""
    fields = {
        "transactional_id": name,
        "transaction_timeout_ms": timeout_ms,
        "producer_id": producer,
        "producer_epoch": epoch,
    }
    return Ask("INIT_PRODUCER_ID", version, fields, on)


def id_of(name: str) -> Fields:
    return {"producer": name}


def epoch_of(name: str, plus: int = 0) -> Fields:
    return {"epoch_of": name, "plus": plus}


def following(name: str, topic: str, partition: int, plus: int = 0) -> Fields:
    """Return the sequence number that comes next."""
    return {"next": f"{name} {topic} {partition}", "plus": plus}


def records_of(
    producer: str, epoch: Any, sequence: Any, values: list[str], *, transactional: bool = False
) -> Fields:
    return {
        "values": values,
        "producer": id_of(producer),
        "producer_epoch": epoch,
        "sequence": sequence,
        "transactional": transactional,
    }


def write(
    batches: list[tuple[str, int, Fields]],
    *,
    transactional_id: str | None = None,
    version: int = 13,
    on: str = "a",
) -> Ask:
    """Batches by topic, without its `~`, and partition."""
    topics: dict[str, list[Fields]] = {}
    for topic, partition, records in batches:
        topics.setdefault(topic, []).append({"index": partition, "records": records})
    return Ask(
        "PRODUCE",
        version,
        {
            "transactional_id": transactional_id,
            "acks": -1,
            "timeout_ms": 10_000,
            "topic_data": [
                {"name": f"~{topic}", "topic_id": f"#{topic}", "partition_data": data}
                for topic, data in topics.items()
            ],
        },
        on,
    )


def write_version(random: Random, transactions: int) -> int:
    """A version of Produce of clients of a version of transactions."""
    return random.choice([12, 13] if transactions == V2 else [9, 11])


def write_in_transaction(
    random: Random, name: str, topic: str, partition: int, count: int, transactions: int
) -> Ask:
    """What a producer does whose transaction has the partition, or adds it by writing."""
    values = [f"{name[1:]}{number}" for number in range(count)]
    sequence = following(name, topic, partition)
    records = records_of(name, epoch_of(name), sequence, values, transactional=True)
    return write(
        [(topic, partition, records)],
        transactional_id=name,
        version=write_version(random, transactions),
    )


def add_partitions(
    name: str,
    partitions: dict[str, list[int]],
    *,
    producer: Any = None,
    epoch: Any = None,
    version: int = 3,
) -> Ask:
    fields = {
        "v3_and_below_transactional_id": name,
        "v3_and_below_producer_id": id_of(name) if producer is None else producer,
        "v3_and_below_producer_epoch": epoch_of(name) if epoch is None else epoch,
        "v3_and_below_topics": [
            {"name": topic, "partitions": indexes} for topic, indexes in partitions.items()
        ],
    }
    return Ask("ADD_PARTITIONS_TO_TXN", version, fields)


def end(name: str, *, commit: bool, version: int, producer: Any = None, epoch: Any = None) -> Ask:
    fields = {
        "transactional_id": name,
        "producer_id": id_of(name) if producer is None else producer,
        "producer_epoch": epoch_of(name) if epoch is None else epoch,
        "committed": commit,
    }
    return Ask("END_TXN", version, fields)


def end_version(random: Random, transactions: int) -> int:
    return 5 if transactions == V2 else random.choice([1, 3, 4])


def describe_producers(topics: dict[str, list[int]]) -> Ask:
    named = [{"name": topic, "partition_indexes": indexes} for topic, indexes in topics.items()]
    return Ask("DESCRIBE_PRODUCERS", 0, {"topics": named})


def describe_transactions(names: list[str]) -> Ask:
    return Ask("DESCRIBE_TRANSACTIONS", 0, {"transactional_ids": names})
