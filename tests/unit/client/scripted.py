"""A broker in memory that speaks real bytes, answers as it is told, and remembers what it was asked."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, cast
from uuid import UUID

from tests.unit.client.batches import plain
from tests.unit.client.virtual import ClientLoop, Link, LoopClock

from sharecore.client import ShareConsumer
from sharecore.client.wire.apis import VERSIONS
from sharecore.protocol import ApiKey, codec, read_header

TOPIC, TOPIC_ID = "topic", UUID(int=7)
LOCK_MS = 30_000
Answer = dict[str, Any] | bytes | float | None
"""A message; bytes in place of one; so many seconds of waiting before the usual answer; or never any."""


class Asked(NamedTuple):
    """A request, and when it came."""

    at: float
    api: ApiKey
    body: Any


class ScriptedBroker:
    """Node 0 of a cluster unless told, leader of partition 0 of the one topic, and coordinator.

    Attributes:
        says: by API, what is answered next in place of the usual: values, or functions of the request.
        leaders: node by partition, as Metadata tells.
        interval_ms: the heartbeat interval of the usual answer.
        acknowledged: (first, last, types) of each batch, in the order in which they came.
    """

    def __init__(self, node: int = 0, *, nodes: int = 1) -> None:
        self.loop = cast(ClientLoop, asyncio.get_running_loop())
        self.node, self.nodes = node, nodes
        self.loop.listeners["broker", 9092 + node] = self
        self.asked: list[Asked] = []
        self.says: dict[ApiKey, deque[Answer | Callable[[Any], Answer]]] = {api: deque() for api in ApiKey}
        self.leaders = {0: 0}
        self.interval_ms = 5_000
        self.epoch = 0
        self.acknowledged: list[tuple[int, int, bytes]] = []
        self.available: deque[tuple[int, int, int]] = deque()
        self.links: set[Link] = set()

    def offer(self, first: int, last: int, delivery_count: int = 1) -> None:
        """Records that the next fetches acquire."""
        self.available.append((first, last, delivery_count))

    def bodies(self, api: ApiKey) -> list[Any]:
        return [asked.body for asked in self.asked if asked.api is api]

    def times(self, api: ApiKey) -> list[float]:
        return [asked.at for asked in self.asked if asked.api is api]

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
        self.asked.append(Asked(self.loop.time(), api, body))
        said = self.says[api].popleft() if self.says[api] else 0.0
        answer: Answer = said(body) if callable(said) else said
        if answer is None:
            return
        wait = 0.0
        if isinstance(answer, float):
            wait = answer
            usual: dict[str, Any] = getattr(self, f"_{api.name.lower()}")(body)
            if api is ApiKey.SHARE_FETCH and not usual["responses"]:
                wait = max(wait, body.max_wait_ms / 1000)
            answer = usual
        if isinstance(answer, bytes):
            data = answer
        else:
            data = b"".join(messages.write_response(header.correlation_id, answer))
        self.loop.call_later(wait, link.answer, data)

    def _api_versions(self, _: Any) -> dict[str, Any]:
        return {
            "api_keys": [
                {"api_key": api, "min_version": low, "max_version": high}
                for api, (low, high) in VERSIONS.items()
            ]
        }

    def _metadata(self, _: Any) -> dict[str, Any]:
        return {
            "brokers": [
                {"node_id": node, "host": "broker", "port": 9092 + node} for node in range(self.nodes)
            ],
            "topics": [
                {
                    "name": TOPIC,
                    "topic_id": TOPIC_ID,
                    "partitions": [
                        {"partition_index": partition, "leader_id": leader, "leader_epoch": len(self.asked)}
                        for partition, leader in self.leaders.items()
                    ],
                }
            ],
        }

    def _find_coordinator(self, body: Any) -> dict[str, Any]:
        where = {"node_id": self.node, "host": "broker", "port": 9092 + self.node}
        return {"coordinators": [{"key": body.coordinator_keys[0], **where}]}

    def _share_group_heartbeat(self, body: Any) -> dict[str, Any]:
        return self.beat(body, self.interval_ms)

    def beat(self, body: Any, interval_ms: int) -> dict[str, Any]:
        """The answer to a heartbeat, with an assignment for who joins."""
        self.epoch += body.member_epoch == 0
        partitions = [{"topic_id": TOPIC_ID, "partitions": sorted(self.leaders)}]
        return {
            "member_id": body.member_id,
            "member_epoch": self.epoch if body.member_epoch >= 0 else -1,
            "heartbeat_interval_ms": interval_ms,
            "assignment": {"topic_partitions": partitions} if body.member_epoch == 0 else None,
        }

    def settled(self, body: Any) -> list[int]:
        """Notes what a request acknowledges; returns the partitions of it."""
        settled = []
        for topic in body.topics:
            for partition in topic.partitions:
                batches = partition.acknowledgement_batches
                self.acknowledged += [(first, last, bytes(types)) for first, last, types in batches]
                if batches:
                    settled.append(partition.partition_index)
        return settled

    def _share_fetch(self, body: Any) -> dict[str, Any]:
        answers: dict[int, dict[str, Any]] = {
            index: {"partition_index": index} for index in self.settled(body)
        }
        if self.available and body.max_records:
            first, last, count = self.available.popleft()
            acquired = [{"first_offset": first, "last_offset": last, "delivery_count": count}]
            answer = answers.setdefault(0, {"partition_index": 0})
            answer |= {"records": plain(first, last - first + 1), "acquired_records": acquired}
        return fetched(list(answers.values()))

    def _share_acknowledge(self, body: Any) -> dict[str, Any]:
        return acknowledged([{"partition_index": index} for index in self.settled(body)])


def fetched(partitions: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """The answer to a ShareFetch."""
    return {
        "acquisition_lock_timeout_ms": LOCK_MS,
        "responses": [{"topic_id": TOPIC_ID, "partitions": partitions}] if partitions else [],
        **more,
    }


def acknowledged(partitions: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """The answer to a ShareAcknowledge."""
    return fetched(partitions, **more)


def member(**settings: Any) -> ShareConsumer:
    """A consumer in explicit mode, subscribed to the topic, whose clock is the loop's."""
    settings = {"group_id": "group", "share_acknowledgement_mode": "explicit"} | settings
    made = ShareConsumer(
        bootstrap_servers="broker:9092", clock=LoopClock(asyncio.get_running_loop()), **settings
    )
    made.subscribe([TOPIC])
    return made
