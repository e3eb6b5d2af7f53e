"""Metrics and health of the broker, on a separate listener."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING

from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import CollectorRegistry

from sharecore.broker.metrics.health import Health
from sharecore.broker.metrics.share import ShareMetrics
from sharecore.config.address import parse_address
from sharecore.coordinator.classic import ClassicGroup
from sharecore.coordinator.consumer import ConsumerGroup
from sharecore.coordinator.share.group import ShareGroup
from sharecore.metrics import families as f
from sharecore.metrics import protobuf
from sharecore.metrics import queue_families as q
from sharecore.metrics.durations import BUCKETS, EDGES
from sharecore.metrics.exposition import CONTENT_TYPE, Exposition, Lines
from sharecore.metrics.listener import HttpLimits, HttpListener, Page
from sharecore.metrics.loop_delay import LoopDelay
from sharecore.protocol import ApiKey
from sharecore.waiting import Spans

if TYPE_CHECKING:
    from sharecore.broker.requests.services import Services
    from sharecore.metrics.family import Family
    from sharecore.metrics.requests import RequestTimes

_RUNNING = 3
_PROTOCOLS = ("classic", "consumer", "share")
_SHARE_STATES = ("Empty", "Stable", "Dead")


class BrokerMetrics:
    """Metrics of a broker, collected when a page is requested.

    Args:
        broker: the broker.
        requests: counts the requests; None if they are not counted.
    """

    def __init__(self, broker: Services, requests: RequestTimes | None) -> None:
        self._broker = broker
        self._requests = requests
        self._shares = ShareMetrics(broker, broker.static_config.sharecore_metrics_series_max)
        self._delay = LoopDelay()
        self._health = Health(broker)
        self._version = version("sharecore")
        self._writer = protobuf.Writer()
        self._scrapes = 0
        self._scrape_cpu_s = 0.0
        self._idle_since = (time.monotonic(), time.thread_time())
        unregistered = CollectorRegistry()
        self._process = (
            ProcessCollector(registry=None),
            PlatformCollector(registry=unregistered),
            GCCollector(registry=CollectorRegistry()),
        )
        self._listener = HttpListener(
            {"/metrics": self._page, "/healthz": self._health.alive, "/readyz": self._health.ready},
            {("/metrics", protobuf.MEDIA_TYPE): partial(self._page, messages=True)},
            HttpLimits(
                broker.static_config.sharecore_metrics_connections_max,
                broker.static_config.sharecore_metrics_request_max_bytes,
                broker.static_config.sharecore_metrics_request_timeout_ms,
            ),
        )
        self._scraping = asyncio.Lock()

    async def start(self) -> int:
        """Start to listen; return the port.

        Raises:
            OSError: the address is not available.
        """
        self._delay.start(asyncio.get_running_loop())
        host, port = parse_address(self._broker.static_config.sharecore_metrics_listener)
        return await self._listener.listen(host, port)

    def ready(self) -> None:
        """Report that the broker has loaded its state and serves."""
        self._health.started = True

    def stop(self) -> None:
        """Stop listening."""
        self._health.started = False
        self._delay.stop()
        self._listener.close()

    async def _page(self, *, messages: bool = False) -> Page:
        if not self._health.started:
            return Page(503, b"the broker is starting\n")
        async with self._scraping:
            body = await self.render(messages=messages)
        return Page(200, body, protobuf.CONTENT_TYPE if messages else CONTENT_TYPE)

    async def render(self, *, messages: bool = False) -> bytes:
        """Return all samples as text or as protobuf messages."""
        sheet, lines = Exposition(), Lines()
        await self._shares.collect(sheet, lines)
        began = time.thread_time()
        self._about_broker(sheet)
        self._about_requests(sheet)
        self._about_groups(sheet)
        self._about_share_state(sheet)
        await self._broker.backend.report(sheet)
        if self._broker.telemetry is not None:
            self._broker.telemetry.report(sheet, lines)
        sheet.summary(f.SCRAPE_TIME, self._scrapes, self._scrape_cpu_s)
        if messages:
            written = self._writer.messages(sheet.registry(self._process).collect(), lines)
        else:
            written = sheet.text(self._process) + lines.text()
        self._scrapes += 1
        self._scrape_cpu_s += self._shares.cpu_s + time.thread_time() - began
        return written

    def _about_broker(self, sheet: Exposition) -> None:
        broker = self._broker
        identity = broker.identity
        about = {"version": self._version, "node_id": str(identity.node_id)}
        sheet.info(f.BUILD, about | {"cluster_id": identity.cluster_id})
        sheet.add(f.BROKER_STATE, _RUNNING)
        sheet.add(f.TOPICS, len(broker.topics))
        partitions = 0
        for number, topic in enumerate(broker.topics):
            partitions += len(topic.partitions)
            if number < broker.static_config.sharecore_metrics_series_max:
                sheet.add(f.MESSAGES_IN, sum(log.end_offset for log in topic.partitions), topic.name)
                sheet.add(f.LOG_SIZE, sum(log.size_bytes for log in topic.partitions), topic.name)
        sheet.add(f.PARTITIONS, partitions)
        by_listener = Counter(each.listener for each in broker.server.connections.values())
        for name in broker.listeners:
            sheet.add(f.CONNECTIONS, by_listener[name], name)
        sheet.add(f.MEMORY_USED, broker.server.budget.used_bytes)
        now, cpu = time.monotonic(), time.thread_time()
        before, cpu_before = self._idle_since
        self._idle_since = (now, cpu)
        busy = (cpu - cpu_before) / (now - before) if now > before else 0.0
        sheet.add(f.GROUP_IDLE, min(1.0, max(0.0, 1.0 - busy)))
        delays = self._delay.delays
        sheet.histogram(f.LOOP_DELAY, EDGES, delays.buckets, delays.total_ns / 1e9)

    def _about_requests(self, sheet: Exposition) -> None:
        if self._requests is None:
            return
        apis: dict[str, list[int]] = {}
        sums: dict[str, list[int]] = {}
        for head, each in self._requests.by_api.items():
            name = ApiKey(int.from_bytes(head[:2], "big")).name
            sheet.add(
                f.REQUESTS, each.count, name, str(int.from_bytes(head[2:], "big")) if head[2:] else "other"
            )
            buckets = apis.setdefault(name, [0] * BUCKETS)
            for at, count in enumerate(each.times.buckets):
                buckets[at] += count
            total = sums.setdefault(name, [0] * 5)
            figures = (
                each.times.total_ns,
                each.count,
                each.local_ns,
                each.request_bytes,
                each.response_bytes,
            )
            for at, figure in enumerate(figures):
                total[at] += figure
        for name, buckets in apis.items():
            total_ns, count, local_ns, request_bytes, response_bytes = sums[name]
            sheet.histogram(f.REQUEST_TIME, EDGES, buckets, total_ns / 1e9, name)
            sheet.summary(f.LOCAL_TIME, count, local_ns / 1e9, name)
            sheet.add(f.REQUEST_BYTES, request_bytes, name)
            sheet.add(f.RESPONSE_BYTES, response_bytes, name)
        fetches = sums.get(ApiKey.SHARE_FETCH.name)
        sheet.add(f.SHARE_FETCHES, fetches[1] if fetches is not None else 0)
        sheet.add(f.SHARE_ACKNOWLEDGEMENTS, self._broker.share.partitions.acknowledgements)

    def _about_groups(self, sheet: Exposition) -> None:
        broker = self._broker
        groups, now_ms = broker.groups, broker.clock.now_ms()
        protocols, classic, consumer, share = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
        members = 0
        for group in groups.registry:
            protocols[group.type.value.lower()] += 1
            if isinstance(group, ShareGroup):
                share[group.state_name] += 1
                members += 1
                if members <= broker.static_config.sharecore_metrics_series_max:
                    sheet.add(f.GROUP_MEMBERS, len(group.members), group.group_id)
                    pause_ms = broker.group_configs.get(group.group_id).pause_left_ms(now_ms)
                    sheet.add(f.GROUP_PAUSED, int(pause_ms != 0), group.group_id)
            elif isinstance(group, ConsumerGroup):
                consumer[group.state_name] += 1
            elif isinstance(group, ClassicGroup):
                classic[group.state_name] += 1
        for protocol in _PROTOCOLS:
            sheet.add(f.GROUPS, protocols[protocol], protocol)
        for state in _SHARE_STATES:
            sheet.add(f.SHARE_GROUPS, share[state], state)
        for family, counted in ((f.CONSUMER_GROUPS, consumer), (f.CLASSIC_GROUPS, classic)):
            for state, count in (counted or {"Empty": 0}).items():
                sheet.add(family, count, state)
        sheet.add(f.SHARE_REBALANCES, broker.share.groups.rebalances)
        sheet.add(f.CONSUMER_REBALANCES, groups.consumer.rebalances)
        sheet.add(f.GROUP_PARTITIONS, len(groups.records.partitions), "active")
        sheet.add(f.GROUP_LOAD, groups.records.loads.total_ms / 1000)
        written = broker.share.dead_letters.counts.items()
        for group_id, counts in list(written)[: broker.static_config.sharecore_metrics_series_max]:
            sheet.add(f.DEAD_LETTERS, counts.letters, group_id)
            sheet.add(f.DEAD_LETTER_WRITES, counts.writes, group_id)
            sheet.add(f.DEAD_LETTER_FAILURES, counts.failed_writes, group_id)
            sheet.add(f.WITHOUT_LETTER, counts.without_letter, group_id)
            sheet.add(f.UNDELIVERABLE, counts.undeliverable, group_id)
        sheet.add(f.SESSIONS, len(broker.share.sessions))
        partitions = broker.share.partitions
        _spans(sheet, partitions.loads, f.SHARE_LOADS, f.SHARE_LOAD_MAX)
        sheet.add(q.IDLE_PARTITIONS, partitions.idle_kept)
        sheet.add(q.IDLE_BYTES, partitions.idle_bytes)
        sheet.add(q.IDLE_DROPPED, partitions.idle_dropped)

    def _about_share_state(self, sheet: Exposition) -> None:
        coordinator = self._broker.share.coordinator
        sheet.add(f.STATE_PARTITIONS, coordinator.partition_count, "active")
        _spans(sheet, coordinator.loads, f.STATE_LOADS, f.STATE_LOAD_MAX)
        writes = coordinator.writes
        sheet.add(f.STATE_WRITES, writes.items)
        _spans(sheet, writes, f.STATE_WRITE_TIME, f.STATE_WRITE_MAX)
        sheet.add(f.STATE_WRITE_FAILURES, writes.failed)
        sheet.add(f.STATE_REPAIRED, coordinator.repaired + self._broker.share.partitions.repaired)


def _spans(sheet: Exposition, spans: Spans, times: Family, longest: Family) -> None:
    sheet.summary(times, spans.count, spans.total_ms / 1000)
    sheet.add(longest, spans.max_ms / 1000)
