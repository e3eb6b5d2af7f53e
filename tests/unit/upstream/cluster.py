"""An existing cluster in memory: brokers that speak real bytes, in the versions that they are given."""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from tests.unit.client.virtual import ClientLoop, Link, LoopClock

from sharecore.client.settings import read_connection_settings
from sharecore.protocol import ApiKey, codec, read_header
from sharecore.upstream import Upstream
from sharecore.upstream.apis import VERSIONS

OLD = {**VERSIONS, ApiKey.METADATA: (7, 8), ApiKey.FETCH: (11, 11), ApiKey.FIND_COORDINATOR: (2, 3)}
"""What a cluster without topic ids offers."""
Said = dict[str, Any] | float | None
"""A message; so many seconds of waiting before the usual answer; or never any."""


class Asked(NamedTuple):
    """A request: when, to which broker, on which connection."""

    at: float
    node: int
    link: Link
    api: ApiKey
    version: int
    body: Any


@dataclass
class Log:
    """A partition: who leads it, and what is asked of it."""

    leader: int = 0
    epoch: int = 5
    start: int = 0
    end: int = 0


@dataclass
class Cluster:
    """Brokers 0 and on, their topics, and all that they were asked.

    Attributes:
        says: by API, what is answered next in place of the usual: values, or functions of the request.
        ids: by topic; none where the brokers give none.
    """

    nodes: int = 1
    versions: Mapping[ApiKey, tuple[int, int]] = field(default_factory=lambda: VERSIONS)
    topics: dict[str, list[Log]] = field(default_factory=dict)
    ids: dict[str, uuid.UUID] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    says: dict[ApiKey, deque[Said | Callable[[Any], Said]]] = field(default_factory=dict)
    producer: tuple[int, int] = (7, -1)

    def __post_init__(self) -> None:
        loop = cast(ClientLoop, asyncio.get_running_loop())
        self.says = {api: deque() for api in ApiKey}
        self.brokers = [_Broker(self, node, loop) for node in range(self.nodes)]

    def create(self, name: str, partitions: int = 1, **log: int) -> None:
        """A topic, under another id than any before."""
        self.topics[name] = [Log(**log) for _ in range(partitions)]
        self.ids[name] = uuid.uuid5(uuid.UUID(int=1), f"{name} {len(self.asked)}")

    def upstream(self, **settings: Any) -> Upstream:
        """A client of it, not yet started."""
        given = {"bootstrap_servers": "broker:9092", "request_timeout_ms": 1_000} | settings
        return Upstream(read_connection_settings(**given), LoopClock(asyncio.get_running_loop()))

    def bodies(self, api: ApiKey) -> list[Any]:
        return [each.body for each in self.asked if each.api is api]


class _Broker:
    def __init__(self, cluster: Cluster, node: int, loop: ClientLoop) -> None:
        self._cluster, self.node, self._loop = cluster, node, loop
        self.links: set[Link] = set()
        loop.listeners["broker", 9092 + node] = self

    def stop(self) -> None:
        """Takes no more connections, and drops those that there are."""
        del self._loop.listeners["broker", 9092 + self.node]
        for link in list(self.links):
            link.cut()

    def start(self) -> None:
        self._loop.listeners["broker", 9092 + self.node] = self

    def connected(self, link: Link) -> None:
        self.links.add(link)

    def disconnected(self, link: Link) -> None:
        self.links.discard(link)

    def received(self, link: Link, data: bytes) -> None:
        link.buffered += data
        while len(link.buffered) >= 4:
            size = int.from_bytes(link.buffered[:4], "big")
            if len(link.buffered) < 4 + size:
                return
            frame, link.buffered = link.buffered[4 : 4 + size], link.buffered[4 + size :]
            self._request(link, frame)

    def _request(self, link: Link, frame: bytes) -> None:
        header = read_header(frame)
        api = ApiKey(header.api_key)
        messages = codec(api, header.api_version)
        body = messages.read_request(frame, header)
        cluster = self._cluster
        cluster.asked.append(Asked(self._loop.time(), self.node, link, api, header.api_version, body))
        said = cluster.says[api].popleft() if cluster.says[api] else 0.0
        answer: Said = said(body) if callable(said) else said
        if answer is None:
            return
        wait = 0.0
        if isinstance(answer, float):
            wait = answer
            usual: dict[str, Any] = getattr(self, f"_{api.name.lower()}")(body)
            answer = usual
        self._loop.call_later(
            wait, link.answer, b"".join(messages.write_response(header.correlation_id, answer))
        )

    def _api_versions(self, _: Any) -> dict[str, Any]:
        versions = self._cluster.versions.items()
        return {
            "api_keys": [
                {"api_key": api, "min_version": low, "max_version": high} for api, (low, high) in versions
            ]
        }

    def _metadata(self, body: Any) -> dict[str, Any]:
        cluster = self._cluster
        names = cluster.topics if body.topics is None else [topic.name for topic in body.topics]
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
        logs = self._cluster.topics.get(name)
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
        return {"name": name, "topic_id": self._cluster.ids.get(name), "partitions": partitions}

    def _find_coordinator(self, body: Any) -> dict[str, Any]:
        where = {"node_id": 0, "host": "broker", "port": 9092}
        return {
            **where,
            "coordinators": [{"key": key, **where} for key in getattr(body, "coordinator_keys", ())],
        }

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


def produced(parts: Mapping[tuple[str, int], dict[str, Any]]) -> dict[str, Any]:
    """The answer to a Produce."""
    return {
        "responses": [
            {"name": topic, "partition_responses": [{"index": index, **part}]}
            for (topic, index), part in parts.items()
        ]
    }
