"""What metrics cost: `make bench-metrics`.

A broker of its own has 1,000 groups with state in 100 partitions each, which the exporter looks at in rounds.

A broker in this process leads share partitions of 100 groups, each with leases. A scrape's CPU time is
measured, and the CPU time of requests, with metrics and without, in turns.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import cast

from benches.metrics.exporter import measure
from benches.metrics.page import measure_page

from sharecore.broker.broker import Broker
from sharecore.broker.metrics.listener import BrokerMetrics
from sharecore.config import BrokerConfig
from sharecore.metrics.requests import RequestTimes
from sharecore.network import Answer, Connection
from sharecore.sharestate.keys import SharePartitionKey

_EVERY_S = 5.0
_SCRAPES = 11
_ROUNDS, _REQUESTS = 21, 200_000


async def _led(broker: Broker, groups: int, partitions: int) -> None:
    """Share partitions with ten records each, leased in two deliveries."""
    await broker.topics.create("jobs", partitions)
    topic = broker.topics.get("jobs")
    assert topic is not None
    for log in topic.partitions:
        log.append_local([(None, b"job")] * 20, now_ms=0)
    led = []
    for number in range(groups):
        for index in range(partitions):
            key = SharePartitionKey(f"group-{number:03}", topic.topic_id, index)
            broker.share.coordinator.initialize(key, 0, 0, lambda error: None)
            led.append(broker.share.partitions.get(*key))
            led[-1].load()
    for leader in led:
        while leader.engine is None:
            assert leader.error is None, leader.error
            # state is read once it is durable
            await asyncio.sleep(0.01)
        for first, count in ((0, 10), (0, 5)):
            leader.engine.acquire(0, "member", [(first, first + count - 1)], first)
            leader.engine.release(0, "member")
        leader.engine.acquire(0, "member", [(0, 9)], 0)


async def _scrapes(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as directory:
        series = {"sharecore.metrics.series.max": str(arguments.series)}
        config = BrokerConfig.from_properties(
            {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(Path(directory) / "data"), **series}
        )
        broker = Broker(config)
        await broker.start()
        await _led(broker, arguments.groups, arguments.partitions)
        metrics = BrokerMetrics(broker, None)
        for kind, messages in (("text", False), ("messages", True)):
            took = []
            for _ in range(_SCRAPES):
                began = time.process_time()
                written = await metrics.render(messages=messages)
                took.append(time.process_time() - began)
            median = statistics.median(took[1:])
            print(
                f"{arguments.groups * arguments.partitions} share partitions, "
                f"{arguments.series} with series: {median * 1000:.1f} ms of CPU a scrape of "
                f"{len(written) / 1e6:.2f} MB of {kind}, "
                f"{median / _EVERY_S:.2%} of a core at one each {_EVERY_S:g} s"
            )
        await broker.stop()


def _requests() -> None:
    def serve(connection: Connection, frame: bytes) -> Answer:
        return parts

    parts = [b"answer"]
    frame = b"\x00\x4f\x00\x02" + bytes(60)
    connection = cast(Connection, object())
    counted = RequestTimes(serve).on_frame
    costs = []
    for _ in range(_ROUNDS):
        seconds = []
        for call in (serve, counted):
            began = time.process_time()
            for _ in range(_REQUESTS):
                call(connection, frame)
            seconds.append(time.process_time() - began)
        costs.append((seconds[1] - seconds[0]) / _REQUESTS)
    print(f"counting and timing a request: {min(costs) * 1e6:.2f} us of CPU")


def main() -> None:
    """Print all of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--groups", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=100, help="of the topic that all groups read")
    parser.add_argument("--series", type=int, default=1000, help="sharecore.metrics.series.max")
    parser.add_argument("--only", choices=("scrape", "request", "exporter", "page"))
    parser.add_argument("--exported", type=int, default=1000, help="groups that the exporter looks at")
    parser.add_argument("--watched", type=int, default=10, help="groups that the page shows")
    arguments = parser.parse_args()
    if arguments.only in (None, "scrape"):
        asyncio.run(_scrapes(arguments))
    if arguments.only in (None, "request"):
        _requests()
    if arguments.only in (None, "exporter"):
        measure(arguments.exported, arguments.partitions)
    if arguments.only in (None, "page"):
        measure_page(arguments.watched, arguments.partitions)


if __name__ == "__main__":
    main()
