"""A data directory and what was confirmed to its clients, and ways to damage a copy of it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tests.harness.batches import batch, values_of
from tests.harness.running import RunningBroker
from tests.unit.broker.share_member import ACCEPT, Member, acquired

from sharecore.broker.store import backend as store_backend
from sharecore.config import BrokerConfig
from sharecore.protocol import ApiKey
from sharecore.storage import StorageOptions

SETTINGS = {"share.coordinator.state.topic.num.partitions": "1", "offsets.topic.num.partitions": "1"}
TOPIC, GROUP, PARTITIONS = "t", "g", 2
_ROUNDS, _RECORDS = 30, 6


@dataclass
class Promise:
    """What clients know: values of each partition from offset 0 on, and offsets.

    Args:
        start_offset: the share group has accepted everything before it, in partition 0.
        committed: a plain group's offset of partition 0.
    """

    values: list[list[str]]
    start_offset: int
    committed: int


@contextmanager
def small_segments() -> Iterator[None]:
    """Segments that a few batches fill, so that most of a directory is sealed."""
    original = store_backend._storage_options

    def small(config: BrokerConfig) -> StorageOptions:
        return replace(original(config), segment_bytes=8 << 10, cache_bytes=0)

    store_backend._storage_options = small
    try:
        yield
    finally:
        store_backend._storage_options = original


def make(directory: Path) -> Promise:
    """Fill a directory through a broker, which then stops."""
    with small_segments():
        broker = RunningBroker(directory, SETTINGS).start()
        asked = {"name": TOPIC, "num_partitions": PARTITIONS, "replication_factor": 1}
        broker.ask(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=5000)
        configs = [{"name": "share.auto.offset.reset", "config_operation": 0, "value": "earliest"}]
        resources = [{"resource_type": 32, "resource_name": GROUP, "configs": configs}]
        broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources)
        values: list[list[str]] = [[] for _ in range(PARTITIONS)]
        start_offset = 0
        member = Member(broker, GROUP, TOPIC)
        for number in range(_ROUNDS):
            for partition in range(PARTITIONS):
                some = [f"{partition}-{number}-{each}" + "." * 150 for each in range(_RECORDS)]
                data = [{"index": partition, "records": batch([each.encode() for each in some])}]
                topics = [{"name": TOPIC, "partition_data": data}]
                answer = broker.ask(ApiKey.PRODUCE, 9, acks=-1, timeout_ms=5000, topic_data=topics)
                assert answer.responses[0].partition_responses[0].error_code == 0
                values[partition] += some
            if number % 3 == 2:
                for first, last, _ in acquired(member.fetch(0, max_wait_ms=500, max_records=12)).get(0, []):
                    assert member.acknowledge({0: [(first, last, ACCEPT)]}).error_code == 0
                    start_offset = last + 1
        committed = _commit(broker)
        broker.stop()
    return Promise(values, start_offset, committed)


def _commit(broker: RunningBroker) -> int:
    part = {"partition_index": 0, "committed_offset": 17, "committed_metadata": ""}
    topics = [{"name": TOPIC, "partitions": [part]}]
    identity = {"group_id": "plain", "generation_id_or_member_epoch": -1, "member_id": ""}
    answer = broker.ask(ApiKey.OFFSET_COMMIT, 8, **identity, topics=topics)
    assert answer.topics[0].partitions[0].error_code == 0
    return 17


def save(promise: Promise, path: Path) -> None:
    """Write a promise to a file."""
    path.write_text(json.dumps(asdict(promise)))


def load(path: Path) -> Promise:
    """Read a promise from a file."""
    return Promise(**json.loads(path.read_text()))


def broken(broker: RunningBroker, promise: Promise) -> list[str]:
    """What a running broker does not have of a promise. An error in place of an answer counts as told."""
    found = []
    for partition, values in enumerate(promise.values):
        offset, told = 0, False
        while offset < len(values):
            asked = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
            topics = [{"topic": TOPIC, "partitions": [asked]}]
            answer = broker.ask(
                ApiKey.FETCH, 12, max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=topics
            )
            part = answer.responses[0].partitions[0]
            if part.error_code:
                told = True
                break
            records = values_of(part.records or b"")
            if not records:
                found.append(f"partition {partition} ends at {offset}, not at {len(values)}")
                break
            for at, value in records:
                if at >= len(values) or value.decode() != values[at]:
                    found.append(f"partition {partition}, offset {at}: another record")
            offset = records[-1][0] + 1
        if told:
            found.append(f"partition {partition}: told at {offset}")
    found += _share_offset(broker, promise) + _committed(broker, promise)
    return found


def _share_offset(broker: RunningBroker, promise: Promise) -> list[str]:
    groups = [{"group_id": GROUP, "topics": [{"topic_name": TOPIC, "partitions": [0]}]}]
    group = broker.ask(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 0, groups=groups).groups[0]
    if group.error_code:
        return [f"share group: told ({group.error_code})"]
    part = group.topics[0].partitions[0]
    if part.error_code:
        return [f"share group: told ({part.error_code})"]
    if part.start_offset != promise.start_offset:
        return [f"share group: start offset {part.start_offset}, not {promise.start_offset}"]
    return []


def _committed(broker: RunningBroker, promise: Promise) -> list[str]:
    topics = [{"name": TOPIC, "partition_indexes": [0]}]
    groups = [{"group_id": "plain", "member_id": None, "member_epoch": -1, "topics": topics}]
    group = broker.ask(ApiKey.OFFSET_FETCH, 9, groups=groups, require_stable=False).groups[0]
    if group.error_code or group.topics[0].partitions[0].error_code:
        return ["committed offset: told"]
    offset = group.topics[0].partitions[0].committed_offset
    return [] if offset == promise.committed else [f"committed offset {offset}, not {promise.committed}"]


# damage

Damage = Callable[[Path, random.Random], str]


def _files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.iterdir() if path.is_file() and path.stat().st_size)


def _change(path: Path, change: Callable[[bytearray], Any]) -> None:
    content = bytearray(path.read_bytes())
    change(content)
    path.write_bytes(content)


def bit_flip(directory: Path, rng: random.Random) -> str:
    path = rng.choice(_files(directory))
    at = rng.randrange(path.stat().st_size)

    def flip(content: bytearray) -> None:
        content[at] ^= 1 << rng.randrange(8)

    _change(path, flip)
    return f"{path.name} at {at}"


def zeros(directory: Path, rng: random.Random) -> str:
    path = rng.choice(_files(directory))
    size = path.stat().st_size
    at, length = rng.randrange(size), rng.choice([16, 512, 4096])

    def clear(content: bytearray) -> None:
        content[at : at + length] = bytes(len(content[at : at + length]))

    _change(path, clear)
    return f"{path.name} at {at}, {length} bytes"


def truncation(directory: Path, rng: random.Random) -> str:
    path = rng.choice(_files(directory))
    size = rng.randrange(path.stat().st_size)
    with path.open("r+b") as file:
        file.truncate(size)
    return f"{path.name} to {size} bytes"


def dropped(directory: Path, rng: random.Random) -> str:
    path = rng.choice(_files(directory))
    path.unlink()
    return path.name


def doubled(directory: Path, rng: random.Random) -> str:
    path, other = rng.choice(_files(directory)), rng.choice(_files(directory))
    other.write_bytes(path.read_bytes())
    return f"{path.name} over {other.name}"


def swapped(directory: Path, rng: random.Random) -> str:
    one, two = rng.sample(_files(directory), 2)
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)
    return f"{one.name} and {two.name}"


def garbage(directory: Path, rng: random.Random) -> str:
    path = rng.choice(_files(directory))
    if rng.random() < 0.5:
        with path.open("ab") as file:
            file.write(rng.randbytes(rng.choice([1, 100, 5000])))
        return f"behind {path.name}"
    path.write_bytes(rng.randbytes(rng.choice([1, 100, 5000])))
    return f"in place of {path.name}"


DAMAGES: dict[str, Damage] = {
    each.__name__: each for each in (bit_flip, zeros, truncation, dropped, doubled, swapped, garbage)
}
