"""ShareFetch and ShareAcknowledge as no client sends them: odd batches and limits, partitions twice."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.differential.wire.families.common import UNKNOWN_ID, produce, weighted
from tests.differential.wire.families.share import (
    LAST,
    PARTITIONS,
    Run,
    Topics,
    acknowledge,
    acquired,
    batch,
    fetch,
    ready,
    releases,
    session,
    some_partitions,
    stumbled,
)
from tests.differential.wire.names import NO_ID
from tests.differential.wire.script import Ask, Close, Fields, Scenario, Stage

_ANN, _BOB = "AAAAAAAAAAAAAAAAAAAAAQ", "bob"
_TOPICS = ["#orders", "#orders", "#orders/1", "#bills"]
_NOWHERE = [UNKNOWN_ID, NO_ID, "#nowhere"]
_INDEXES = [0, 0, 0, 1, 1, 2, -1, 9, 2**31 - 1]
_STEPS = {
    "fetch": 5,
    "acknowledge": 8,
    "both": 6,
    "limits": 6,
    "renew": 3,
    "open": 3,
    "names": 2,
    "produce": 1,
}
_LIMITS: dict[str, list[Any]] = {
    "max_wait_ms": [-1, 0],
    "min_bytes": [-1, 0, 1],
    "max_bytes": [-1, 0, 1 << 20],
    "max_records": [-1, 0, 500],
    "batch_size": [-1, 0, 1, 500],
    "share_acquire_mode": [-1, 0, 1, 2],
    "is_renew_ack": [True, False],
}


def scenario(random: Random, stage: Stage) -> Scenario:
    """Two members hold records and ask for odd things."""
    yield from ready(random)
    life = _Life(random, stage)
    for member in life.held:
        yield from life.open(member)
    for _ in range(random.randrange(30, 60)):
        yield from life.step()
        if life.over:
            break


class _Life:
    def __init__(self, random: Random, stage: Stage) -> None:
        self.random = random
        # on Kafka 4.3.1, a session with a missing topic serves nothing any more
        self.fetched = [*_TOPICS, *_NOWHERE] if stage.newest else _TOPICS
        self.held: dict[str, list[Run]] = {_ANN: [], _BOB: []}
        self.over = False

    def step(self) -> Scenario:
        random = self.random
        member = random.choice([_ANN, _ANN, _BOB])
        epoch = session(member, member)
        match weighted(random, _STEPS):
            case "fetch":
                yield from self._fetch(fetch(member, member, epoch, some_partitions(random, 3)), member)
            case "acknowledge":
                ask = acknowledge(member, member, epoch, [], random)
                ask.fields["topics"] = self._topics(member)
                self.over = stumbled(ask, (yield ask))
            case "both":
                yield from self._fetch(fetch(member, member, epoch, []), member, topics=self._topics(member))
            case "limits":
                names = random.sample(list(_LIMITS), random.choice([1, 1, 2, 3]))
                odd = {name: random.choice(_LIMITS[name]) for name in names}
                yield from self._fetch(
                    fetch(member, member, epoch, some_partitions(random, 2)), member, **odd
                )
            case "renew":
                yield from self._fetch(self._renewal(member, epoch), member)
            case "open":
                if random.random() < 0.4:
                    yield fetch(member, member, LAST, [])
                    self.held[member].clear()
                yield from self.open(member)
            case "names":
                yield from self._strange_names()
            case "produce":
                topic, partition = random.choice(PARTITIONS)
                yield produce(topic[1:], partition, ["more"] * random.choice([1, 2, 5]))

    def open(self, member: str) -> Scenario:
        """Begins a session: each partition once, or Apache Kafka refuses it."""
        first: Topics = [(*each, []) for each in PARTITIONS]
        yield from self._fetch(fetch(member, member, 0, first), member)

    def _fetch(self, ask: Ask, member: str, **fields: Any) -> Scenario:
        sent = Ask(ask.api, self.random.choice([1, 2, 2]), ask.fields | fields, ask.on)
        if releases(sent):
            sent.fields["max_records"] = 0
        answer = yield sent
        self.over = stumbled(sent, answer)
        self.held[member] += acquired(answer)

    def _renewal(self, member: str, epoch: Any) -> Ask:
        topics = [
            (topic, partition, [batch(first, last, [4])])
            for topic, partition, first, last in self.held[member]
        ]
        ask = fetch(member, member, epoch, topics[-2:], is_renew_ack=True)
        zeros = dict.fromkeys(("max_wait_ms", "min_bytes", "max_bytes", "max_records"), 0)
        return Ask(ask.api, ask.version, ask.fields | zeros, ask.on)

    def _topics(self, member: str) -> list[Fields]:
        """Topics and partitions in any order and number, with batches of any form."""
        random = self.random
        topics = []
        for _ in range(random.choice([0, 1, 1, 2, 3])):
            topic = random.choice(self.fetched)
            partitions = [
                {"partition_index": index, "acknowledgement_batches": self._batches(member, topic, index)}
                for index in random.choices(_INDEXES, k=random.choice([0, 1, 1, 2, 3]))
            ]
            topics.append({"topic_id": topic, "partitions": partitions})
        return topics

    def _batches(self, member: str, topic: str, index: int) -> list[Fields]:
        random = self.random
        runs = [
            run
            for run in self.held[member]
            if run[0].partition("/")[0] == topic.partition("/")[0] and run[1] == index
        ]
        batches = []
        for _ in range(random.choice([0, 0, 1, 1, 1, 2, 3])):
            first = random.choice([0, 1, 2, 3, 5, 8, 40, -1, -5, 2**62])
            last = first + random.choice([0, 0, 0, 1, 2, 4, -1, 1000])
            if runs and random.random() < 0.7:
                _, _, first, last = random.choice(runs)
                first, last = first + random.choice([0, 0, 0, 1, -1]), last + random.choice([0, 0, 0, 1, -1])
            span = max(0, min(20, last - first + 1))
            length = random.choice([0, 1, 1, 1, 1, 2, span, span, span + 1])
            kinds = [
                weighted(random, {1: 10, 2: 4, 3: 2, 0: 3, 4: 1, 5: 0.3, -1: 0.3, 127: 0.2})
                for _ in range(length)
            ]
            batches.append(batch(first, last, kinds))
        return batches if random.random() < 0.3 else sorted(batches, key=lambda each: each["first_offset"])

    def _strange_names(self) -> Scenario:
        """A group or a member that nobody is, on a connection that ends."""
        random = self.random
        names = {"group_id": ["", None, "~nobody"], "member_id": ["", None, "x", "x" * 36, "x" * 37, "~é"]}
        name = random.choice(list(names))
        odd = {name: random.choice(names[name])}
        epoch = random.choice([0, 0, 1, LAST, -2])
        topics = [("#orders", 0, [batch(0, 0, [1])] if epoch else [])]
        if random.random() < 0.5 or epoch == 0:
            ask = fetch("strange", _ANN, epoch, topics, max_records=0)
        else:
            ask = acknowledge("strange", _ANN, epoch, topics)
        yield Ask(ask.api, ask.version, ask.fields | odd, "strange")
        yield Close("strange")
