"""ShareFetch and ShareAcknowledge: sessions, acquired records, acknowledgements good and bad."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.differential.wire.families.common import (
    UNKNOWN_ID,
    create_topics,
    delete_topics,
    heartbeat,
    produce,
    set_group,
    weighted,
)
from tests.differential.wire.names import NO_ID
from tests.differential.wire.script import Ask, Close, Scenario, Sleep

_MEMBERS = ["AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg", "AAAAAAAAAAAAAAAAAAAAAw"]
_CROWD = [*_MEMBERS, "AAAAAAAAAAAAAAAAAAAABA", "AAAAAAAAAAAAAAAAAAAABQ", "AAAAAAAAAAAAAAAAAAAABg"]
_KEEPER = "AAAAAAAAAAAAAAAAAAAABw"
_PARTITIONS = [("#orders", 0), ("#orders", 0), ("#orders", 1), ("#bills", 0)]
_STRANGE = [("#orders", 9), ("#bills", -1), (UNKNOWN_ID, 0), (NO_ID, 0), ("#nowhere", 0)]
_LAST = -1
Acquired = tuple[str, int, int, int]


def scenario(random: Random, restarts: bool) -> Scenario:
    """Members of one group take records of two topics and settle them."""
    yield create_topics(orders=2, bills=1)
    settings = {"share_auto_offset_reset": "earliest"}
    short_locks = random.random() < 0.04
    if short_locks:
        settings["share_record_lock_duration_ms"] = "1000"
    if random.random() < 0.2:
        settings["share_delivery_count_limit"] = "2"
    if random.random() < 0.1:
        settings["share_partition_max_record_locks"] = "100"
    if random.random() < 0.1:
        settings["share_renew_acknowledge_enable"] = "false"
    yield set_group("~shop", **settings)
    yield heartbeat("~shop", "~joined", 0, ["~orders", "~bills"])
    for topic, partition in dict.fromkeys(_PARTITIONS):
        yield produce(
            topic[1:], partition, [f"{partition}{number}" for number in range(random.choice([1, 3, 8]))]
        )
        # loads the state: from now on a fetch need not wait
        yield _fetch("a", _CROWD[5], 0, [(topic, partition, [])], max_wait_ms=8000)
        yield _acknowledge("a", _CROWD[5], _LAST, [])
    # Apache Kafka unloads a group's state when the connection of its last session ends
    yield _fetch("a", _KEEPER, 0, [])
    life = _Life(random)
    for number in range(random.randrange(25, 60)):
        yield from life.step()
        if short_locks and number % 12 == 11:
            yield Sleep(2500)
            life.acquired.clear()
    if random.random() < 0.1:
        yield _fetch("strange", _CROWD[5], 0, [("#orders", 0, [])], share_acquire_mode=2)
        yield Close("strange")  # it has opened a session there


_STEPS = {
    "fetch": 14,
    "open": 3,
    "acknowledge": 8,
    "both": 7,
    "wrong": 3,
    "close": 2,
    "bad": 3,
    "produce": 3,
    "gone": 1,
    "topic": 0.3,
}


class _Life:
    """Members, each with a connection, and what they have acquired."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.members = _CROWD if random.random() < 0.1 else _MEMBERS[: random.choice([1, 2, 2, 3])]
        self.acquired: dict[str, list[Acquired]] = {}
        # what a session held of partitions that it has no more stays locked there, and is free here once it
        # ends: such partitions stay in
        self.touched: dict[str, set[tuple[str, int]]] = {}
        # of several sessions of one connection Apache Kafka ends the last one with it: what ends has one
        self.elsewhere: set[str] = set()
        # where an answer brings records of several partitions, their turns come in the order of a hash table
        # there: limits are for sessions of one partition
        self.alone = random.random() < 0.4
        self.partitions = [("#orders", 0)] if self.alone else _PARTITIONS[1:]

    def step(self) -> Scenario:
        random = self.random
        member = random.choice(self.members)
        own = f"c{member[-2:]}"
        connection = own if random.random() < 0.97 else "other"
        if connection == "other":
            self.elsewhere.add(member)
        match weighted(
            random,
            _STEPS,
        ):
            case "fetch":
                yield from self._fetch(connection, member, self._epoch(connection, member), self._wanted())
            case "open":
                yield from self._fetch(connection, member, 0, self._again(member))
            case "acknowledge":
                yield from self._settle(connection, member)
            case "both":
                topics = [*self._acknowledged(member), *self._wanted()]
                yield from self._fetch(connection, member, self._epoch(connection, member), topics)
            case "wrong":
                wrong = random.choice([1, 1, -1, 5, 1000])
                epoch = random.choice([self._epoch(connection, member, wrong), -2, -9, 2**31 - 1])
                yield from self._fetch(connection, member, epoch, self._again(member))
            case "close":
                topics = self._acknowledged(member)
                if random.random() < 0.5:
                    yield _acknowledge(connection, member, _LAST, topics)
                else:
                    yield from self._fetch(connection, member, _LAST, topics)
                self._ended(member)
            case "bad":
                yield from self._bad(connection, member)
            case "produce":
                topic, partition = random.choice(_PARTITIONS)
                yield produce(
                    topic[1:], partition, [f"more{number}" for number in range(random.choice([1, 2, 5]))]
                )
            case "gone":
                if member not in self.elsewhere:
                    yield Close(own)
                    yield Sleep(100)
                    self._ended(member)
            case "topic":
                yield delete_topics("~bills")

    def _ended(self, member: str) -> None:
        self.acquired.pop(member, None)
        self.touched.pop(member, None)

    def _epoch(self, connection: str, member: str, plus: int = 0) -> dict[str, Any]:
        return {"session": f"{connection} ~shop {member}", "plus": plus}

    def _wanted(self) -> list[tuple[str, int, list[dict[str, Any]]]]:
        """Partitions to fetch: often none new, as in a session."""
        random = self.random
        wanted = random.sample(self.partitions, min(len(self.partitions), random.choice([0, 0, 1, 1, 2, 3])))
        if random.random() < 0.06:
            wanted.append(random.choice(_STRANGE))
        return [(topic, partition, []) for topic, partition in wanted]

    def _again(self, member: str) -> list[tuple[str, int, list[dict[str, Any]]]]:
        """Partitions to open a session with: those that it had records of, and others."""
        return [
            (topic, partition, []) for topic, partition in sorted(self.touched.get(member, ()))
        ] + self._wanted()

    def _acknowledged(self, member: str) -> list[tuple[str, int, list[dict[str, Any]]]]:
        """Acknowledgements of some of what the member has, mostly right ones."""
        random = self.random
        held = self.acquired.get(member, [])
        if not held:
            return [("#orders", 0, [_batch(0, 0, [1])])] if random.random() < 0.2 else []
        topic, partition, first, last = held.pop(random.randrange(len(held)))
        kind = weighted(random, {1: 8, 2: 4, 3: 3, 4: 2, 0: 0.5, 9: 0.2})
        if random.random() < 0.3 and last > first:
            middle = random.randrange(first, last)
            return [(topic, partition, [_batch(first, middle, [kind]), _batch(middle + 1, last, [1])])]
        if random.random() < 0.2:
            kinds = [random.choice([1, 1, 2, 3, 0]) for _ in range(first, last + 1)]
            return [(topic, partition, [_batch(first, last, kinds)])]
        if random.random() < 0.15:
            last = random.choice([last + 1, last + 5, first, first - 1])
        return [(topic, partition, [_batch(first, last, [kind])])]

    def _settle(self, connection: str, member: str) -> Scenario:
        yield _acknowledge(
            connection, member, self._epoch(connection, member), self._acknowledged(member), self.random
        )

    def _fetch(
        self, connection: str, member: str, epoch: Any, topics: list[tuple[str, int, list[dict[str, Any]]]]
    ) -> Scenario:
        random = self.random
        if connection == "other":
            topics = [*topics, *self._again(member)]
        touched = self.touched.setdefault(member, set())
        may_go = [each for each in _PARTITIONS[1:] if each not in touched]
        forgotten = random.sample(may_go, min(len(may_go), random.choice([0] * 8 + [1, 2])))
        answer = yield _fetch(
            connection,
            member,
            epoch,
            topics,
            forgotten=forgotten,
            version=random.choice([1, 2, 2, 2]),
            max_records=random.choice([500, 1, 2, 3]) if self.alone else 500,
            max_bytes=random.choice([1 << 20, 1 << 20, 1, 90, 200, 300]) if self.alone else 1 << 20,
            batch_size=random.choice([500, 500, 1, 2]) if random.random() < 0.3 else 500,
            share_acquire_mode=weighted(random, {0: 12, 1: 3}),
            is_renew_ack=random.random() < 0.04,
            min_bytes=random.choice([0, 1, 1, 1]),
        )
        if not isinstance(answer, dict):
            return
        held = self.acquired.setdefault(member, [])
        for topic in answer.get("responses", []):
            for partition in topic["partitions"]:
                if partition["acquired_records"]:
                    touched.add((topic["topic_id"].partition("/")[0], partition["partition_index"]))
                for run in partition["acquired_records"]:
                    held.append(
                        (
                            topic["topic_id"],
                            partition["partition_index"],
                            run["first_offset"],
                            run["last_offset"],
                        )
                    )

    def _bad(self, connection: str, member: str) -> Scenario:
        """Requests that no client would send."""
        random = self.random
        epoch = self._epoch(connection, member)
        held = next(iter(self.acquired.get(member, [])), ("#orders", 0, 0, 2))
        topic, partition, first, last = held
        batches = random.choice(
            [
                [_batch(first, last, [])],
                [_batch(last, first - 1, [1])],
                [_batch(first, last, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1])],
                [_batch(first, last, [1]), _batch(first, last, [1])],
                [_batch(last + 1, last + 2, [1]), _batch(first, last, [1])],
                [_batch(-1, 0, [1])],
                [_batch(first, last, [-1])],
                [_batch(100, 200, [1])],
            ]
        )
        match random.randrange(5):
            case 0:
                yield _acknowledge(connection, member, epoch, [(topic, partition, batches)])
            case 1:
                yield from self._fetch(connection, member, epoch, [(topic, partition, batches)])
            case 2:
                yield from self._fetch(connection, member, 0, [(topic, partition, batches)])
            case 3:
                ask = _fetch(connection, member, epoch, self._wanted())
                name = random.choice(["group_id", "member_id"])
                value = random.choice(["~nobody", "not a uuid"])
                yield Ask(ask.api, ask.version, ask.fields | {name: value}, "bad")
            case _:
                strange = [(*random.choice(_STRANGE), [_batch(0, 0, [1])])]
                yield _acknowledge(connection, member, random.choice([epoch, 0]), strange)


