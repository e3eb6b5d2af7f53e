"""The transaction coordinator: who may begin, add and end; fencing, timeouts, offsets in transactions."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.differential.wire.families.common import create_topics, delete_topics, some, weighted
from tests.differential.wire.families.producing import (
    V1,
    V2,
    add_partitions,
    describe_producers,
    describe_transactions,
    end,
    end_version,
    epoch_of,
    id_of,
    initialize,
    write_in_transaction,
)
from tests.differential.wire.script import Ask, Restart, Scenario, Sleep, Stage

_NAMES = ["~ann", "~bob", "~cid"]
_STRANGE = ["", "~nobody", "~é", "~" + "x" * 250]
_PLACES = [("orders", 0), ("orders", 1), ("bills", 0)]
_STATES = ["Empty", "Ongoing", "PrepareCommit", "CompleteCommit", "CompleteAbort", "Dead", "nonsense", ""]
_LONG_MS = 1_000_000_000
_STEPS = {
    "begin": 6,
    "go on": 3,
    "add": 5,
    "write": 10,
    "end": 10,
    "offsets": 7,
    "plain offsets": 2,
    "delete offsets": 1,
    "bad": 6,
    "describe": 6,
    "list": 4,
    "look": 3,
    "committed": 3,
}


def scenario(random: Random, stage: Stage) -> Scenario:
    """Producers begin under their names, write and end transactions, rightly and wrongly."""
    yield create_topics(orders=2, bills=1)
    life = _Life(random, stage, timeouts=random.random() < 0.04)
    for number in range(random.randrange(25, 60)):
        yield from life.step()
        if life.timeouts and number % 15 == 14:
            yield Sleep(2500)
            yield describe_transactions(_NAMES)
    if random.random() < 0.1:
        yield delete_topics("~bills")
        for name in _NAMES:
            yield life.end(name)
        yield describe_transactions(_NAMES)
    if stage.restarts and random.random() < 0.03:
        yield Restart()
        for _ in range(20):
            yield from life.step()


class _Life:
    """A few transactional ids, and the version of transactions that their clients speak."""

    def __init__(self, random: Random, stage: Stage, *, timeouts: bool) -> None:
        self.random = random
        self.newest = stage.newest
        self.timeouts = timeouts
        self.known: set[str] = set()
        self.transactions = random.choice([V1, V2, V2])
        self.is_mixed = random.random() < 0.1

    def step(self) -> Scenario:
        random = self.random
        if self.is_mixed:
            self.transactions = random.choice([V1, V2])
        name = random.choice(_NAMES)
        if name not in self.known:
            self.known.add(name)
            yield self._begin(name)
            return
        match weighted(random, _STEPS):
            case "begin":
                yield self._begin(name)
            case "go on":
                yield self._go_on(name)
            case "add":
                yield self._add(name)
            case "write":
                yield from self._write(name)
            case "end":
                yield self.end(name)
            case "offsets":
                yield from self._offsets(name)
            case "plain offsets":
                yield self._plain_offsets()
            case "delete offsets":
                yield self._delete_offsets()
            case "bad":
                yield self._bad(name)
            case "describe":
                yield describe_transactions(some(random, [*_NAMES, random.choice(_STRANGE)]))
            case "list":
                yield _list(random)
            case "look":
                yield describe_producers({"~orders": [0, 1], "~bills": [0]})
            case "committed":
                yield _committed(random)

    def end(self, name: str) -> Ask:
        """The open transaction ends."""
        return end(
            name, commit=self.random.random() < 0.6, version=end_version(self.random, self.transactions)
        )

    def _begin(self, name: str) -> Ask:
        return initialize(
            name, version=self.random.choice([0, 2, 3, 4, 5]), timeout_ms=1000 if self.timeouts else 60_000
        )

    def _go_on(self, name: str) -> Ask:
        """Return a producer that wants a new epoch after an error, or has not heard of the one it has."""
        random = self.random
        return initialize(
            name,
            version=random.choice([3, 4, 5]),
            timeout_ms=1000 if self.timeouts else 60_000,
            producer=id_of(random.choice([name, name, name, f"{name}/1", "~nobody"])),
            epoch=random.choice([epoch_of(name), epoch_of(name), epoch_of(name, -1), epoch_of(name, 1), 0]),
        )

    def _add(self, name: str) -> Ask:
        random = self.random
        partitions: dict[str, list[int]] = {}
        for topic, partition in random.sample(_PLACES, random.choice([1, 1, 2, 3])):
            partitions.setdefault(f"~{topic}", []).append(partition)
        if random.random() < 0.1:
            partitions |= random.choice([{"~nowhere": [0]}, {"~orders": [9]}, {"~bills": [-1]}])
        return add_partitions(name, partitions, version=random.randrange(4))

    def _write(self, name: str) -> Scenario:
        random = self.random
        topic, partition = random.choice(_PLACES)
        if self.transactions == V1 and random.random() < 0.85:
            yield add_partitions(name, {f"~{topic}": [partition]}, version=random.randrange(4))
        count = random.choice([1, 2, 3])
        yield write_in_transaction(random, name, topic, partition, count, self.transactions)

    def _offsets(self, name: str) -> Scenario:
        random = self.random
        group = random.choice(["~readers", "~others"])
        if self.transactions == V1 and random.random() < 0.85:
            fields = {
                "transactional_id": name,
                "producer_id": id_of(name),
                "producer_epoch": epoch_of(name),
                "group_id": group,
            }
            yield Ask("ADD_OFFSETS_TO_TXN", random.randrange(5), fields)
        topic, partition = random.choice([*_PLACES, ("nowhere", 0), ("orders", 9)])
        member, generation = random.choice([("", -1), ("", -1), ("", -1), ("", 3), ("~who", 1)])
        offset = {
            "partition_index": partition,
            "committed_offset": random.randrange(50),
            "committed_metadata": random.choice([None, "", "note"]),
        }
        yield Ask(
            "TXN_OFFSET_COMMIT",
            random.choice([5, 6] if self.newest else [5])
            if self.transactions == V2
            else random.choice([3, 4]),
            {
                "transactional_id": name,
                "group_id": group,
                "producer_id": id_of(random.choice([name, name, name, "~nobody"])),
                "producer_epoch": epoch_of(name, random.choice([0, 0, 0, 0, -1, 1])),
                "generation_id": generation,
                "member_id": member,
                "group_instance_id": None,
                "topics": [{"name": f"~{topic}", "topic_id": f"#{topic}", "partitions": [offset]}],
            },
        )

    def _plain_offsets(self) -> Ask:
        """Offsets outside of transactions, which may be open for the same partitions."""
        random = self.random
        topic, partition = random.choice(_PLACES)
        offset = {
            "partition_index": partition,
            "committed_offset": random.randrange(50),
            "committed_metadata": "",
        }
        fields = {
            "group_id": random.choice(["~readers", "~others"]),
            "generation_id_or_member_epoch": -1,
            "member_id": "",
            "topics": [{"name": f"~{topic}", "partitions": [offset]}],
        }
        return Ask("OFFSET_COMMIT", random.choice([7, 8]), fields)

    def _delete_offsets(self) -> Ask:
        random = self.random
        topic, partition = random.choice(_PLACES)
        topics = [{"name": f"~{topic}", "partitions": [{"partition_index": partition}]}]
        fields = {"group_id": random.choice(["~readers", "~others"]), "topics": topics}
        if random.random() < 0.3:
            return Ask("DELETE_GROUPS", 2, {"groups_names": [fields["group_id"]]})
        return Ask("OFFSET_DELETE", 0, fields)

    def _bad(self, name: str) -> Ask:
        """Requests of producers that have been fenced, or never were."""
        random = self.random
        other = random.choice([name, *_NAMES, *_STRANGE])
        producer: Any = random.choice([id_of(name), id_of(f"{name}/1"), id_of("~bob"), -1])
        epoch: Any = random.choice(
            [epoch_of(name), epoch_of(name, -1), epoch_of(name, -2), epoch_of(name, 1), -1]
        )
        match random.randrange(4):
            case 0:
                timeout_ms = random.choice([0, -1, 900_000, 900_001, 60_000])
                return initialize(
                    other,
                    timeout_ms=timeout_ms,
                    version=random.choice([3, 4, 5]),
                    producer=producer,
                    epoch=epoch,
                )
            case 1:
                return add_partitions(
                    other, {"~orders": [0]}, producer=producer, epoch=epoch, version=random.randrange(4)
                )
            case _:
                return end(
                    other,
                    commit=random.random() < 0.5,
                    version=random.choice([1, 2, 3, 4, 5, 5]),
                    producer=producer,
                    epoch=epoch,
                )


def _list(random: Random) -> Ask:
    return Ask(
        "LIST_TRANSACTIONS",
        random.randrange(3),
        {
            "state_filters": [] if random.random() < 0.4 else some(random, _STATES),
            "producer_id_filters": random.choice([[], [], [id_of("~ann")], [id_of("~ann/1"), id_of("~bob")]]),
            "duration_filter": random.choice([-1, -1, _LONG_MS]),
            "transactional_id_pattern": random.choice([None, "", ".*ann", ".*(ann|bob)$", "ann", "[", "~.*"]),
        },
    )


def _committed(random: Random) -> Ask:
    topics = [{"name": "~orders", "partition_indexes": [0, 1]}, {"name": "~bills", "partition_indexes": [0]}]
    groups = [{"group_id": group, "topics": topics} for group in ("~readers", "~others")]
    fields = {"groups": groups, "require_stable": random.random() < 0.6}
    return Ask("OFFSET_FETCH", random.choice([8, 9]), fields)
