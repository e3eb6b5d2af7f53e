"""What an open page costs the broker: groups with state in all partitions of a topic, and who watches."""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path

from benches.metrics.exporter import fill
from tests.harness.broker import Broker, free_port
from tests.harness.browser import Browser
from tests.harness.clients import create_topic

from sharecore.client.settings import read_connection_settings
from sharecore.client.wire.transport import Transport

_TOPIC = "jobs"
_EVERY_S = 3.0
_SETTLE_S, _MEASURE_S = 6.0, 30.0


async def _filled(bootstrap: str, groups: int, partitions: int) -> None:
    transport = Transport(read_connection_settings({"bootstrap.servers": bootstrap}))
    create_topic(bootstrap, _TOPIC, partitions)
    await fill(transport, groups, partitions)
    await transport.close()


def _watch(port: int, path: str, seen: list[int], ended: threading.Event, **values: object) -> None:
    with closing(Browser(port).looks(path, **values)) as looks:
        for look in looks:
            seen.append(len(str(look)))
            if ended.is_set():
                return


def _cpu(broker: Broker) -> float:
    """Seconds in half a minute."""
    began = broker.cpu_seconds()
    time.sleep(_MEASURE_S)
    return broker.cpu_seconds() - began


def _watched(broker: Broker, port: int, path: str, values: dict[str, str]) -> tuple[float, int]:
    """CPU seconds in half a minute with a window open, and how many looks it was told of."""
    seen: list[int] = []
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(port, path, seen, ended), kwargs=values, daemon=True)
    watcher.start()
    time.sleep(_SETTLE_S)
    before = len(seen)
    more = _cpu(broker)
    looks = len(seen) - before
    ended.set()
    watcher.join()
    return more, looks


def measure_page(groups: int, partitions: int) -> None:
    """Print what a broker in a process of its own needs more while somebody watches."""
    port = free_port()
    with tempfile.TemporaryDirectory() as home:
        broker = Broker(Path(home), settings={"sharecore.page.listener": f"127.0.0.1:{port}"})
        broker.start()
        try:
            asyncio.run(_filled(broker.bootstrap, groups, partitions))
            time.sleep(_SETTLE_S)
            idle = _cpu(broker)
            for name, path, values in (
                ("the list of groups", "/api/groups", {}),
                ("one group", "/api/group", {"group": "group-0000"}),
            ):
                more, looks = _watched(broker, port, path, values)
                # a busy machine is looked at more seldom
                print(
                    f"{groups * partitions} share partitions, {name} on the page: "
                    f"{(more - idle) / looks * 1000:.1f} ms of CPU a look, "
                    f"{(more - idle) / looks / _EVERY_S:.2%} of a core at one each {_EVERY_S:g} s; "
                    f"{idle / _MEASURE_S:.2%} without a page"
                )
        finally:
            broker.kill()
