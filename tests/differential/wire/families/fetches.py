"""ShareFetch and ShareAcknowledge: sessions, acquired records, acknowledgements good and bad."""

from __future__ import annotations

from collections.abc import Generator
from random import Random
from typing import Any

from tests.differential.wire.families.common import UNKNOWN_ID, delete_topics, produce, weighted
from tests.differential.wire.families.share import (
    LAST,
    LOADER,
    PARTITIONS,
    Run,
    Topics,
    acknowledge,
    acquired,
    batch,
    fetch,
    load,
    ready,
    releases,
    session,
)
from tests.differential.wire.names import NO_ID
from tests.differential.wire.script import Answer, Ask, Close, Restart, Scenario, Sleep, Stage, Step

_MEMBERS = ["AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg", "AAAAAAAAAAAAAAAAAAAAAw"]
_CROWD = [*_MEMBERS, "AAAAAAAAAAAAAAAAAAAABA", "AAAAAAAAAAAAAAAAAAAABQ", LOADER]
_PARTITIONS = [PARTITIONS[0], *PARTITIONS]
_STRANGE = [("#orders", 9), ("#bills", -1)]
_NOWHERE = [(UNKNOWN_ID, 0), (NO_ID, 0), ("#nowhere", 0)]
"""Kafka 4.3.1 refuses every later fetch of a session with such a topic; 4.4.0 and ours that partition."""


def scenario(random: Random, stage: Stage) -> Scenario:
    """Members of one group take records of two topics and settle them."""
    settings: dict[str, str] = {}
    short_locks = random.random() < 0.04
    if short_locks:
        settings["share_record_lock_duration_ms"] = "1000"
    if random.random() < 0.2:
        settings["share_delivery_count_limit"] = "2"
    if random.random() < 0.1:
        settings["share_partition_max_record_locks"] = "100"
    if random.random() < 0.1:
        settings["share_renew_acknowledge_enable"] = "false"
    yield from ready(random, **settings)
    life = _Life(random, stage)
    for number in range(random.randrange(25, 60)):
        yield from life.step()
        if short_locks and number % 12 == 11:
            yield Sleep(2500)
            life.acquired.clear()
            life.settled = True
    if random.random() < 0.2:
        yield from life.end()
    elif stage.restarts and random.random() < 0.03:
        yield Restart()
        yield from load(500)
        life.restarted()
        for _ in range(15):
            yield from life.step()


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
    "wait": 2,
    "odd": 3,
}
_WAIT_MS = 30_000


