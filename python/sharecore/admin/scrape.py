"""Leases in the metrics of a sharecore broker."""

from __future__ import annotations

import asyncio
import urllib.request

from sharecore.admin.watch import Held

_IN_FLIGHT = "kafka_server_share_partition_metrics_in_flight_message_count"
_OLDEST = "sharecore_share_partition_oldest_lease_age_seconds"
_SECONDS_MAX = 5.0


async def scrape_held(url: str) -> Held:
    """Read a page of metrics; raise OSError if it cannot be read."""
    return await asyncio.to_thread(_scrape, url)


def _scrape(url: str) -> Held:
    from prometheus_client.parser import text_string_to_metric_families

    with urllib.request.urlopen(url, timeout=_SECONDS_MAX) as page:
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
