"""Queue settings of groups: what a seed draws, and which ones may be in force at a time."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

ORDER, WAITS, BOUNDS, CHANGES = "order", "waits", "bounds", "queue administrators"
FEATURES = (ORDER, WAITS, BOUNDS, CHANGES)
DELIVER_AT, TTL, KEY = "at", "ttl", "k"
"""Headers of records."""
RATE, TAKEOVER_WAIT = "share.records.per.second", "share.ordering.takeover.wait"
PLAIN: dict[str, object] = {
    "share.ordering": "none",
    "share.ordering.key.header": "",
    "share.ordering.run.max": 1,
    TAKEOVER_WAIT: "false",
    "share.retry.backoff.ms": 0,
    "share.retry.backoff.max.ms": 300_000,
    "share.retry.backoff.multiplier": 2.0,
    "share.retry.backoff.jitter": 0.2,
    "share.retry.backoff.on": "release,timeout",
    "share.partition.max.waiting": 16_000,
    "share.deliver.at.header": "",
    "share.record.ttl.ms": -1,
    "share.record.ttl.header": "",
    "share.paused": "false",
    "share.paused.until.ms": 0,
    "share.member.max.record.locks": 0,
    "share.records.per.second": 0,
    "share.topic.weights": "",
    "share.breaker.percent": 0,
    "share.breaker.window.ms": 60_000,
    "share.breaker.min.records": 100,
    "share.breaker.pause.ms": 60_000,
    "share.record.lock.keep": "none",
    "share.record.lock.keep.max.ms": 3_600_000,
}
"""Every setting; each alteration names all of them, so that nothing is left of one whose answer was lost."""


def drawn(chance: random.Random, features: Iterable[str], wall_ms: int) -> dict[str, object]:
    """Settings of a group, by what is on."""
    found, on = dict(PLAIN), set(features)
    if ORDER in on:
        ordering = chance.choice(["key", "key", "partition", "none"])
        found["share.ordering"] = ordering
        found["share.ordering.run.max"] = chance.choice([1, 1, 3, 8])
        if ordering == "key":
            found["share.ordering.key.header"] = chance.choice(["", "", KEY])
    if WAITS in on:
        found["share.retry.backoff.ms"] = chance.choice([0, 200, 1_000])
        found["share.retry.backoff.max.ms"] = chance.choice([1_000, 4_000])
        found["share.retry.backoff.multiplier"] = chance.choice([1.0, 2.0, 3.0])
        found["share.retry.backoff.jitter"] = chance.choice([0.0, 0.2])
        found["share.retry.backoff.on"] = chance.choice(["release,timeout", "release", "timeout"])
        found["share.deliver.at.header"] = chance.choice(["", DELIVER_AT, DELIVER_AT])
        found["share.record.ttl.ms"] = chance.choice([-1, -1, -1, 8_000])
        found["share.record.ttl.header"] = chance.choice(["", "", TTL])
    if on & {ORDER, WAITS}:
        found["share.partition.max.waiting"] = chance.choice([1_000, 3_000, 16_000])
    if BOUNDS in on:
        found |= _bounds(chance, wall_ms)
    return found


def _bounds(chance: random.Random, wall_ms: int) -> dict[str, object]:
    """What keeps records from members that are ready."""
    paused = chance.random()
    return {
        "share.paused": "true" if paused < 0.1 else "false",
        "share.paused.until.ms": wall_ms + 2_000 if 0.1 < paused < 0.25 else 0,
        "share.member.max.record.locks": chance.choice([0, 0, 2, 10]),
        "share.records.per.second": chance.choice([0, 0, 0, 4, 30]),
        "share.topic.weights": chance.choice(["", "", "first:3,second:1"]),
        "share.breaker.percent": chance.choice([0, 0, 30, 70]),
        "share.breaker.window.ms": 5_000,
        "share.breaker.min.records": 8,
        "share.breaker.pause.ms": chance.choice([1_000, 2_000]),
        "share.record.lock.keep": chance.choice(["none", "none", "connected"]),
        "share.record.lock.keep.max.ms": chance.choice([6_000, 10_000]),
    }


def drawn_for_tier(chance: random.Random, features: Iterable[str]) -> dict[str, object]:
    """Settings of a group, by what is on: of the bounds those that each node keeps by itself."""
    on = set(features)
    found = drawn(chance, on - {BOUNDS}, 0)
    if found["share.ordering"] != "none":
        found[TAKEOVER_WAIT] = chance.choice(["false", "true"])
    if BOUNDS in on:
        found |= {"share.member.max.record.locks": chance.choice([0, 2, 10]), RATE: chance.choice([0, 4, 30])}
    return found


def calm(settings: Mapping[str, object], *, jumped: bool) -> dict[str, object]:
    """The same without what may keep records for good, or longer than the end of a simulation waits."""
    kept = [name for name in settings if name.startswith(("share.ordering", "share.retry"))]
    found = PLAIN | {name: settings[name] for name in kept}
    if not jumped:
        found["share.deliver.at.header"] = settings["share.deliver.at.header"]
    found["share.member.max.record.locks"] = settings["share.member.max.record.locks"]
    return found


@dataclass(frozen=True)
class Queue:
    """What a group's settings say; a record of each kind of promise that the auditor checks."""

    ordering: str = "none"
    key_header: str = ""
    run_max: int = 1
    waits_after_takeovers: bool = False
    backoff_ms: int = 0
    backoff_max_ms: int = 300_000
    multiplier: float = 2.0
    on: str = "release,timeout"
    deliver_at: str = ""
    ttl_ms: int = -1
    ttl_header: str = ""
    paused: bool = False
    until_ms: int = 0
    member_max: int = 0
    rate: int = 0
    keep: bool = False
    keep_max_ms: int = 3_600_000

    @classmethod
    def of(cls, settings: Mapping[str, object]) -> Queue:
        """Reads settings as a group has them; what is missing is Kafka's default, or ours."""
        text = {name: str(value) for name, value in (PLAIN | dict(settings)).items()}
        return cls(
            ordering=text["share.ordering"],
            key_header=text["share.ordering.key.header"],
            run_max=int(text["share.ordering.run.max"]),
            waits_after_takeovers=text[TAKEOVER_WAIT] == "true",
            backoff_ms=int(text["share.retry.backoff.ms"]),
            backoff_max_ms=int(text["share.retry.backoff.max.ms"]),
            multiplier=float(text["share.retry.backoff.multiplier"]),
            on=text["share.retry.backoff.on"],
            deliver_at=text["share.deliver.at.header"],
            ttl_ms=int(text["share.record.ttl.ms"]),
            ttl_header=text["share.record.ttl.header"],
            paused=text["share.paused"] == "true",
            until_ms=int(text["share.paused.until.ms"]),
            member_max=int(text["share.member.max.record.locks"]),
            rate=int(text["share.records.per.second"]),
            keep=text["share.record.lock.keep"] == "connected",
            keep_max_ms=int(text["share.record.lock.keep.max.ms"]),
        )

    def wait_s(self, count: int, cause: str) -> float:
        """How long a record waits at least that was delivered so often and came back for a cause."""
        if (
            not self.backoff_ms
            or count < 1
            or cause == "session"
            or (cause != "load" and cause not in self.on)
        ):
            return 0.0
        longest = float(max(self.backoff_ms, self.backoff_max_ms))
        return min(longest, self.backoff_ms * self.multiplier ** (count - 1)) / 1000


