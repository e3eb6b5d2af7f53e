"""An existing cluster in memory: brokers that use real bytes, in the given versions."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.harness.batches import keyed_batch
from tests.unit.client.in_memory import Asked, BrokerInMemory, Message, Script, empty_script
from tests.unit.client.virtual import LoopClock

from sharecore.client.settings import read_connection_settings
from sharecore.protocol import ApiKey
from sharecore.upstream import Upstream
from sharecore.upstream.apis import VERSIONS

OLD = {**VERSIONS, ApiKey.METADATA: (7, 8), ApiKey.FETCH: (11, 11), ApiKey.FIND_COORDINATOR: (2, 3)}
"""The versions of a cluster without topic IDs."""
_WRITES = {ApiKey.PRODUCE, ApiKey.OFFSET_COMMIT, ApiKey.INIT_PRODUCER_ID, ApiKey.SYNC_GROUP}


@dataclass
class Log:
    """A partition: its leader, and the requests to it."""

    leader: int = 0
    epoch: int = 5
    start: int = 0
    end: int = 0
    """The end of the log; also the high watermark."""
    replica: int = -1
    """The leader's preferred read replica."""
    epochs: dict[int, int] = field(default_factory=dict)
    """End offset by leader epoch; by default that of the current one."""
    broken: int = 0
    """The error of fetches."""


@dataclass
class Session:
    """A fetch session: its partitions by topic (name or ID) and index, and the values last sent."""

    epoch: int
    asked: dict[tuple[Any, int], Any] = field(default_factory=dict)
    told: dict[tuple[Any, int], tuple[int, int]] = field(default_factory=dict)


class Sight(NamedTuple):
    """The state known to a broker."""

    topics: dict[str, list[Log]]
    coordinators: dict[str, int]
    ids: dict[str, uuid.UUID]


