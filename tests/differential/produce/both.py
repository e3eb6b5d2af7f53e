"""Sends batches to both brokers, and compares their answers and what consumers read afterwards."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.differential.produce.cases import APPEND_TIME, TOPICS, Case
from tests.differential.produce.known import explain
from tests.harness.broker import Broker
from tests.harness.clients import create_topic
from tests.harness.running import Client

from sharecore._core import decompress
from sharecore.protocol import ApiKey

CLOSED = "the connection was closed"
_SIZE = struct.Struct(">qi")
_HEAD = 61
_LOG_APPEND_TIME = 0x08
_EXPANDED_MAX = 64 << 20
SETTINGS = {"message.max.bytes": str(8 << 20), "auto.create.topics.enable": "false"}


class Side:
    """One broker, and a connection to it."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._client: Client | None = None

    def begin(self) -> None:
        self.broker.start()
        for topic, settings in TOPICS.items():
            create_topic(self.broker.bootstrap, topic, 1, **settings)

    def play(self, case: Case) -> dict[str, Any]:
        """What a case's batch is answered, and what a consumer reads of it."""
        partition = {"index": 0, "records": case.records}
        topics = [{"name": case.topic, "partition_data": [partition]}]
        asked = {"transactional_id": None, "acks": -1, "timeout_ms": 10_000, "topic_data": topics}
        answer = self._ask(ApiKey.PRODUCE, case.version, asked)
        if answer is None:
            return {"answer": CLOSED}
        told = answer.responses[0].partition_responses[0]
        seen: dict[str, Any] = {"error_code": int(told.error_code)}
        if hasattr(told, "record_errors"):
            seen["record_errors"] = [each.batch_index for each in told.record_errors]
        if told.error_code == 0:
            seen["read"] = self._read(case.topic, told.base_offset)
        return seen

    def _ask(self, key: ApiKey, version: int, fields: dict[str, Any]) -> Any:
        if self._client is None:
            self._client = Client(self.broker.port)
        try:
            return self._client.ask(key, version, **fields)
        except EOFError:
            self._client.close()
            self._client = None
            return None

    def _read(self, topic: str, offset: int) -> Any:
        partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1, "log_start_offset": -1}
        asked = {
            "replica_id": -1,
            "max_wait_ms": 0,
            "min_bytes": 0,
            "max_bytes": 1 << 20,
            "isolation_level": 0,
            "topics": [{"topic": topic, "partitions": [partition]}],
            "forgotten_topics_data": [],
        }
        answer = self._ask(ApiKey.FETCH, 11, asked)
        found = answer.responses[0].partitions[0]
        return shown(topic, found.records, offset) if found.error_code == 0 else int(found.error_code)


def shown(topic: str, records: bytes, offset: int) -> dict[str, Any]:
    """Return the fields of the first batch and its records; offsets count from `offset`."""
    base, size = _SIZE.unpack_from(records)
    batch = records[: 12 + size]
    attributes, last, first_ms, max_ms, *producer, count = struct.unpack_from(">hiqqqhii", batch, 21)
    is_brokers_time = bool(attributes & _LOG_APPEND_TIME) and topic == APPEND_TIME
    try:
        expanded = decompress(batch[_HEAD:], attributes & 7, expanded_bytes_max=_EXPANDED_MAX)
    except ValueError as error:
        expanded = str(error).encode()
    return {
        "base": base - offset,
        "attributes": attributes,
        "last_delta": last,
        "first_ms": first_ms,
        "max_ms": "the broker's" if is_brokers_time else max_ms,
        "producer": producer,
        "count": count,
        "records": expanded.hex() if len(expanded) < 2000 else len(expanded),
    }


@contextmanager
def both(home: Path, compression: str = "producer") -> Iterator[tuple[Side, Side]]:
    """Apache Kafka's broker and ours with the topics of the cases, compressed so; killed at the end."""
    settings = SETTINGS | {"compression.type": compression}
    sides = (
        Side(Broker(home / "apache", "apache", settings)),
        Side(Broker(home / "ours", "sharecore", settings)),
    )
    try:
        with ThreadPoolExecutor(2) as at_once:
            list(at_once.map(Side.begin, sides))
        yield sides
    finally:
        for side in sides:
            side.broker.kill()


def compare(sides: tuple[Side, Side], cases: Iterable[Case]) -> tuple[Counter[str], list[str]]:
    """Plays cases on both brokers: how often each known difference shows, and what else differs."""
    counted: Counter[str] = Counter()
    different = []
    for case in cases:
        apache, ours = (side.play(case) for side in sides)
        if apache == ours:
            counted["equal"] += 1
        elif name := explain(case, apache, ours):
            counted[name] += 1
        else:
            different.append(f"{case.name}\n    apache:    {apache}\n    sharecore: {ours}")
    return counted, different
