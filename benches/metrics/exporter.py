"""What a round of `sharecore export-metrics` costs: groups with state in every partition of a topic."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from tests.harness.broker import Broker
from tests.harness.clients import create_topic, produce

from sharecore.admin.exporter import Exporter, collect_seldom
from sharecore.client.settings import read_connection_settings
from sharecore.client.wire.transport import Transport
from sharecore.protocol import calls

_TOPIC = "jobs"
_ROUNDS = 9
_AT_ONCE = 50


async def fill(transport: Transport, groups: int, partitions: int) -> None:
    """Groups that stand at the beginning of the topic `jobs`."""
    wanted = [{"partition_index": index, "start_offset": 0} for index in range(partitions)]
    for first in range(0, groups, _AT_ONCE):
        await asyncio.gather(
            *(
                transport.any(
                    calls.ALTER_SHARE_GROUP_OFFSETS,
                    {
                        "group_id": f"group-{number:04}",
                        "topics": [{"topic_name": _TOPIC, "partitions": wanted}],
                    },
                )
                for number in range(first, min(groups, first + _AT_ONCE))
            )
        )


async def _rounds(bootstrap: str, groups: int, partitions: int, broker: Broker) -> None:
    transport = Transport(read_connection_settings({"bootstrap.servers": bootstrap}))
    create_topic(bootstrap, _TOPIC, partitions)
    await fill(transport, groups, partitions)
    for partition in range(partitions):
        produce(bootstrap, _TOPIC, [b"job"], partition)
    exporter = Exporter(transport, series_max=groups * partitions)
    collect_seldom()
    took, worked, served = [], [], []
    for _ in range(_ROUNDS):
        began, cpu, of_broker = time.perf_counter(), time.process_time(), broker.cpu_seconds()
        await exporter.look()
        took.append(time.perf_counter() - began)
        worked.append(time.process_time() - cpu)
        served.append(broker.cpu_seconds() - of_broker)
        assert exporter.up, exporter.trouble
    text = (await exporter.metrics()).body
    await transport.close()
    # the first round makes connections and reads all share state
    seconds, own, brokers = (statistics.median(each[1:]) for each in (took, worked, served))
    print(
        f"{groups} groups x {partitions} partitions, {len(text) / 1e6:.1f} MB: a round takes {seconds:.2f} s "
        f"({own:.2f} s of CPU, {brokers:.2f} s of the broker's), the first {took[0]:.2f} s"
    )


def measure(groups: int, partitions: int, kind: str = "sharecore") -> None:
    """Print what a round takes, of a broker in a process of its own."""
    with tempfile.TemporaryDirectory() as home:
        broker = Broker(Path(home), kind)
        broker.start()
        try:
            asyncio.run(_rounds(broker.bootstrap, groups, partitions, broker))
        finally:
            broker.kill()
