"""The simulated cluster: its brokers, what each of them believes, its topics, groups and producers."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextvars import copy_context
from dataclasses import dataclass, field

from tests.simulation.story import Story
from tests.simulation.tier.groups import Group
from tests.simulation.tier.log import Log, Refused
from tests.simulation.tier.network import TierNetwork
from tests.simulation.tier.processes import Paced, TierLoop

from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey
from sharecore.upstream.apis import SPOKEN

PORT = 9000
BROKERS = 3
CLUSTER_ID = "simulated"
_MIN_IN_SYNC = 2
_WITHOUT_IDS = {ApiKey.METADATA: (7, 8), ApiKey.FETCH: (11, 11), ApiKey.FIND_COORDINATOR: (2, 3)}

Place = tuple[str, int]


@dataclass
class Topic:
    """A topic.

    Attributes:
        topic_id: the cluster's, whether or not it tells it.
    """

    name: str
    topic_id: uuid.UUID
    logs: list[Log]
    settings: Mapping[str, str]


@dataclass(frozen=True)
class Kind:
    """What sort of cluster it is."""

    topic_ids: bool = True
    checks_epochs: bool = True
    deletes_records: bool = True


@dataclass
class Pace:
    """How quick the cluster is, in seconds at most."""

    service_s: float = 0.002
    replication_s: float = 0.003
    slow: set[int] = field(default_factory=set)
    """Brokers that take their time."""


class Broker:
    """One broker: a process, and its picture of who leads what."""

    def __init__(self, cluster: Cluster, node: int) -> None:
        self.node = node
        self.site = f"broker {node}"
        self.process = Paced(self.site)
        self.context = self.process.context
        self.sessions: dict[int, object] = {}
        self.leaders: dict[Place, tuple[int, int]] = {}
        self.live: set[int] = set()
        self.up = True
        self.heard_at = 0.0
        self._cluster = cluster

    def accept(self) -> asyncio.Protocol:
        """A connection came."""
        return self._cluster.talk(self)


class Cluster:
    """Brokers, topics, coordinators.

    Args:
        chance: of what it draws.
        talk: makes what speaks on a connection.

    Attributes:
        versions: the APIs that are offered.
        late_requests: share of requests that a broker works on late, as one whose disk or processor is
            busy: what is sent again meanwhile, on another connection, comes before them.
        forgetful: what comes late meets a leader that knows no producer any more, now and then.
        lost_answers, late_answers: share of answers that go so.
        refused: static members that are let nowhere now, by their instance ids.
        on_append: called with each batch that was appended: the log, and its place among the log's batches.
        on_cut: called when a log has lost its end: the log, where it ended before, and whether all replicas
            in sync should have had what is gone.
    """

    def __init__(
        self,
        loop: TierLoop,
        network: TierNetwork,
        story: Story,
        chance: random.Random,
        kind: Kind,
        talk: Callable[[Broker], asyncio.Protocol],
    ) -> None:
        self.loop, self.network, self.story, self.chance = loop, network, story, chance
        self.kind = kind
        self.pace = Pace()
        self.talk = talk
        self.forgetful = False
        self.late_requests = self.lost_answers = self.late_answers = 0.0
        self.topics: dict[str, Topic] = {}
        self.groups: dict[str, Group] = {}
        self.producers: dict[str, tuple[int, int]] = {}
        self.coordinators: dict[str, int] = {}
        self.deposed: dict[tuple[str, int], tuple[float, frozenset[str]]] = {}
        self.loading: dict[str, float] = {}
        self.refused: dict[str, ErrorCode] = {}
        self.on_append: Callable[[Log, int], object] = lambda log, index: None
        self.on_cut: Callable[[Log, int, bool], object] = lambda log, before, lost: None
        self.waiting: list[Callable[[], bool]] = []
        self._producer = 1000
        self._number = 0
        self._waking = False
        self._context = copy_context()
        self.versions = dict(SPOKEN)
        if not kind.topic_ids:
            self.versions |= _WITHOUT_IDS
        if not kind.deletes_records:
            del self.versions[ApiKey.DELETE_RECORDS]
        self.brokers = [Broker(self, node) for node in range(BROKERS)]
        for broker in self.brokers:
            loop.processes.append(broker.process)
            network.sites[PORT + broker.node] = broker.site
            network.brokers[PORT + broker.node] = broker
        self.told_all()

    def later(self, seconds: float, callback: Callable[..., object], *args: object) -> asyncio.TimerHandle:
        """Calls back, whichever brokers live then."""
        return self.loop.call_later(seconds, callback, *args, context=self._context)

    @property
    def bootstrap(self) -> str:
        return ",".join(f"kafka:{PORT + node}" for node in range(BROKERS))

    @property
    def live(self) -> list[int]:
        """The brokers that run."""
        return [broker.node for broker in self.brokers if broker.up]

    # topics

    def create(self, name: str, partitions: int, settings: Mapping[str, str] | None = None) -> Topic:
        """A topic, under another id than any before."""
        self._number += 1
        topic_id = uuid.uuid5(uuid.UUID(int=7), f"{name} {self._number}")
        logs = [self._log(name, index) for index in range(partitions)]
        topic = self.topics[name] = Topic(name, topic_id, logs, settings or {})
        self.tell(*((name, index) for index in range(partitions)))
        return topic

    def grow(self, name: str, partitions: int) -> None:
        """A topic has more partitions from now on."""
        logs = self.topics[name].logs
        for index in range(len(logs), partitions):
            logs.append(self._log(name, index))
            self.tell((name, index))

    def _log(self, topic: str, index: int) -> Log:
        """A new partition; where no broker is there the first that comes leads it."""
        live = self.live or [-1]
        return Log(topic, index, checks_epochs=self.kind.checks_epochs, leader=live[index % len(live)])

    def delete(self, name: str) -> None:
        """A topic is no more."""
        topic = self.topics.pop(name)
        for broker in self.brokers:
            for log in topic.logs:
                broker.leaders.pop((name, log.index), None)
        self.wake()

    def log(self, place: Place) -> Log | None:
        topic = self.topics.get(place[0])
        return topic.logs[place[1]] if topic is not None and 0 <= place[1] < len(topic.logs) else None

    def logs(self) -> Iterator[Log]:
        for topic in self.topics.values():
            yield from topic.logs

    # appending

    def append(self, log: Log, data: bytes, done: Callable[[ErrorCode, int], None]) -> None:
        """Appends a batch at the leader; `done` once all replicas in sync have it, or never will."""
        if log.leader < 0:
            done(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
            return
        if len(self.live) < _MIN_IN_SYNC:
            done(ErrorCode.NOT_ENOUGH_REPLICAS, -1)
            return
        before = log.end
        try:
            base = log.append(data)
        except Refused as refused:
            done(refused.code, -1)
            return
        last = log.end - 1 if base == before else base
        if base == before:
            self.on_append(log, len(log.batches) - 1)
        if last < log.high:
            done(ErrorCode.NONE, base)
            return
        log.waiting.append((last, lambda code: done(code, base)))
        if base == before:
            self._replicate(log, log.end)

    def _replicate(self, log: Log, end: int) -> None:
        took = self.chance.uniform(0, self.pace.replication_s)
        if self.pace.slow:
            took += self.chance.choice([0.0, 0.05, 1.5])
        epoch = log.epoch

        def arrived() -> None:
            if log.epoch == epoch and log.leader >= 0:
                log.replicated(end)
                self.wake()

        self.later(took, arrived)

    def wake(self) -> None:
        """Whoever waits at a broker for something looks again, soon."""
        if not self._waking and self.waiting:
            self._waking = True
            self.loop.call_soon(self._look, context=self._context)

    def _look(self) -> None:
        self._waking = False
        waiting, self.waiting = self.waiting, []
        self.waiting = [waits for waits in waiting if not waits()] + self.waiting

    # elections

    def elect(self, log: Log, leader: int, *, keep: bool | None = None) -> None:
        """Another broker leads a partition, or nobody (-1)."""
        if leader < 0:
            log.deposed[log.leader] = log.high
            log.leader = -1
            self.tell((log.topic, log.index))
            return
        behind = self.chance.choice([0, 0, 1, 3]) if log.high > log.start else 0
        kept = self.chance.random() < 0.5 if keep is None else keep
        before = log.end
        log.elect(leader, keep=kept, shown=log.high - behind)
        if log.end < before:
            self.on_cut(log, before, False)
        self.tell((log.topic, log.index))
        epoch = log.epoch

        def known() -> None:
            """The followers have told how far they are."""
            if log.epoch == epoch and log.leader >= 0:
                log.replicated(log.end)
                self.wake()

        self.later(self.chance.uniform(0, 0.3), known)

    def lose(self, log: Log, count: int) -> None:
        """A broker that lacks the newest batches is elected all the same."""
        batches = [batch for batch in log.batches if batch.last < log.high]
        if not batches:
            return
        offset = batches[-min(count, len(batches))].base
        before = log.end
        end = log.truncate(self.chance.choice(self.live), offset)
        self.story.tell("cluster", f"{log.topic}-{log.index} is led by one that lacks offsets from {end} on")
        self.on_cut(log, before, True)
        self.tell((log.topic, log.index))
        self.wake()

    def tell(self, *places: Place) -> None:
        """Brokers hear of topics and who leads them: some at once, some later, each in the order of time."""
        for broker in self.brokers:
            late = self.loop.now + self.chance.choice([0.0, 0.0, 0.05, 1.0])
            broker.heard_at = max(broker.heard_at, late)
            self.later(broker.heard_at - self.loop.now, self._hear, broker, places)

    def _hear(self, broker: Broker, places: tuple[Place, ...]) -> None:
        broker.live = {each.node for each in self.brokers if each.up}
        for place in places:
            log = self.log(place)
            if log is not None:
                broker.leaders[place] = log.leader, log.epoch

    def told_all(self) -> None:
        """Every broker knows everything."""
        places = tuple((log.topic, log.index) for log in self.logs())
        for broker in self.brokers:
            self._hear(broker, places)

    # brokers

    def kill(self, node: int) -> None:
        """A broker is gone; some time later others lead what it led."""
        broker = self.brokers[node]
        if not broker.up:
            return
        broker.up = False
        self.loop.end(broker.process)
        del self.network.brokers[PORT + node]
        self.network.ended(broker.site)
        self.later(self.chance.uniform(0.05, 1.5), self._replace, broker)

    def _replace(self, broker: Broker) -> None:
        live = self.live
        if broker.up:
            return
        for log in self.logs():
            if log.leader == broker.node:
                self.elect(log, self.chance.choice(live) if live else -1)
        for key, node in self.coordinators.items():
            if node == broker.node and live:
                self.move(key, self.chance.choice(live))
        self.tell()

    def start(self, node: int) -> None:
        """A broker is there again, and leads what nobody leads."""
        broker = self.brokers[node]
        if broker.up:
            return
        self.brokers[node] = broker = Broker(self, node)
        self.loop.processes.append(broker.process)
        self.network.brokers[PORT + node] = broker
        for log in self.logs():
            if log.leader < 0 or (log.leader == node and not broker.leaders):
                self.elect(log, node, keep=True)
        places = tuple((log.topic, log.index) for log in self.logs())
        self._hear(broker, places)
        self.tell(*places)

    # coordinators

    def coordinator(self, key: str) -> int:
        """Who coordinates a group or a transactional id; -1 while nobody does."""
        if key not in self.coordinators:
            self.coordinators[key] = self.chance.randrange(BROKERS)
        node = self.coordinators[key]
        return node if self.brokers[node].up else -1

    def move(self, key: str, node: int, unaware_s: float = 0.0) -> None:
        """Another broker coordinates a group or a transactional id.

        Args:
            unaware_s: for how long the one before does not know, of a group.
        """
        before = self.coordinator(key)
        if before not in (-1, node) and key in self.groups and unaware_s:
            # connections of one member stay; the others find the new coordinator
            members = self.chance.sample(
                sorted(self.groups[key].members), min(1, len(self.groups[key].members))
            )
            self.deposed[key, before] = (self.loop.now + unaware_s, frozenset(members))
        self.coordinators[key] = node
        self.loading[key] = self.loop.now + self.chance.uniform(0, 1.0)
        if key in self.groups:
            self.story.tell("cluster", f"broker {node} coordinates {key}")
            self.groups[key].moved()

    def check_coordinator(self, key: str, node: int) -> ErrorCode:
        """What a broker says first that is asked as the coordinator."""
        if self.coordinator(key) != node:
            return ErrorCode.NOT_COORDINATOR
        if self.loading.get(key, 0.0) > self.loop.now:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NONE

    def is_deposed(self, key: str, node: int, member_id: str) -> bool:
        """Whether a broker still takes itself for the coordinator of a group, and somebody for its member."""
        until, members = self.deposed.get((key, node), (0.0, frozenset()))
        return self.loop.now < until and self.coordinator(key) != node and member_id in members

    def group(self, name: str) -> Group:
        if name not in self.groups:
            self.groups[name] = Group(self.later, self.chance.choice([0.0, 3.0]))
        return self.groups[name]

    def producer(self, transactional_id: str | None) -> tuple[int, int]:
        """A producer id and its epoch: a new one, or the same one with the next epoch."""
        if transactional_id is None or transactional_id not in self.producers:
            self._producer += 1
            found = self._producer, 0
        else:
            known = self.producers[transactional_id]
            found = known[0], known[1] + 1
        if transactional_id is not None:
            self.producers[transactional_id] = found
        return found
