"""What asking for a right costs beside the request that it is asked for, in CPU time."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import NamedTuple

from tests.harness.batches import batch
from tests.harness.broker import Broker
from tests.harness.wire import Peer

from sharecore.protocol import ApiKey, codec
from sharecore.security.acl import Acl, Operation, PatternType, Permission, ResourceType
from sharecore.security.acls import Acls
from sharecore.security.authorizer import Authorizer
from sharecore.security.principal import Principal
from sharecore.storage import Storage, StorageOptions

REQUESTS = 20_000
PIPELINED = 50
CHECKS = 200_000


class Check(NamedTuple):
    """CPU time in microseconds."""

    entries: int
    request_us: float
    known_us: float
    new_us: float

    @property
    def known_share(self) -> float:
        return self.known_us / self.request_us

    @property
    def new_share(self) -> float:
        return self.new_us / self.request_us


def check_cost(home: Path, entries: int) -> Check:
    """Return a check with so many entries, beside a Produce request of one record that is not synced."""
    known_us, new_us = asyncio.run(_checks(home / "entries", entries))
    return Check(entries, _request_us(home / "broker"), known_us, new_us)


async def _checks(home: Path, entries: int) -> tuple[float, float]:
    home.mkdir()
    storage = Storage(home, StorageOptions(durability="os"))
    storage.attach(asyncio.get_running_loop())
    acls = Acls(storage.catalog)
    kinds = (PatternType.LITERAL, PatternType.PREFIXED)
    await acls.change(
        Acl(
            ResourceType.TOPIC,
            f"topic-{number}",
            kinds[number % 2],
            f"User:user-{number % 100}",
            "*",
            Operation.READ,
            Permission.ALLOW,
        )
        for number in range(entries)
    )
    authorizer = Authorizer(acls)
    asked = (Principal("User", "user-7"), "10.0.0.1", Operation.READ, ResourceType.TOPIC)

    def once(names: list[str]) -> float:
        began = time.process_time()
        for name in names:
            authorizer.allows(*asked, name)
        return (time.process_time() - began) / len(names) * 1e6

    new_us = once([f"topic-{number}-x" for number in range(CHECKS // 4)])
    known_us = once(["topic-107"] * CHECKS)
    storage.close()
    return known_us, new_us


def _request_us(home: Path) -> float:
    broker = Broker(home, "sharecore", {"sharecore.durability": "os"})
    broker.start()
    data = [{"name": "bench", "partition_data": [{"index": 0, "records": batch([b"x" * 100])}]}]
    fields = {"transactional_id": None, "acks": 1, "timeout_ms": 5000, "topic_data": data}
    request = codec(ApiKey.PRODUCE, 9).write_request(1, "bench", fields)
    topic = {"name": "bench", "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    with Peer(broker.port) as peer:
        asked = {"topics": [topic], "timeout_ms": 5000, "validate_only": False}
        peer.socket.sendall(codec(ApiKey.CREATE_TOPICS, 7).write_request(1, "bench", asked))
        peer.receive()
        used = 0.0
        for measured in (False, True):
            used = broker.cpu_seconds()
            for _ in range((REQUESTS if measured else REQUESTS // 4) // PIPELINED):
                peer.socket.sendall(request * PIPELINED)
                for _ in range(PIPELINED):
                    peer.receive()
        used = broker.cpu_seconds() - used
    broker.terminate()
    return used / REQUESTS * 1e6
