"""Plain consumers: Fetch in every version, alone and in fetch sessions, from places good and bad."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.differential.wire.families.common import (
    UNKNOWN_ID,
    create_topics,
    delete_topics,
    grow_topic,
    produce,
    weighted,
)
from tests.differential.wire.script import Answer, Ask, Close, Fields, Scenario, Stage

_PLACES = [("orders", 0), ("orders", 0), ("orders", 1), ("bills", 0), ("mail", 0)]
_CONNECTIONS = ["f1", "f2", "f3"]
_BY_NAME, _BY_ID = range(7, 13), range(13, 19)
_MAX = 2**31 - 1
_LATEST = -1
_WAIT_MS = 30_000
_STEPS = {
    "alone": 5,
    "old": 3,
    "open": 4,
    "go on": 16,
    "wrong": 4,
    "close": 1.5,
    "produce": 8,
    "delete records": 2,
    "topics": 0.7,
    "gone": 0.5,
    "little": 5,
    "wait": 2.5,
}


def scenario(random: Random, stage: Stage) -> Scenario:
    """A few consumers, each with a session of its own."""
    yield create_topics(orders=2, bills=1)
    life = _Life(random)
    for topic, partition in dict.fromkeys(_PLACES[:-1]):
        yield produce(topic, partition, ["first", "second"][: random.choice([0, 1, 2]) or 1])
    for _ in range(random.randrange(30, 60)):
        yield from life.step()


class _Session:
    """What one connection fetches."""

    def __init__(self, version: int) -> None:
        self.by_id = version in _BY_ID
        self.version = version
        self.id: Any = 0
        self.epoch = 1
        self.partitions: set[tuple[str, int]] = set()


class _Life:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.sessions: dict[str, _Session] = {}

    def step(self) -> Scenario:
        random = self.random
        on = random.choice(_CONNECTIONS)
        match weighted(random, _STEPS):
            case "alone":
                yield self._fetch(
                    "a", random.choice([*_BY_NAME, *_BY_ID]), self._wanted(random.random() < 0.15), 0, -1
                )
            case "old":
                yield self._fetch("a", random.randrange(4, 7), self._wanted(random.random() < 0.15), 0, -1)
            case "open":
                yield from self._open(on)
            case "go on":
                yield from self._go_on(on)
            case "wrong":
                yield from self._wrong(on)
            case "close":
                session = self.sessions.pop(on, None)
                if session is not None:
                    yield self._fetch(
                        on,
                        session.version,
                        self._wanted(False) if random.random() < 0.5 else [],
                        session.id,
                        -1,
                    )
            case "produce":
                topic, partition = random.choice(_PLACES[:-1])
                yield produce(topic, partition, ["more"] * random.choice([1, 1, 2, 5]))
            case "delete records":
                topic, partition = random.choice(_PLACES[:-1])
                asked = {"partition_index": partition, "offset": random.choice([0, 1, 2, -1])}
                yield Ask(
                    "DELETE_RECORDS",
                    2,
                    {"topics": [{"name": f"~{topic}", "partitions": [asked]}], "timeout_ms": 5000},
                )
            case "topics":
                yield random.choice(
                    [
                        delete_topics("~bills"),
                        delete_topics("~mail"),
                        create_topics(bills=1),
                        create_topics(mail=1),
                        grow_topic("~orders", 3),
                    ]
                )
            case "gone":
                yield Close(on)
            case "little":
                limits = [1, 60, 68, 70, 100, 150, 300, 1 << 20]
                wanted = self._wanted(False)
                for _, _, place in wanted:
                    place["partition_max_bytes"] = random.choice(limits)
                ask = self._fetch("a", random.choice([*_BY_NAME, *_BY_ID]), wanted, 0, -1)
                ask.fields["max_bytes"] = random.choice(limits)
                yield ask
            case "wait":
                yield from self._wait()

    def _wait(self) -> Scenario:
        """A fetch from the end of what it waits for, which records come to, or none."""
        random = self.random
        places = random.sample(["orders 0", "orders 1", "bills 0"], random.choice([1, 1, 2]))
        wanted = []
        for name in places:
            topic, _, index = name.partition(" ")
            asked = {"partition_index": int(index), "timestamp": _LATEST, "current_leader_epoch": -1}
            fields = {"replica_id": -1, "topics": [{"name": f"~{topic}", "partitions": [asked]}]}
            answer = yield Ask("LIST_OFFSETS", 5, fields)
            end = answer["topics"][0]["partitions"][0]["offset"] if isinstance(answer, dict) else 0
            wanted.append((topic, int(index), self._place() | {"fetch_offset": max(end, 0)}))
        if random.random() < 0.3:
            wanted.append((*random.choice([("nowhere", 0), ("orders", 9), ("none", 0)]), self._place()))
        records = random.choice([0, 1, 1, 2, 3])
        ask = self._fetch("w", random.choice([*_BY_NAME, *_BY_ID]), wanted, 0, -1)
        # a batch with one record has about 70 bytes
        ask.fields["min_bytes"] = {0: 1, 1: 1, 2: 100, 3: 170}[records]
        ask.fields["max_wait_ms"] = _WAIT_MS if records else 300
        yield Ask(ask.api, ask.version, ask.fields, ask.on, later=True)
        for _ in range(records):
            yield produce(wanted[0][0], wanted[0][1], ["awaited"])
        yield Answer("w")

    def _open(self, on: str) -> Scenario:
        """A session begins; another one of the connection may end with the same request."""
        random = self.random
        before = self.sessions.get(on)
        session = _Session(random.choice(_BY_ID if random.random() < 0.6 else _BY_NAME))
        wanted = self._wanted(random.random() < 0.1)
        ended = before.id if before is not None and random.random() < 0.5 else 0
        answer = yield self._fetch(on, session.version, wanted, ended, 0)
        self._told(on, session, answer, wanted)

    def _told(self, on: str, session: _Session, answer: Any, wanted: list[tuple[str, int, Fields]]) -> None:
        if isinstance(answer, dict) and answer["error_code"] == 0 and answer["session_id"]:
            session.id = {"session_of": answer["session_id"]}
            session.partitions = {(topic, index) for topic, index, _ in wanted}
            self.sessions[on] = session

    def _go_on(self, on: str) -> Scenario:
        random = self.random
        session = self.sessions.get(on)
        if session is None:
            yield from self._open(on)
            return
        wanted = self._wanted(random.random() < 0.06) if random.random() < 0.5 else []
        forgotten = []
        if session.partitions and random.random() < 0.2:
            forgotten = [random.choice([*sorted(session.partitions), ("orders", 9), ("nowhere", 0)])]
        answer = yield self._fetch(on, session.version, wanted, session.id, session.epoch, forgotten)
        session.partitions |= {(topic, index) for topic, index, _ in wanted}
        session.partitions -= set(forgotten)
        if not isinstance(answer, dict) or answer["error_code"] != 0 or answer["session_id"] == 0:
            self.sessions.pop(on)
        else:
            session.epoch += 1

    def _wrong(self, on: str) -> Scenario:
        """Epochs too high and too low, sessions that nobody has, names in a session of ids."""
        random = self.random
        session = self.sessions.get(on) or _Session(13)
        identity, epoch, version = session.id, session.epoch, session.version
        match random.randrange(4):
            case 0:
                epoch += random.choice([-1, 1, 5, _MAX - epoch])
            case 1:
                identity = random.choice([0, 1, _MAX - 8, -1])
                epoch = random.choice([0, 1, 7, -1, -2, _MAX])
            case 2:
                epoch = random.choice([-2, -3, -_MAX])
            case _:
                version = random.choice(_BY_NAME if session.by_id else _BY_ID)
        wanted = self._wanted(False) if random.random() < 0.5 else []
        answer = yield self._fetch(on, version, wanted, identity, epoch)
        if epoch in (0, -1):
            self.sessions.pop(on, None)
        elif isinstance(answer, dict) and answer["error_code"] == 0:
            self.sessions.pop(on, None)  # right by chance

    def _wanted(self, strange: bool) -> list[tuple[str, int, Fields]]:
        """Partitions, without their `~`, and what of them."""
        random = self.random
        places = random.sample(_PLACES, random.choice([1, 1, 2, 3, 4]))
        places = list(dict.fromkeys(places)) if random.random() < 0.9 else places
        if strange:
            places.append(random.choice([("nowhere", 0), ("orders", 9), ("orders", -1), ("none", 0)]))
        return [(topic, index, self._place()) for topic, index in places]

    def _place(self) -> Fields:
        random = self.random
        return {
            "current_leader_epoch": weighted(random, {-1: 8, 0: 3, 5: 0.4, -2: 0.2}),
            "fetch_offset": weighted(random, {0: 6, 1: 3, 2: 3, random.randrange(12): 4, 99: 0.4, -1: 0.2}),
            "last_fetched_epoch": weighted(random, {-1: 8, 0: 3, 3: 0.4}),
            "log_start_offset": -1,
            "partition_max_bytes": 1 << 20,
        }

    def _fetch(
        self,
        on: str,
        version: int,
        wanted: list[tuple[str, int, Fields]],
        session_id: Any,
        epoch: int,
        forgotten: list[tuple[str, int]] | None = None,
    ) -> Ask:
        random = self.random
        grouped: dict[str, list[Fields]] = {}
        for topic, index, place in wanted:
            grouped.setdefault(topic, []).append({"partition": index, **place})
        return Ask(
            "FETCH",
            version,
            {
                "replica_id": -1,
                "max_wait_ms": 0,
                "min_bytes": random.choice([0, 1]),
                "max_bytes": 1 << 22,
                "isolation_level": random.choice([0, 0, 1]),
                "session_id": session_id,
                "session_epoch": epoch,
                "topics": [
                    {"topic": f"~{topic}", "topic_id": _id(topic), "partitions": partitions}
                    for topic, partitions in grouped.items()
                ],
                "forgotten_topics_data": [
                    {"topic": f"~{topic}", "topic_id": _id(topic), "partitions": [index]}
                    for topic, index in forgotten or ()
                ],
                "rack_id": random.choice(["", "r1"]),
            },
            on,
        )


def _id(topic: str) -> str:
    return UNKNOWN_ID if topic == "none" else f"#{topic}"