@dataclass
class Cluster:
    """Brokers from 0, their topics, and all their requests.

    Attributes:
        says: by API, the next responses in place of the usual ones: values, or functions of the request.
        ids: by topic; none for brokers without topic IDs.
        coordinators: brokers by group or transactional ID; by default the first one.
        silent: brokers that never respond.
        forbidden: topics that the user may not describe.
        members: member ID and instance ID of each member in group descriptions.
        blind: topics and coordinators as reported by brokers that are isolated from the others.
    """

    nodes: int = 1
    versions: Mapping[ApiKey, tuple[int, int]] = field(default_factory=lambda: VERSIONS)
    topics: dict[str, list[Log]] = field(default_factory=dict)
    ids: dict[str, uuid.UUID] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    says: Script = field(default_factory=empty_script)
    producer: tuple[int, int] = (7, -1)
    coordinators: dict[str, int] = field(default_factory=dict)
    generation: int = 0
    sessions: dict[int, Session] = field(default_factory=dict)
    silent: set[int] = field(default_factory=set)
    forbidden: set[str] = field(default_factory=set)
    blind: dict[int, Sight] = field(default_factory=dict)
    members: dict[str, list[tuple[str, str | None]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.brokers = [_Broker(self, node) for node in range(self.nodes)]

    def create(self, name: str, partitions: int = 1, **log: Any) -> None:
        """Create a topic, with a new ID."""
        self.topics[name] = [Log(**log) for _ in range(partitions)]
        self.ids[name] = uuid.uuid5(uuid.UUID(int=1), f"{name} {len(self.asked)}")

    def upstream(self, **settings: Any) -> Upstream:
        """Create a client, not started yet."""
        given = {"bootstrap_servers": "broker:9092", "request_timeout_ms": 1_000} | settings
        return Upstream(read_connection_settings(**given), LoopClock(asyncio.get_running_loop()))

    def append(self, name: str, index: int = 0, count: int = 1) -> None:
        """Append records, one per batch, and wake waiting fetches."""
        self.topics[name][index].end += count
        for broker in self.brokers:
            broker.wake()

    def lose_sight(self, node: int) -> None:
        """Isolate a broker: it reports its current knowledge forever, and accepts no writes."""
        self.blind[node] = Sight(deepcopy(self.topics), dict(self.coordinators), dict(self.ids))

    def bodies(self, api: ApiKey) -> list[Any]:
        return [each.body for each in self.asked if each.api is api]


class _Broker(BrokerInMemory):
    def __init__(self, cluster: Cluster, node: int) -> None:
        super().__init__(node, cluster.versions, cluster.asked, cluster.says)
        self._cluster = cluster
        self._waiting: list[Callable[[], bool]] = []

    def usual(self, asked: Asked, wait: float, respond: Callable[[Message], None]) -> None:
        """Wait in Fetch for news, and in Produce for replicas that may not follow."""
        blind = self.node in self._cluster.blind and asked.api in _WRITES
        if blind or self.node in self._cluster.silent:
            return
        if asked.api is ApiKey.FETCH:
            self.loop.call_later(wait, self._fetch, asked.body, respond)
        else:
            super().usual(asked, wait, respond)

    @property
    def _sight(self) -> Sight:
        cluster = self._cluster
        return cluster.blind.get(self.node) or Sight(cluster.topics, cluster.coordinators, cluster.ids)

    def wake(self) -> None:
        """Wake waiting fetches after an append."""
        self._waiting = [waits for waits in self._waiting if not waits()]

    def _fetch(self, body: Any, respond: Callable[[Message], None]) -> None:
        """Respond once there is news, or after the timeout."""
        until = self.loop.time() + body.max_wait_ms / 1000
        session = self._session(body)

        def answered() -> bool:
            error = 71 if session is None else 0
            found = [] if session is None else self._found(session, body)
            told = any(
                part["error_code"] or part["records"] or part["preferred_read_replica"] >= 0
                for topic in found
                for part in topic["partitions"]
            )
            if not (error or told) and self.loop.time() < until:
                return False
            session_id = body.session_id if session is None or body.session_epoch else session_number(session)
            respond({"error_code": error, "session_id": session_id, "responses": found})
            return True

        def session_number(session: Session) -> int:
            return next((each for each, known in self._cluster.sessions.items() if known is session), 0)

        if not answered():
            self._waiting.append(answered)
            self.loop.call_at(until, self.wake)

    def _session(self, body: Any) -> Session | None:
        sessions = self._cluster.sessions
        asked = {
            (topic_of(topic), part.partition): part for topic in body.topics for part in topic.partitions
        }
        if body.session_epoch <= 0:
            session = Session(0, asked)
            if body.session_epoch == 0:
                sessions[len(sessions) + 1 + 1000 * self.node] = session
            return session
        found = sessions.get(body.session_id)
        if found is None or body.session_epoch != found.epoch + 1:
            return None
        found.epoch += 1
        found.asked |= asked
        for topic in body.forgotten_topics_data:
            for index in topic.partitions:
                del found.asked[topic_of(topic), index]
        return found

    def _found(self, session: Session, body: Any) -> list[dict[str, Any]]:
        found = []
        names = {topic_id: name for name, topic_id in self._cluster.ids.items()}
        for (topic, index), asked in session.asked.items():
            name = topic if isinstance(topic, str) else names.get(topic)
            log = self._cluster.topics.get(name or "", [])[index:][:1]
            part = self._part(log[0] if log else None, asked) | {"partition_index": index}
            marks = part.get("high_watermark", -1), part.get("log_start_offset", -1)
            if (
                body.session_epoch <= 0
                or part["error_code"]
                or part["records"]
                or marks != session.told.get((topic, index))
            ):
                session.told[topic, index] = marks
                found.append({"topic": topic, "topic_id": topic, "partitions": [part]})
        return found

    def _part(self, log: Log | None, asked: Any) -> dict[str, Any]:
        part: dict[str, Any] = {"records": b"", "preferred_read_replica": -1}
        if log is None:
            return part | {"error_code": 100}
        if log.broken or self.node not in (log.leader, log.replica):
            return part | {"error_code": log.broken or 6}
        if asked.current_leader_epoch not in (-1, log.epoch):
            return part | {"error_code": 74 if asked.current_leader_epoch < log.epoch else 75}
        if not log.start <= asked.fetch_offset <= log.end:
            return part | {"error_code": 1}
        marks = {"high_watermark": log.end, "last_stable_offset": log.end, "log_start_offset": log.start}
        if log.replica >= 0 and self.node == log.leader:
            return part | marks | {"error_code": 0, "preferred_read_replica": log.replica}
        records, offset = b"", asked.fetch_offset
        while offset < log.end and (not records or len(records) < asked.partition_max_bytes):
            records += keyed_batch([(None, b"%d" % offset)], base=offset)
            offset += 1
        return part | marks | {"error_code": 0, "records": records[: max(asked.partition_max_bytes, 70)]}

    def _offset_for_leader_epoch(self, body: Any) -> dict[str, Any]:
        return {
            "topics": [
                {
                    "topic": topic.topic,
                    "partitions": [
                        {
                            "partition": each.partition,
                            "leader_epoch": each.leader_epoch,
                            "end_offset": log.epochs.get(each.leader_epoch, log.end),
                        }
                        for each in topic.partitions
                        for log in [self._cluster.topics[topic.topic][each.partition]]
                    ],
                }
                for topic in body.topics
            ]
        }

    def _metadata(self, body: Any) -> dict[str, Any]:
        cluster = self._cluster
        shown = [name for name in self._sight.topics if name not in cluster.forbidden]
        names = shown if body.topics is None else [topic.name for topic in body.topics]
        return {
            "cluster_id": "a cluster",
            "controller_id": 0,
            "brokers": [
                {"node_id": broker.node, "host": "broker", "port": 9092 + broker.node, "rack": None}
                for broker in cluster.brokers
            ],
            "topics": [self._topic(name) for name in names],
        }

    def _topic(self, name: str) -> dict[str, Any]:
        logs = self._sight.topics.get(name)
        if name in self._cluster.forbidden:
            return {"error_code": 29, "name": name}
        if logs is None:
            return {"error_code": 3, "name": name}
        partitions = [
            {
                "partition_index": index,
                "leader_id": log.leader,
                "leader_epoch": log.epoch,
                "replica_nodes": [log.leader],
                "isr_nodes": [log.leader],
            }
            for index, log in enumerate(logs)
        ]
        return {"name": name, "topic_id": self._sight.ids.get(name), "partitions": partitions}

    def _find_coordinator(self, body: Any) -> dict[str, Any]:
        keys = getattr(body, "coordinator_keys", None) or [body.key]
        found = [
            {"key": key, "node_id": node, "host": "broker", "port": 9092 + node}
            for key in keys
            for node in [self._sight.coordinators.get(key, 0)]
        ]
        return {**found[0], "coordinators": found}

    def _join_group(self, body: Any) -> dict[str, Any]:
        cluster = self._cluster
        if not body.member_id and body.group_instance_id is None:
            return {"error_code": 79, "member_id": "member"}
        cluster.generation += 1
        member = body.member_id or f"{body.group_instance_id}-{cluster.generation}"
        metadata = body.protocols[0].metadata
        return {
            "generation_id": cluster.generation,
            "protocol_type": body.protocol_type,
            "protocol_name": body.protocols[0].name,
            "leader": member,
            "member_id": member,
            "members": [
                {"member_id": member, "group_instance_id": body.group_instance_id, "metadata": metadata}
            ],
        }

    def _describe_groups(self, body: Any) -> dict[str, Any]:
        return {
            "groups": [
                {
                    "group_id": group,
                    "group_state": "Stable",
                    "members": [
                        {"member_id": member, "group_instance_id": instance}
                        for member, instance in self._cluster.members.get(group, ())
                    ],
                }
                for group in body.groups
            ]
        }

    def _sync_group(self, body: Any) -> dict[str, Any]:
        given = {each.member_id: each.assignment for each in body.assignments}
        return {"assignment": given.get(body.member_id, b"")}

    def _heartbeat(self, _: Any) -> dict[str, Any]:
        return {}

    def _offset_commit(self, body: Any) -> dict[str, Any]:
        return {
            "topics": [
                {"name": topic.name, "partitions": [{"partition_index": 0, "error_code": 0}]}
                for topic in body.topics
            ]
        }

    def _leave_group(self, body: Any) -> dict[str, Any]:
        return {"members": [{"member_id": each.member_id} for each in body.members]}

    def _init_producer_id(self, _: Any) -> dict[str, Any]:
        number, epoch = self._cluster.producer
        self._cluster.producer = number, epoch + 1
        return {"producer_id": number, "producer_epoch": epoch + 1}

    def _produce(self, body: Any) -> dict[str, Any]:
        return produced(
            {
                (topic.name, part.index): self._append(topic.name, part.index, part.records)
                for topic in body.topic_data
                for part in topic.partition_data
            }
        )

    def _append(self, topic: str, index: int, records: bytes) -> dict[str, Any]:
        log = self._cluster.topics[topic][index]
        if log.leader != self.node:
            return {"error_code": 6}
        base_offset, log.end = log.end, log.end + int.from_bytes(records[57:61], "big")
        return {"base_offset": base_offset}


def topic_of(topic: Any) -> Any:
    """Return the name or the ID of a topic in a Fetch."""
    return topic.topic if getattr(topic, "topic", "") else topic.topic_id


def produced(parts: Mapping[tuple[str, int], dict[str, Any]]) -> dict[str, Any]:
    """Return the response to a Produce."""
    return {
        "responses": [
            {"name": topic, "partition_responses": [{"index": index, **part}]}
            for (topic, index), part in parts.items()
        ]
    }