def _batch(first: int, last: int, kinds: list[int]) -> dict[str, Any]:
    return {"first_offset": first, "last_offset": last, "acknowledge_types": kinds}


def _by_topic(topics: list[tuple[str, int, list[dict[str, Any]]]]) -> list[dict[str, Any]]:
    grouped: dict[str, list[dict[str, Any]]] = {}
    seen: set[tuple[str, int]] = set()
    for topic, partition, batches in topics:
        if (topic, partition) not in seen:
            seen.add((topic, partition))
            entry = {"partition_index": partition, "acknowledgement_batches": batches}
            grouped.setdefault(topic, []).append(entry)
    return [{"topic_id": topic, "partitions": partitions} for topic, partitions in grouped.items()]


def _fetch(
    connection: str,
    member: str,
    epoch: Any,
    topics: list[tuple[str, int, list[dict[str, Any]]]],
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
            "topics": _by_topic(topics),
            "forgotten_topics_data": [
                {"topic_id": topic, "partitions": [partition]}
                for topic, partition in dict(forgotten or []).items()
            ],
            **fields,
        },
        connection,
    )


def _acknowledge(
    connection: str,
    member: str,
    epoch: Any,
    topics: list[tuple[str, int, list[dict[str, Any]]]],
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
            "topics": _by_topic(topics),
        },
        connection,
    )
