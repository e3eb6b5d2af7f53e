"""A scripted broker in memory that uses real bytes and records requests."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any
from uuid import UUID

from tests.unit.client.batches import Content, batch
from tests.unit.client.in_memory import Asked, BrokerInMemory, Message, empty_script
from tests.unit.client.virtual import LoopClock

from sharecore.client import ShareConsumer
from sharecore.client.wire.apis import VERSIONS
from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey

TOPIC, TOPIC_ID = "topic", UUID(int=7)
LOCK_MS = 30_000
INSTANCE_ID = UUID(int=5)
_TELEMETRY = (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY)


class ScriptedBroker(BrokerInMemory):
    """By default node 0 of a cluster, leader of partition 0 of its only topic, and coordinator.

    Attributes:
        says: by API, the next responses in place of the usual ones: values, or functions of the request.
        leaders: node by partition, in Metadata.
        interval_ms: the heartbeat interval in usual responses.
        empty_wait_s: the shortest wait of an empty fetch.
        group_configs: value and source of the group's settings.
        no_backoff: whether it lacks a group back-off, like Apache Kafka.
        keys: of records, by their offsets.
        metrics: metrics requested from clients, every second; None for none.
        acknowledged: (first, last, types) of each batch, in order of arrival.
    """

    def __init__(self, node: int = 0, *, nodes: int = 1, metrics: list[str] | None = None) -> None:
        offered = {api: VERSIONS[api] for api in VERSIONS if metrics is not None or api not in _TELEMETRY}
        super().__init__(node, offered, [], empty_script())
        self.metrics = metrics
        self.nodes = nodes
        self.leaders = {0: 0}
        self.interval_ms = 5_000
        self.empty_wait_s = 0.0
        self.group_configs = {
            "share.auto.offset.reset": ("latest", 5),
            "share.delivery.count.limit": ("5", 5),
            "share.partition.max.record.locks": ("2000", 5),
        }
        self.no_backoff = False
        self.keys: dict[int, bytes] = {}
        self.epoch = 0
        self.acknowledged: list[tuple[int, int, bytes]] = []
        self.available: deque[tuple[int, int, int]] = deque()

    def offer(self, first: int, last: int, delivery_count: int = 1) -> None:
        """Add records for the next fetches to acquire."""
        self.available.append((first, last, delivery_count))

    def bodies(self, api: ApiKey) -> list[Any]:
        return [asked.body for asked in self.asked if asked.api is api]

    async def until_asked(self, api: ApiKey) -> None:
        """Return in the turn of the loop in which the first request of an API arrived."""
        while not self.bodies(api):  # noqa: ASYNC110
            await asyncio.sleep(0)

    def times(self, api: ApiKey) -> list[float]:
        return [asked.at for asked in self.asked if asked.api is api]

    def usual(self, asked: Asked, wait: float, respond: Callable[[Message], None]) -> None:
        """Wait at an empty ShareFetch."""
        if asked.api is not ApiKey.SHARE_FETCH:
            super().usual(asked, wait, respond)
            return
        answer = self._share_fetch(asked.body)
        if not answer["responses"]:
            wait = max(wait, asked.body.max_wait_ms / 1000, self.empty_wait_s)
        self.loop.call_later(wait, respond, answer)

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

    def _get_telemetry_subscriptions(self, body: Any) -> dict[str, Any]:
        return {
            "client_instance_id": body.client_instance_id or INSTANCE_ID,
            "subscription_id": len(self.metrics or ()),
            "accepted_compression_types": bytes([1]),
            "push_interval_ms": 1000,
            "telemetry_max_bytes": 1000,
            "delta_temporality": True,
            "requested_metrics": self.metrics,
        }

    def _push_telemetry(self, _: Any) -> dict[str, Any]:
        return {}

    def _describe_configs(self, body: Any) -> dict[str, Any]:
        """Return a group's settings; the source of a group's own is 8 in Kafka, that of defaults is 5."""
        configs = [
            {"name": name, "value": value, "config_source": source}
            for name, (value, source) in self.group_configs.items()
        ]
        (resource,) = body.resources
        named = {"resource_type": resource.resource_type, "resource_name": resource.resource_name}
        return {"results": [{**named, "configs": configs}]}

    def _incremental_alter_configs(self, body: Any) -> dict[str, Any]:
        (resource,) = body.resources
        named = {"resource_type": resource.resource_type, "resource_name": resource.resource_name}
        names = [config.name for config in resource.configs]
        if self.no_backoff and (unknown := [name for name in names if "backoff" in name]):
            text = f"Unknown group config name: {unknown[0]}"
            return {"responses": [{**named, "error_code": ErrorCode.INVALID_CONFIG, "error_message": text}]}
        self.group_configs |= {config.name: (config.value, 8) for config in resource.configs}
        return {"responses": [named]}

    def _list_groups(self, _: Any) -> dict[str, Any]:
        return {"groups": []}

    def _find_coordinator(self, body: Any) -> dict[str, Any]:
        where = {"node_id": self.node, "host": "broker", "port": 9092 + self.node}
        return {"coordinators": [{"key": body.coordinator_keys[0], **where}]}

    def _share_group_heartbeat(self, body: Any) -> dict[str, Any]:
        return self.beat(body, self.interval_ms)

    def beat(self, body: Any, interval_ms: int) -> dict[str, Any]:
        """Return a heartbeat response, with an assignment for a joining member."""
        self.epoch += body.member_epoch == 0
        partitions = [{"topic_id": TOPIC_ID, "partitions": sorted(self.leaders)}]
        return {
            "member_id": body.member_id,
            "member_epoch": self.epoch if body.member_epoch >= 0 else -1,
            "heartbeat_interval_ms": interval_ms,
            "assignment": {"topic_partitions": partitions} if body.member_epoch == 0 else None,
        }

    def settled(self, body: Any) -> list[int]:
        """Record a request's acknowledgements; return their partitions."""
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
            records = [
                Content(offset - first, b"%d" % offset, self.keys.get(offset))
                for offset in range(first, last + 1)
            ]
            answer |= {"records": batch(first, records), "acquired_records": acquired}
        return fetched(list(answers.values()))

    def _share_acknowledge(self, body: Any) -> dict[str, Any]:
        return acknowledged([{"partition_index": index} for index in self.settled(body)])


def fetched(partitions: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """Return the response to a ShareFetch."""
    return {
        "acquisition_lock_timeout_ms": LOCK_MS,
        "responses": [{"topic_id": TOPIC_ID, "partitions": partitions}] if partitions else [],
        **more,
    }


def acknowledged(partitions: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """Return the response to a ShareAcknowledge."""
    return fetched(partitions, **more)


def member(**settings: Any) -> ShareConsumer:
    """Create a consumer in explicit mode, subscribed to the topic, with the loop's clock."""
    settings = {"group_id": "group", "share_acknowledgement_mode": "explicit"} | settings
    made = ShareConsumer(
        bootstrap_servers="broker:9092", clock=LoopClock(asyncio.get_running_loop()), **settings
    )
    made.subscribe([TOPIC])
    return made
