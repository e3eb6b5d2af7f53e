"""What clients see that take more than their quotas give: how long they wait, and what they get meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from typing import Any, NamedTuple

from tests.differential.access.brokers import Guarded
from tests.differential.access.matrix import make_topics
from tests.differential.quotas.requests import Part
from tests.harness.batches import batch
from tests.harness.wire import Peer

from sharecore.protocol import ApiKey as A
from sharecore.protocol import codec

LEVELS = 8
TOPIC, READ = "bytes", "read"
BATCH_BYTES = 18_000
USERS = tuple(f"user-{number}" for number in range(40))
_SETTLED_S = 0.15
"""After so long Apache Kafka's broker has heard of a quota from its controller."""


class Seen(NamedTuple):
    """One observation; `waits_ms` is compared with as much room as the requests took, all else exactly."""

    name: str
    waits_ms: int
    took_ms: int
    rest: Any = None


class Observer:
    """Plays the scenarios on one broker."""

    def __init__(self, broker: Guarded) -> None:
        self.broker = broker
        self._users = iter(USERS)
        self._changes = count()
        self._open = ExitStack()
        self._began = 0.0

    def observe(self) -> list[Seen]:
        """All that is compared."""
        make_topics(self.broker, [TOPIC, READ])
        with self._open:
            return [
                *self._precedence(),
                *self._produced(),
                *self._fetched(),
                *self._timed(),
                *self._mutations(),
            ]

    def _precedence(self) -> Iterator[Seen]:
        """Which of several quotas counts: each has a bound of its own, and they go one by one."""
        for level in range(LEVELS):
            user = self._user()
            client = f"client-of-{user}"
            who, what = ("user", user), ("client-id", client)
            everyone, everything = ("user", None), ("client-id", None)
            levels: list[list[Part]] = [
                [who, what],
                [who, everything],
                [who],
                [everyone, what],
                [everyone, everything],
                [everyone],
                [what],
                [everything],
            ]
            entries = [(levels[each], float(1000 + 100 * each)) for each in range(level, LEVELS)]
            self._set("producer_byte_rate", *entries)
            peer = self._connect(user)
            self._produce(peer, client, 9_000)
            yield self._seen(f"level {level}", self._produce(peer, client, 9_000))
            self._unset("producer_byte_rate", *entries)

    def _produced(self) -> Iterator[Seen]:
        user = self._user()
        self._set("producer_byte_rate", ([("user", user)], 10_000.0))
        peer, other, silent = self._connect(user), self._connect(user), self._connect(user)
        yield self._seen("within", self._produce(peer, "a", 60_000))
        told_ms = self._produce(peer, "a", 50_000)
        yield self._seen("beyond", told_ms)
        yield self._seen("the next request waits", 0, self._is_held_back(peer, told_ms))
        yield self._seen("another connection of the user's", self._produce(other, "b", 20_000))
        yield self._seen("somebody else", self._produce(self._connect(self._user()), "a", 50_000))
        self._produce(silent, "a", 5_000, acks=0)
        yield self._seen("one without an answer", 0, self._is_held_back(silent, 500))

    def _is_held_back(self, peer: Peer, told_ms: int) -> bool:
        """Whether the next request is answered no sooner than was told, but for what is lost on the way."""
        began = time.monotonic()
        self._versions(peer)
        return (time.monotonic() - began) * 1000 >= told_ms * 0.7

    def _fetched(self) -> Iterator[Seen]:
        filler = self._connect(self._user())
        for _ in range(8):
            self._produce(filler, "a", BATCH_BYTES, topic=READ)
        user = self._user()
        self._set("consumer_byte_rate", ([("user", user)], 10_000.0))
        peer = self._connect(user)
        yield self._fetch("fetch within", peer, 3)
        yield self._fetch("fetch beyond", peer, 4)
        yield self._fetch("and once more", self._connect(user), 2)

    def _timed(self) -> Iterator[Seen]:
        user = self._user()
        self._set("request_percentage", ([("user", user)], 1e-6))
        peer = self._connect(user)
        told_ms = self._versions(peer)
        yield self._seen("time", told_ms, self._is_held_back(peer, told_ms))
        yield self._fetch("fetch of one without time", self._connect(user), 1)

    def _mutations(self) -> Iterator[Seen]:
        """Of eleven seconds' worth; how many topics get through does not hang on a second more or less."""
        names = [f"mutant-{number}" for number in range(5)]
        for create, grow, delete in ((7, 3, 6), (5, 2, 4)):
            looked_at = [f"{name}-v" for name in names[:3]]
            yield self._create(f"looked at v{create}", self._mutant(1.0), create, looked_at, validate=True)
            yield self._create(
                f"created v{create}", self._mutant(1.0), create, [f"{name}-{create}" for name in names]
            )
            made = [f"grown-{create}-{number}" for number in range(5)]
            make_topics(self.broker, made)
            more = [{"name": name, "count": 5, "assignments": None} for name in made]
            answer = self._ask(
                self._mutant(0.5),
                A.CREATE_PARTITIONS,
                grow,
                topics=more,
                timeout_ms=5000,
                validate_only=False,
            )
            codes = sorted(each.error_code for each in answer.results)
            yield self._seen(f"grown v{grow}", answer.throttle_time_ms, codes)
            gone = [f"gone-{create}-{number}" for number in range(5)]
            make_topics(self.broker, gone)
            topics: dict[str, Any] = {"topics": [{"name": name, "topic_id": None} for name in gone]}
            if delete < 6:
                topics = {"topic_names": gone}
            answer = self._ask(self._mutant(0.1), A.DELETE_TOPICS, delete, timeout_ms=5000, **topics)
            codes = sorted(each.error_code for each in answer.responses)
            yield self._seen(f"deleted v{delete}", answer.throttle_time_ms, codes)

    def _mutant(self, rate: float) -> Peer:
        user = self._user()
        self._set("controller_mutation_rate", ([("user", user)], rate))
        return self._connect(user)

    def _create(
        self, name: str, peer: Peer, version: int, names: list[str], *, validate: bool = False
    ) -> Seen:
        topics = [
            {"name": name, "num_partitions": 5, "replication_factor": 1, "assignments": [], "configs": []}
            for name in names
        ]
        answer = self._ask(
            peer, A.CREATE_TOPICS, version, topics=topics, timeout_ms=5000, validate_only=validate
        )
        codes = sorted((each.error_code, each.error_message) for each in answer.topics)
        return self._seen(name, answer.throttle_time_ms, codes)

    def _fetch(self, name: str, peer: Peer, batches: int) -> Seen:
        size = batches * len(_records(BATCH_BYTES))
        part = {
            "partition": 0,
            "fetch_offset": 0,
            "partition_max_bytes": size,
            "current_leader_epoch": -1,
            "last_fetched_epoch": -1,
            "log_start_offset": -1,
        }
        answer = self._ask(
            peer,
            A.FETCH,
            12,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=size,
            isolation_level=0,
            session_id=0,
            session_epoch=-1,
            topics=[{"topic": READ, "partitions": [part]}],
            forgotten_topics_data=[],
            rack_id="",
        )
        sizes = [len(part.records or b"") for topic in answer.responses for part in topic.partitions]
        return self._seen(name, answer.throttle_time_ms, (answer.error_code, sizes))

    def _seen(self, name: str, waits_ms: int, rest: Any = None) -> Seen:
        return Seen(name, waits_ms, int((time.monotonic() - self._began) * 1000), rest)

    def _produce(self, peer: Peer, client: str, size: int, acks: int = 1, topic: str = TOPIC) -> int:
        records = _records(size)
        fields = {
            "transactional_id": None,
            "acks": acks,
            "timeout_ms": 5000,
            "topic_data": [{"name": topic, "partition_data": [{"index": 0, "records": records}]}],
        }
        if not acks:
            peer.socket.sendall(codec(A.PRODUCE, 9).write_request(7, client, fields))
            return 0
        answer = self.broker.exchange(peer, A.PRODUCE, 9, fields, client)
        assert answer.responses[0].partition_responses[0].error_code == 0, answer
        waits_ms: int = answer.throttle_time_ms
        return waits_ms

    def _versions(self, peer: Peer) -> int:
        answer = self._ask(peer, A.API_VERSIONS, 3, client_software_name="a", client_software_version="1")
        waits_ms: int = answer.throttle_time_ms
        return waits_ms

    def _ask(self, peer: Peer, key: A, version: int, **fields: Any) -> Any:
        return self.broker.exchange(peer, key, version, fields, "a")

    def _user(self) -> str:
        return next(self._users)

    def _connect(self, user: str) -> Peer:
        return self._open.enter_context(self.broker.connect(user))

    def _set(self, key: str, *entries: tuple[list[Part], float]) -> None:
        self._alter([(entity, {"key": key, "value": value, "remove": False}) for entity, value in entries])

    def _unset(self, key: str, *entries: tuple[list[Part], float]) -> None:
        self._alter([(entity, {"key": key, "value": 0.0, "remove": True}) for entity, _ in entries])

    def _alter(self, changes: list[tuple[list[Part], dict[str, Any]]]) -> None:
        wanted = [
            {
                "entity": [{"entity_type": kind, "entity_name": who} for kind, who in entity],
                "ops": [operation],
            }
            for entity, operation in changes
        ]
        answer = self.broker.super(A.ALTER_CLIENT_QUOTAS, 1, entries=wanted, validate_only=False)
        assert {each.error_code for each in answer.entries} == {0}, answer
        # changes without an answer take effect in order, so once this one is visible, so is the one before
        make_topics(self.broker, [f"behind-{next(self._changes)}"])
        time.sleep(_SETTLED_S)
        self._began = time.monotonic()


def _records(size: int) -> bytes:
    found: bytes = batch([bytes(1000)] * (size // 1000))
    return found
