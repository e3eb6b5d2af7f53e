"""ShareFetch and ShareAcknowledge as several families send them, and records to fetch."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

from tests.differential.wire.families.common import create_topics, heartbeat, produce, set_group
from tests.differential.wire.script import Ask, Fields, Scenario

LAST = -1
RELEASE = 2
LOADER = "AAAAAAAAAAAAAAAAAAAABg"
KEEPER = "AAAAAAAAAAAAAAAAAAAABw"
PARTITIONS = [("#orders", 0), ("#orders", 1), ("#bills", 0)]

Topics = list[tuple[str, int, list[dict[str, Any]]]]
"""Topic, partition and batches of acknowledgements."""
Run = tuple[str, int, int, int]
"""Topic, partition, first and last offset of records that were acquired together."""


def ready(random: Random, **settings: str) -> Scenario:
    """Two topics with records, and a group that has state of them which the brokers have loaded."""
    yield create_topics(orders=2, bills=1)
    yield set_group("~shop", share_auto_offset_reset="earliest", **settings)
    yield heartbeat("~shop", "~joined", 0, ["~orders", "~bills"])
    for topic, partition in PARTITIONS:
        values = [f"{partition}{number}" for number in range(random.choice([1, 3, 8]))]
        yield produce(topic[1:], partition, values)
    yield from load(8000)


def load(max_wait_ms: int) -> Scenario:
    """Has Apache Kafka load the state, which a fetch that may not wait would not see."""
    for topic, partition in PARTITIONS:
        yield fetch("a", LOADER, 0, [(topic, partition, [])], max_wait_ms=max_wait_ms)
        yield acknowledge("a", LOADER, LAST, [])
    # Apache Kafka unloads a group's state when the connection of the group's last session ends
    yield fetch("a", KEEPER, 0, [])


def session(connection: str, member: str, plus: int = 0) -> dict[str, Any]:
    """Return the next epoch of a member's session."""
    return {"session": f"{connection} ~shop {member}", "plus": plus}


def some_partitions(random: Random, most: int) -> Topics:
    """Return a few partitions without acknowledgements."""
    return [(*each, []) for each in random.sample(PARTITIONS, random.randrange(most + 1))]


def acquired(answer: Any) -> Iterable[Run]:
    """The runs that an answer of ShareFetch brings."""
    for topic in answer.get("responses", []) if isinstance(answer, dict) else ():
        for partition in topic["partitions"]:
            for run in partition["acquired_records"]:
                index = partition["partition_index"]
                yield topic["topic_id"], index, run["first_offset"], run["last_offset"]


def acknowledges(request: Fields) -> bool:
    """Whether a request acknowledges anything."""
    return any(each["acknowledgement_batches"] for topic in request["topics"] for each in topic["partitions"])


def releases(ask: Ask) -> bool:
    """Whether records are given back: the request may get them again, if Apache Kafka is quick."""
    return any(
        RELEASE in batch["acknowledge_types"]
        for topic in ask.fields["topics"]
        for each in topic["partitions"]
        for batch in each["acknowledgement_batches"]
    )


def stumbled(ask: Ask, answer: Any) -> bool:
    """Whether Apache Kafka failed on acknowledgements: which of them count is open."""
    batches = any(
        each["acknowledgement_batches"] for topic in ask.fields["topics"] for each in topic["partitions"]
    )
    return batches and isinstance(answer, dict) and answer["error_code"] == -1


def batch(first: int, last: int, kinds: list[int]) -> dict[str, Any]:
    return {"first_offset": first, "last_offset": last, "acknowledge_types": kinds}


def by_topic(topics: Topics) -> list[dict[str, Any]]:
    grouped: dict[str, list[dict[str, Any]]] = {}
    seen: set[tuple[str, int]] = set()
    for topic, partition, batches in topics:
        if (topic, partition) not in seen:
            seen.add((topic, partition))
            entry = {"partition_index": partition, "acknowledgement_batches": batches}
            grouped.setdefault(topic, []).append(entry)
    return [{"topic_id": topic, "partitions": partitions} for topic, partitions in grouped.items()]


def fetch(
    connection: str,
    member: str,
    epoch: Any,
    topics: Topics,
    *,
    version: int = 2,
    forgotten: list[tuple[str, int]] | None = None,
    **fields: Any,
) -> Ask:
    return Ask(
        "SHARE_FETCH",
        version,
        {
            "group_id": "~shop",
            "member_id": member,
            "share_session_epoch": epoch,
            "max_wait_ms": 0,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
            "share_acquire_mode": 0,
            "is_renew_ack": False,
            "topics": by_topic(topics),
            "forgotten_topics_data": [
                {"topic_id": topic, "partitions": [partition]}
                for topic, partition in dict(forgotten or []).items()
            ],
            **fields,
        },
        connection,
    )


def acknowledge(
    connection: str,
    member: str,
    epoch: Any,
    topics: Topics,
    random: Random | None = None,
) -> Ask:
    return Ask(
        "SHARE_ACKNOWLEDGE",
        random.choice([1, 2, 2]) if random else 2,
        {
            "group_id": "~shop",
            "member_id": member,
            "share_session_epoch": epoch,
            "is_renew_ack": random is not None and random.random() < 0.15,
            "topics": by_topic(topics),
        },
        connection,
    )
