"""What readers see around transactions: Fetch, ListOffsets and ShareFetch, committed records alone or all."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.differential.wire.families.common import create_topics, heartbeat, produce, set_group, weighted
from tests.differential.wire.families.producing import (
    V1,
    V2,
    add_partitions,
    describe_producers,
    end,
    end_version,
    initialize,
    write_in_transaction,
)
from tests.differential.wire.families.share import (
    LAST,
    Run,
    Topics,
    acknowledge,
    acquired,
    batch,
    fetch,
    load,
    session,
)
from tests.differential.wire.script import Ask, Restart, Scenario, Stage

_NAMES = ["~ann", "~bob", "~cid"]
_PLACES = [("orders", 0), ("orders", 0), ("orders", 1), ("bills", 0)]
_MEMBERS = ["AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"]
_LEVELS = ["read_committed", "read_uncommitted"]
_STEPS = {
    "plain": 4,
    "write": 12,
    "end": 8,
    "fence": 1,
    "fetch": 8,
    "list": 5,
    "share": 10,
    "acknowledge": 6,
    "close": 1,
    "level": 1.5,
    "look": 1,
}


def scenario(random: Random, stage: Stage) -> Scenario:
    """Producers write and end transactions while readers of every kind look on."""
    yield create_topics(orders=2, bills=1)
    level = random.choice([*_LEVELS, _LEVELS[0]])
    yield set_group("~shop", share_auto_offset_reset="earliest", share_isolation_level=level)
    yield heartbeat("~shop", "~joined", 0, ["~orders", "~bills"])
    for topic, partition in dict.fromkeys(_PLACES):
        yield produce(topic, partition, ["first"])
    yield from load(8000)
    life = _Life(random)
    for _ in range(random.randrange(30, 70)):
        yield from life.step()
    if stage.restarts and random.random() < 0.03:
        yield Restart()
        yield from load(500)
        life.acquired.clear()
        for _ in range(20):
            yield from life.step()


class _Life:
    """Producers with transactions, and members of one share group."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.known: set[str] = set()
        self.acquired: dict[str, list[Run]] = {}
        self.transactions = random.choice([V1, V2, V2])

    def step(self) -> Scenario:
        random = self.random
        name = random.choice(_NAMES)
        topic, partition = random.choice(_PLACES)
        member = random.choice(_MEMBERS)
        match weighted(random, _STEPS):
            case "plain":
                yield produce(topic, partition, ["plain"] * random.choice([1, 2]))
            case "write":
                yield from self._write(name, topic, partition)
            case "end":
                version = end_version(random, self.transactions)
                yield end(name, commit=random.random() < 0.5, version=version)
            case "fence":
                self.known.add(name)
                yield initialize(name)
            case "fetch":
                yield _fetch(random)
            case "list":
                yield _list_offsets(random)
            case "share":
                yield from self._share(member)
            case "acknowledge":
                yield from self._acknowledge(member)
            case "close":
                yield acknowledge(f"c{member[-2:]}", member, LAST, [])
                self.acquired.pop(member, None)
            case "level":
                yield set_group("~shop", share_isolation_level=random.choice(_LEVELS))
            case "look":
                yield describe_producers({"~orders": [0, 1], "~bills": [0]})

    def _write(self, name: str, topic: str, partition: int) -> Scenario:
        random = self.random
        if name not in self.known:
            self.known.add(name)
            yield initialize(name)
        if self.transactions == V1:
            yield add_partitions(name, {f"~{topic}": [partition]})
        count = random.choice([1, 1, 2, 4])
        yield write_in_transaction(random, name, topic, partition, count, self.transactions)

    def _share(self, member: str) -> Scenario:
        wanted = dict.fromkeys(self.random.sample(_PLACES, self.random.choice([0, 1, 2])))
        topics: Topics = [(f"#{topic}", partition, []) for topic, partition in wanted]
        epoch: Any = self._epoch(member)
        answer = yield fetch(f"c{member[-2:]}", member, epoch, topics)
        held = self.acquired.setdefault(member, [])
        held.extend(acquired(answer))

    def _acknowledge(self, member: str) -> Scenario:
        random = self.random
        held = self.acquired.get(member, [])
        topics: Topics = []
        if held:
            topic, partition, first, last = held.pop(random.randrange(len(held)))
            middle = random.randint(first, last)
            batches = [batch(first, middle, [weighted(random, {1: 6, 2: 3, 3: 2, 0: 1})])]
            if middle < last:
                batches.append(batch(middle + 1, last, [random.choice([1, 1, 0])]))
            topics = [(topic, partition, batches)]
        yield acknowledge(f"c{member[-2:]}", member, self._epoch(member), topics)

    def _epoch(self, member: str) -> dict[str, Any]:
        return session(f"c{member[-2:]}", member)


def _fetch(random: Random) -> Ask:
    """Return a Fetch without a session, from anywhere in some partitions."""
    wanted: dict[str, list[dict[str, Any]]] = {}
    for topic, partition in dict.fromkeys(random.sample(_PLACES, random.choice([1, 1, 2]))):
        asked = {
            "partition": partition,
            "current_leader_epoch": -1,
            "fetch_offset": random.choice([0, 0, random.randrange(40), random.randrange(10)]),
            "partition_max_bytes": 1 << 20,
        }
        wanted.setdefault(topic, []).append(asked)
    return Ask(
        "FETCH",
        random.choice([4, 11, 12, 13, 16, 17]),
        {
            "replica_id": -1,
            "max_wait_ms": 0,
            "min_bytes": random.choice([0, 1]),
            "max_bytes": 1 << 22,
            "isolation_level": random.choice([0, 1, 1]),
            "session_id": 0,
            "session_epoch": -1,
            "topics": [
                {"topic": f"~{topic}", "topic_id": f"#{topic}", "partitions": partitions}
                for topic, partitions in wanted.items()
            ],
            "forgotten_topics_data": [],
            "rack_id": "",
        },
    )


def _list_offsets(random: Random) -> Ask:
    topic, partition = random.choice(_PLACES)
    asked = {
        "partition_index": partition,
        "current_leader_epoch": -1,
        "timestamp": random.choice([-1, -1, -2, -3, -4, -5, 0, 1_000_000, 1_000_001, 1 << 50]),
    }
    return Ask(
        "LIST_OFFSETS",
        random.randrange(7, 11),
        {
            "replica_id": -1,
            "isolation_level": random.choice([0, 1]),
            "topics": [{"name": f"~{topic}", "partitions": [asked]}],
            "timeout_ms": 5000,
        },
    )
