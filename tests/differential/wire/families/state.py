"""The five requests to the share coordinator, which brokers send each other."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.differential.wire.families.common import UNKNOWN_ID, create_topics, weighted
from tests.differential.wire.names import NO_ID
from tests.differential.wire.script import Ask, Restart, Scenario, Stage

_GROUPS = ["~shop", "~shop", "~shop", "~till", ""]


def scenario(random: Random, stage: Stage) -> Scenario:
    """Random state of a few share partitions.

    Beside Kafka 4.3.1 neither negative epochs, nor writes that come late, nor batches below the start offset:
    there it answers otherwise than 4.4.0 and ours.
    """
    yield create_topics(orders=2)
    requests = {_initialize: 4, _read: 6, _write: 10, _delete: 2, _summary: 5}
    for _ in range(random.randrange(40, 90)):
        yield weighted(random, requests)(random, stage.newest)
    if stage.restarts and random.random() < 0.03:
        yield Restart()
        for _ in range(20):
            yield weighted(random, requests)(random, stage.newest)


def _topics(random: Random, **fields: Any) -> dict[str, Any]:
    """Return a request about a few partitions; `fields` are made anew for each."""
    topics = []
    for topic in dict.fromkeys(
        random.choice(["#orders", "#orders", "#orders", UNKNOWN_ID, NO_ID])
        for _ in range(random.choice([1, 1, 1, 2]))
    ):
        indexes = dict.fromkeys(
            random.choice([0, 0, 0, 1, 7, -1]) if random.random() < 0.3 else 0
            for _ in range(random.choice([1, 1, 2]))
        )
        if random.random() < 0.03:
            indexes = {}
        topics.append(
            {
                "topic_id": topic,
                "partitions": [
                    {"partition": index} | {name: make() for name, make in fields.items()}
                    for index in indexes
                ],
            }
        )
    return {"group_id": random.choice(_GROUPS), "topics": [] if random.random() < 0.02 else topics}


def _epoch(random: Random, newest: bool) -> int:
    return random.choice([0, 0, 1, 1, 1, 2, 3] + [-1] * newest)


def _initialize(random: Random, newest: bool) -> Ask:
    return Ask(
        "INITIALIZE_SHARE_GROUP_STATE",
        0,
        _topics(
            random,
            state_epoch=lambda: _epoch(random, newest),
            start_offset=lambda: random.choice([-1, 0, 5, -7]),
        ),
    )


def _read(random: Random, newest: bool) -> Ask:
    return Ask("READ_SHARE_GROUP_STATE", 0, _topics(random, leader_epoch=lambda: _epoch(random, newest)))


def _summary(random: Random, newest: bool) -> Ask:
    return Ask(
        "READ_SHARE_GROUP_STATE_SUMMARY",
        random.randrange(2),
        _topics(random, leader_epoch=lambda: _epoch(random, newest)),
    )


def _delete(random: Random, newest: bool) -> Ask:
    return Ask("DELETE_SHARE_GROUP_STATE", 0, _topics(random))


def _write(random: Random, newest: bool) -> Ask:
    def batches() -> list[dict[str, int]]:
        at = random.randrange(0 if newest else 8, 20)
        made = []
        for _ in range(random.choice([0, 1, 1, 2, 3])):
            last = at + random.choice([0, 0, 1, 4])
            made.append(
                {
                    "first_offset": at,
                    "last_offset": last,
                    "delivery_state": random.choice([0, 2, 4]),
                    "delivery_count": random.randrange(1, 4),
                }
            )
            at = last + 1 + random.choice([0, 0, 3])
        return made

    return Ask(
        "WRITE_SHARE_GROUP_STATE",
        random.randrange(2) if newest else 1,
        _topics(
            random,
            state_epoch=lambda: _epoch(random, newest),
            leader_epoch=lambda: _epoch(random, newest),
            start_offset=lambda: random.choice([-1, -1, 0, 3, 8] if newest else [-1, -1, 8]),
            delivery_complete_count=lambda: random.choice([-1, 0, 1, 2]) if newest else 0,
            state_batches=batches,
        ),
    )
