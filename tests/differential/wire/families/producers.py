"""Batches of producers that leave out duplicates, alone and in transactions: sequences, epochs, retries."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.differential.wire.families.common import create_topics, produce, weighted
from tests.differential.wire.families.producing import (
    V1,
    V2,
    add_partitions,
    describe_producers,
    end,
    end_version,
    epoch_of,
    following,
    id_of,
    initialize,
    records_of,
    write,
    write_version,
)
from tests.differential.wire.script import Ask, Restart, Scenario, Stage

_ALONE = ["i1", "i2"]
"""Producers without transactions are named by their connections."""
_NAMES = ["~ann", "~bob"]
_PLACES = [("orders", 0), ("orders", 0), ("orders", 1), ("bills", 0)]
_HIGHEST = 2**31 - 1
_STEPS = {
    "right": 16,
    "again": 5,
    "wrong": 6,
    "epoch": 3,
    "stranger": 1.5,
    "other way": 2,
    "plain": 1,
    "end": 5,
    "begin": 2,
    "look": 6,
}


def scenario(random: Random, stage: Stage) -> Scenario:
    """Producers write to a few partitions, mostly what comes next."""
    yield create_topics(orders=2, bills=1)
    life = _Life(random)
    for _ in range(random.randrange(25, 60)):
        yield from life.step()
    if stage.restarts and random.random() < 0.03:
        yield Restart()
        for _ in range(15):
            yield from life.step()


class _Life:
    """Producers, and how many records their latest batches had."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.known: set[str] = set()
        self.written: dict[tuple[str, str, int], list[int]] = {}
        self.refused: set[tuple[str, str, int]] = set()
        self.transactions = random.choice([V1, V2, V2])

    def step(self) -> Scenario:
        random = self.random
        name = random.choice([*_ALONE, *_NAMES, *_NAMES])
        if name not in self.known:
            self.known.add(name)
            yield self._begin(name)
            return
        topic, partition = random.choice(_PLACES)
        kind = weighted(random, _STEPS)
        match kind:
            case "right" | "again" | "wrong" | "epoch" | "stranger" | "other way":
                yield from self._write(kind, name, topic, partition)
            case "plain":
                yield produce(topic, partition, ["plain"])
            case "end":
                ended = name if name in _NAMES else random.choice(_NAMES)
                yield self._end(ended)
                if self.transactions == V2:
                    self._forget(ended)
            case "begin":
                yield self._begin(name)
            case "look":
                yield _look(random)

    def _begin(self, name: str) -> Ask:
        random = self.random
        self._forget(name)
        if name in _ALONE:
            return initialize(None, on=name, version=random.choice([2, 4, 5]))
        again = name in self.known and random.random() < 0.3
        return initialize(
            name,
            producer=id_of(name) if again else -1,
            epoch=epoch_of(name) if again else -1,
            version=random.choice([3, 4, 5]),
        )

    def _forget(self, name: str) -> None:
        """The producer's sequences begin anew."""
        for place in [each for each in self.written if each[0] == name]:
            del self.written[place]

    def _end(self, name: str) -> Ask:
        return end(
            name, commit=self.random.random() < 0.5, version=end_version(self.random, self.transactions)
        )

    def _write(self, kind: str, name: str, topic: str, partition: int) -> Scenario:
        random = self.random
        in_transaction = name in _NAMES
        if in_transaction and self.transactions == V1 and random.random() < 0.8:
            yield add_partitions(name, {f"~{topic}": [partition]})
        written = self.written.setdefault((name, topic, partition), [])
        count = random.choice([1, 1, 2, 3])
        epoch: Any = epoch_of(name)
        sequence: Any = following(name, topic, partition)
        producer = name
        match kind:
            case "again" if written:
                back = random.randrange(1, min(len(written), 7) + 1)
                count = written[-back] if random.random() < 0.8 else count
                sequence = following(name, topic, partition, -sum(written[-back:]))
            case "wrong":
                plus = random.choice([1, 1, 2, -1, -2, 10])
                strange = [0, 0, 1, 5, -1, -2, _HIGHEST, _HIGHEST - 1]
                sequence = (
                    following(name, topic, partition, plus)
                    if random.random() < 0.6
                    else random.choice(strange)
                )
            case "epoch":
                # Apache Kafka keeps an epoch that a later transaction will use, to refuse the current one
                epoch = epoch_of(name, random.choice([-1, -1] if in_transaction else [-1, 1, 2]))
                sequence = random.choice([0, sequence])
            case "stranger":
                # during an open transaction, Apache Kafka does not check who owns the transactional id; and
                # refused transactional batches count against other batches of the producer id
                nobody = "~nobody" if in_transaction else "~nemo"
                producer = random.choice([f"{name}/1", nobody])
            # on Apache Kafka, refused batches of a transaction count against batches outside of it
            case "other way" if (name, topic, partition) not in self.refused:
                in_transaction = not in_transaction
        values = [f"{producer}{number}" for number in range(count)]
        records = records_of(producer, epoch, sequence, values, transactional=in_transaction)
        answer = yield write(
            [(topic, partition, records)],
            transactional_id=name if name in _NAMES else None,
            version=write_version(random, self.transactions),
        )
        is_taken = answer["responses"][0]["partition_responses"][0]["error_code"] == 0
        if kind == "right" and is_taken:
            written.append(count)
        if in_transaction:
            (self.refused.discard if is_taken else self.refused.add)((name, topic, partition))


def _look(random: Random) -> Ask:
    topics = random.choice([{"~orders": [0]}, {"~orders": [0, 1], "~bills": [0]}])
    if random.random() < 0.1:
        topics = {"~orders": [0, 7, -1], random.choice(["~nowhere", "", "~a b"]): [0]}
    return describe_producers(topics)