class _Life:
    """Members, each with a connection, and what they have acquired."""

    def __init__(self, random: Random, stage: Stage) -> None:
        self.random = random
        self.strange = [*_STRANGE, *_NOWHERE] if stage.newest else _STRANGE
        self.members = _CROWD if random.random() < 0.1 else _MEMBERS[: random.choice([1, 2, 2, 3])]
        self.acquired: dict[str, list[Run]] = {}
        # Apache Kafka keeps locks of a session on partitions that have left it, ours releases them when the
        # session ends: such partitions stay in the session
        self.touched: dict[str, set[tuple[str, int]]] = {}
        # if a connection has several sessions, Apache Kafka ends the last one with it: connections that end
        # have one session
        self.elsewhere: set[str] = set()
        # if a response has records of several partitions, their order comes from a hash table there: limits
        # are only used in sessions with one partition
        self.alone = random.random() < 0.4
        self.settled = False
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
                    yield acknowledge(connection, member, LAST, topics)
                else:
                    yield from self._fetch(connection, member, LAST, topics)
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
            case "wait":
                yield from self._wait(connection, member)
            case "odd":
                yield from self._odd(connection, member)

    def end(self) -> Scenario:
        """What Apache Kafka goes on differently after."""
        random = self.random
        member = random.choice(self.members)
        connection = f"c{member[-2:]}"
        match random.randrange(3):
            case 0:
                yield delete_topics("~bills")
                yield from self._fetch(connection, member, self._epoch(connection, member), self._wanted())
            case 1:
                strange: Topics = [(*random.choice(_NOWHERE), [])]
                yield from self._fetch(connection, member, self._epoch(connection, member), strange)
            case _:
                yield fetch("strange", LOADER, 0, [("#orders", 0, [])], share_acquire_mode=2)
                yield Close("strange")  # it has opened a session on that connection

    def restarted(self) -> None:
        """The brokers began anew: no session is left, and nothing is acquired."""
        self.acquired.clear()
        self.touched.clear()
        self.elsewhere.clear()

    def _ended(self, member: str) -> None:
        self.settled = True
        self.acquired.pop(member, None)
        self.touched.pop(member, None)

    def _epoch(self, connection: str, member: str, plus: int = 0) -> dict[str, Any]:
        return session(connection, member, plus)

    def _wanted(self) -> Topics:
        """Partitions to fetch: often none new, as in a session."""
        random = self.random
        wanted = random.sample(self.partitions, min(len(self.partitions), random.choice([0, 0, 1, 1, 2, 3])))
        if random.random() < 0.06:
            wanted.append(random.choice(self.strange))
        return [(topic, partition, []) for topic, partition in wanted]

    def _again(self, member: str) -> Topics:
        """Partitions to open a session with: those that it had records of, and others."""
        return [
            (topic, partition, []) for topic, partition in sorted(self.touched.get(member, ()))
        ] + self._wanted()

    def _acknowledged(self, member: str) -> Topics:
        """Acknowledgements of some of what the member has, mostly right ones."""
        random = self.random
        held = self.acquired.get(member, [])
        if not held:
            return [("#orders", 0, [batch(0, 0, [1])])] if random.random() < 0.2 else []
        self.settled = True
        topic, partition, first, last = held.pop(random.randrange(len(held)))
        kind = weighted(random, {1: 8, 2: 4, 3: 3, 4: 2, 0: 0.5, 9: 0.2})
        if random.random() < 0.3 and last > first:
            middle = random.randrange(first, last)
            return [(topic, partition, [batch(first, middle, [kind]), batch(middle + 1, last, [1])])]
        if random.random() < 0.2:
            kinds = [random.choice([1, 1, 2, 3, 0]) for _ in range(first, last + 1)]
            return [(topic, partition, [batch(first, last, kinds)])]
        if random.random() < 0.15:
            last = random.choice([last + 1, last + 5, first, first - 1])
        return [(topic, partition, [batch(first, last, [kind])])]

    def _settle(self, connection: str, member: str) -> Scenario:
        yield acknowledge(
            connection, member, self._epoch(connection, member), self._acknowledged(member), self.random
        )

    def _fetch(self, connection: str, member: str, epoch: Any, topics: Topics) -> Generator[Step, Any, bool]:
        """Fetches; whether that was served."""
        random = self.random
        if connection == "other":
            topics = [*topics, *self._again(member)]
        touched = self.touched.setdefault(member, set())
        may_go = [each for each in _PARTITIONS[1:] if each not in touched]
        forgotten = random.sample(may_go, min(len(may_go), random.choice([0] * 8 + [1, 2])))
        ask = fetch(
            connection,
            member,
            epoch,
            topics,
            forgotten=forgotten,
            version=random.choice([1, 2, 2, 2]),
            **self._limits(),
            batch_size=random.choice([500, 500, 1, 2]) if random.random() < 0.3 else 500,
            is_renew_ack=random.random() < 0.04,
            min_bytes=random.choice([0, 1, 1, 1]),
        )
        if releases(ask):
            ask.fields["max_records"] = 0
        answer = yield ask
        self._took(member, answer)
        return isinstance(answer, dict) and answer["error_code"] == 0

    def _wait(self, connection: str, member: str) -> Scenario:
        """A fetch that waits, as those of clients do, until records come, or none."""
        random = self.random
        topic, partition = random.choice(self.partitions)
        topics: Topics = [(topic, partition, []), *self._wanted()]
        count = random.choice([0, 1, 1, 2])
        ask = fetch(
            connection,
            member,
            self._epoch(connection, member),
            [*self._acknowledged(member), *topics] if random.random() < 0.5 else topics,
            version=random.choice([1, 2, 2]),
            max_wait_ms=_WAIT_MS if count else 300,
            max_records=random.choice([500, 500, 1]) if self.alone else 500,
        )
        if releases(ask):
            return
        yield Ask(ask.api, ask.version, ask.fields, ask.on, later=True)
        if count:
            yield produce(topic[1:], partition, ["awaited"] * count)
        answer = yield Answer(connection)
        self._took(member, answer)

    def _odd(self, connection: str, member: str) -> Scenario:
        """What no client would ask for: twice the same, nothing at all, less than none."""
        random = self.random
        is_open = yield from self._fetch(
            connection, member, self._epoch(connection, member), self._again(member)
        )
        if not is_open:
            return  # a new session may not name a partition twice
        epoch = self._epoch(connection, member)
        match random.randrange(6):
            case 0:
                ask = acknowledge(connection, member, epoch, self._acknowledged(member))
                yield _twice(random, ask)
            case 1:
                yield _twice(random, fetch(connection, member, epoch, self._wanted()))
            case 2:
                strange = random.sample([*_STRANGE, *_NOWHERE], 2)
                yield fetch(connection, member, epoch, [], forgotten=strange)
            case 3:
                yield fetch(connection, member, epoch, [], max_records=random.choice([0, -1]))
            case 4:
                topics = self._acknowledged(member)
                topics = [(topic, partition, []) for topic, partition, _ in topics]
                yield acknowledge(connection, member, epoch, topics)
            case _:
                name, value = random.choice(
                    [
                        ("group_id", None),
                        ("member_id", None),
                        ("group_id", ""),
                        ("member_id", ""),
                        ("member_id", "x" * 40),
                    ]
                )
                opens, wanted = random.choice([0, 1, LAST]), self._wanted()
                ask = fetch("odd", member, opens, wanted)
                if random.random() < 0.5:
                    ask = acknowledge("odd", member, opens, wanted)
                yield Ask(ask.api, ask.version, ask.fields | {name: value}, "odd")

    def _took(self, member: str, answer: Any) -> None:
        """What an answer has given to a member."""
        touched = self.touched.setdefault(member, set())
        held = self.acquired.setdefault(member, [])
        for topic, partition, first, last in acquired(answer):
            touched.add((topic.partition("/")[0], partition))
            held.append((topic, partition, first, last))

    def _limits(self) -> dict[str, int]:
        """How much to fetch: fewer bytes only as long as all that is read is acquired, too."""
        random = self.random
        limits = {
            "share_acquire_mode": weighted(random, {0: 12, 1: 3}),
            "max_records": 500,
            "max_bytes": 1 << 20,
        }
        if self.alone:
            limits["max_records"] = random.choice([500, 500, 1, 2, 3])
            if random.random() < 0.5:
                limits["max_bytes"] = random.choice([1] if self.settled else [1, 90, 200, 300])
        return limits

    def _bad(self, connection: str, member: str) -> Scenario:
        """Requests that no client would send."""
        random = self.random
        self.settled = True
        epoch = self._epoch(connection, member)
        held = next(iter(self.acquired.get(member, [])), ("#orders", 0, 0, 2))
        topic, partition, first, last = held
        batches = random.choice(
            [
                [batch(first, last, [])],
                [batch(last, first - 1, [1])],
                [batch(first, last, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1])],
                [batch(first, last, [1]), batch(first, last, [1])],
                [batch(last + 1, last + 2, [1]), batch(first, last, [1])],
                [batch(-1, 0, [1])],
                [batch(first, last, [-1])],
                [batch(100, 200, [1])],
            ]
        )
        match random.randrange(5):
            case 0:
                yield acknowledge(connection, member, epoch, [(topic, partition, batches)])
            case 1:
                yield from self._fetch(connection, member, epoch, [(topic, partition, batches)])
            case 2:
                yield from self._fetch(connection, member, 0, [(topic, partition, batches)])
            case 3:
                ask = fetch(connection, member, epoch, self._wanted())
                name = random.choice(["group_id", "member_id"])
                value = random.choice(["~nobody", "not a uuid"])
                yield Ask(ask.api, ask.version, ask.fields | {name: value}, "bad")
            case _:
                strange = [(*random.choice([*_STRANGE, *_NOWHERE]), [batch(0, 0, [1])])]
                yield acknowledge(connection, member, random.choice([epoch, 0]), strange)


def _twice(random: Random, ask: Ask) -> Ask:
    """Return a request that names its topics, or their partitions, twice."""
    topics = ask.fields["topics"]
    if random.random() < 0.5:
        topics = [*topics, *topics]
    else:
        topics = [topic | {"partitions": topic["partitions"] * 2} for topic in topics]
    return Ask(ask.api, ask.version, ask.fields | {"topics": topics}, ask.on)