class Settings:
    """The settings of one group that may be in force, over time.

    Args:
        lag_s: how long those who do not lead may take to know of a change.
    """

    def __init__(self, lag_s: float = 0.0) -> None:
        self._lag_s = lag_s
        self._possible: list[dict[str, object]] = [{}]
        self._spans: list[tuple[float, frozenset[Queue]]] = [(0.0, frozenset({Queue()}))]
        self._is_lost = False

    def asked(self, now: float, change: Mapping[str, object]) -> None:
        """Somebody alters settings: they may take effect."""
        self._possible += [{**each, **change} for each in self._possible]
        self._note(now)

    def answered(self, now: float, change: Mapping[str, object]) -> None:
        """They are in force."""
        if change.keys() >= PLAIN.keys():
            self._is_lost = False
        self._possible = [{**each, **change} for each in self._possible]
        self._note(now)

    def known(self) -> None:
        """All who may lead know what is in force: nothing else has been since the beginning."""
        self._spans = [(0.0, self._spans[-1][1])]

    def lose(self, now: float) -> None:
        """The disk may have lost any of them."""
        self._is_lost = True
        self._note(now)

    def _note(self, now: float) -> None:
        unique = {tuple(sorted((k, str(v)) for k, v in each.items())): each for each in self._possible}
        self._possible = list(unique.values())
        found = frozenset() if self._is_lost else frozenset(map(Queue.of, self._possible))
        self._spans.append((now, found))

    def over(self, begin: float, end: float) -> list[Queue]:
        """All that may have been in force at some moment; none where nobody knows."""
        found: set[Queue] = set()
        begin -= self._lag_s
        for at, (since, queues) in enumerate(self._spans):
            until = self._spans[at + 1][0] if at + 1 < len(self._spans) else float("inf")
            if since <= end and until >= begin:
                if not queues:
                    return []
                found |= queues
        return list(found)

    def ever(self) -> set[Queue]:
        """All that may ever have been in force."""
        return {queue for _, queues in self._spans for queue in queues}

    def ever_lost(self) -> bool:
        """Whether nobody knew them at some time."""
        return any(not queues for _, queues in self._spans)
