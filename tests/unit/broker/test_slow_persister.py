"""What a share partition's leader does while its state is loading."""

from __future__ import annotations

import queue
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.harness.running import RunningBroker
from tests.unit.broker.share_member import ACCEPT, Member, errors, produce

from sharecore.errors import ErrorCode, KafkaError
from sharecore.persister import LoadedState, MemoryPersister, SharePartitionKey
from sharecore.protocol import ApiKey

Outcome = LoadedState | KafkaError
_WAIT_S = 30


class SlowPersister(MemoryPersister):
    """A persister whose reads complete when the test allows it."""

    reads: queue.SimpleQueue[tuple[LoadedState, Callable[[Outcome], None]]] = queue.SimpleQueue()

    def __init__(self, settings: Mapping[str, str]) -> None:
        super().__init__()

    def read(self, key: SharePartitionKey, leader_epoch: int, done: Callable[[Outcome], None]) -> None:
        super().read(key, leader_epoch, lambda state: self.reads.put((state, done)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fails", "told"),
    [(False, ErrorCode.INVALID_RECORD_STATE), (True, ErrorCode.KAFKA_STORAGE_ERROR)],
    ids=["loads", "fails to load"],
)
def test_an_acknowledgement_waits_until_its_leader_has_loaded(
    tmp_path: Path, *, fails: bool, told: ErrorCode
) -> None:
    name = f"{SlowPersister.__module__}:{SlowPersister.__name__}"
    settings = {"group.share.persister.class.name": name, "group.share.assignment.interval.ms": "0"}
    broker = RunningBroker(tmp_path, settings).start()
    try:
        asked = {"name": "foo", "num_partitions": 1, "replication_factor": 1}
        broker.ask(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=5000)
        produce(broker, "foo", 1)
        member = Member(broker, "g", "foo")
        assert errors(member.fetch(0)) == [], "its state is loading"
        member.send(acks={0: [(5, 5, ACCEPT)]}, max_records=0)
        broker.ask(ApiKey.API_VERSIONS, 3, client_software_name="a", client_software_version="1")
        state, done = SlowPersister.reads.get(timeout=_WAIT_S)
        done(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR) if fails else state)
        assert errors(member.client.receive(ApiKey.SHARE_FETCH, 2)) == [(0, 0, told)]
    finally:
        broker.stop()
