"""Looks at a cluster for `sharecore top`."""

from __future__ import annotations

import asyncio
import time
import urllib.request
from collections import Counter
from collections.abc import Mapping

from sharecore.admin.overview import look_at_groups
from sharecore.admin.state_tail import StateTail
from sharecore.admin.transport import Transport
from sharecore.cli.top.rows import Look
from sharecore.client.settings import read_connection_settings
from sharecore.errors import ErrorCode, KafkaError

_IN_FLIGHT = "kafka_server_share_partition_metrics_in_flight_message_count"
_OLDEST = "sharecore_share_partition_oldest_lease_age_seconds"
_METRICS_SECONDS_MAX = 5.0
_NOT_READABLE = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

Key = tuple[str, str, int]


class Watch:
    """A cluster that is looked at again and again.

    Args:
        settings: of an administrator's client.
        metrics_url: of a sharecore broker's metrics, which tell what is in flight; empty: none.
    """

    def __init__(self, settings: Mapping[str, str], metrics_url: str = "") -> None:
        self._transport = Transport(read_connection_settings(settings))
        self._tail = StateTail(self._transport)
        self._metrics_url = metrics_url

    async def look(self) -> Look:
        """The cluster now; raises KafkaError or OSError where it cannot be had."""
        groups = {group.group_id: group for group in await look_at_groups(self._transport)}
        came_back: dict[str, int] | None = None
        try:
            await self._tail.look()
            came_back = self._came_back()
        except KafkaError as error:
            if error.code not in _NOT_READABLE:
                raise
        in_flight, oldest = await asyncio.to_thread(self._scrape) if self._metrics_url else ({}, {})
        return Look(time.monotonic(), groups, came_back, in_flight, oldest)

    def _came_back(self) -> dict[str, int]:
        found: Counter[str] = Counter()
        for (group_id, _), records in self._tail.often_delivered(1).items():
            found[group_id] += records
        return found

    async def close(self) -> None:
        """Ends all connections."""
        await self._transport.close()

    def _scrape(self) -> tuple[dict[Key, int], dict[Key, float]]:
        from prometheus_client.parser import text_string_to_metric_families

        with urllib.request.urlopen(self._metrics_url, timeout=_METRICS_SECONDS_MAX) as page:
            text = page.read().decode()
        in_flight, oldest = {}, {}
        for family in text_string_to_metric_families(text):
            if family.name not in (_IN_FLIGHT, _OLDEST):
                continue
            for sample in family.samples:
                labels = sample.labels
                key = (labels["group"], labels["topic"], int(labels["partition"]))
                if family.name == _IN_FLIGHT:
                    in_flight[key] = int(sample.value)
                else:
                    oldest[key] = sample.value
        return in_flight, oldest
