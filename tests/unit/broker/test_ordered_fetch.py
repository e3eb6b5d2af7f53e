"""With order by key, a fetch looks once its own acknowledgements are durable, as they free keys."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.harness.batches import keyed_batch
from tests.harness.running import RunningBroker
from tests.unit.broker.share_member import ACCEPT, Member, acquired, errors

from sharecore._core import Write
from sharecore.errors import ErrorCode, KafkaError
from sharecore.persister import MemoryPersister, SharePartitionKey
from sharecore.persister.spi import Done
from sharecore.protocol import ApiKey

_WAIT_S = 30


class SlowWriter(MemoryPersister):
    """A persister whose writes end when the test lets them, once it says so."""

    is_slow = False
    pending: queue.SimpleQueue[Callable[[KafkaError | None], None]] = queue.SimpleQueue()

    def __init__(self, settings: Mapping[str, str]) -> None:
        super().__init__()

    def write(
        self, key: SharePartitionKey, state_epoch: int, leader_epoch: int, write: Write, done: Done
    ) -> None:
        at_once = super().write
        if not self.is_slow:
            at_once(key, state_epoch, leader_epoch, write, done)
            return

        def end(error: KafkaError | None) -> None:
            if error is None:
                at_once(key, state_epoch, leader_epoch, write, done)
            else:
                done(error)

        self.pending.put(end)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    name = f"{SlowWriter.__module__}:{SlowWriter.__name__}"
    settings = {"group.share.persister.class.name": name, "group.share.assignment.interval.ms": "0"}
    running = RunningBroker(tmp_path, settings).start()
    yield running
    SlowWriter.is_slow = False
    running.stop()


def keyed(broker: RunningBroker, *keys: bytes, partitions: int = 1) -> None:
    """Produce records with these keys to each partition, for a group in their order."""
    asked = {"name": "foo", "num_partitions": partitions, "replication_factor": 1}
    broker.ask(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=5000)
    wanted = {"share.auto.offset.reset": "earliest", "share.ordering": "key"}
    configs = [{"name": name, "config_operation": 0, "value": value} for name, value in wanted.items()]
    resources = [{"resource_type": 32, "resource_name": "g", "configs": configs}]
    assert broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources).responses[0].error_code == 0
    records = keyed_batch([(key, b"x") for key in keys])
    parts = [{"index": index, "records": records} for index in range(partitions)]
    data = [{"name": "foo", "partition_data": parts}]
    answer = broker.ask(ApiKey.PRODUCE, 12, acks=-1, timeout_ms=5000, topic_data=data)
    assert not any(part.error_code for part in answer.responses[0].partition_responses)


def first_of(member: Member) -> dict[int, list[tuple[int, int, int]]]:
    """Fetch one record, which may wait for the state to load."""
    return acquired(member.fetch(0, max_records=1, max_wait_ms=10_000))


def end_a_write(broker: RunningBroker, error: KafkaError | None = None) -> None:
    end = SlowWriter.pending.get(timeout=_WAIT_S)
    broker.look(lambda running: end(error))


def test_an_answer_brings_all_that_is_ready_once_its_acknowledgements_are_durable(
    broker: RunningBroker,
) -> None:
    keyed(broker, b"a", b"a", b"b")
    member = Member(broker, "g", "foo")
    assert first_of(member) == {0: [(0, 0, 1)]}
    SlowWriter.is_slow = True
    member.send(acks={0: [(0, 0, ACCEPT)]}, max_wait_ms=_WAIT_S * 1000)
    end_a_write(broker)
    answer = member.client.receive(ApiKey.SHARE_FETCH, 2)
    assert acquired(answer) == {0: [(1, 2, 1)]}


def test_another_member_gets_what_is_ready_meanwhile(broker: RunningBroker) -> None:
    keyed(broker, b"a", b"a", b"b")
    member, other = Member(broker, "g", "foo"), Member(broker, "g", "foo", "n")
    assert first_of(member) == {0: [(0, 0, 1)]}
    SlowWriter.is_slow = True
    member.send(acks={0: [(0, 0, ACCEPT)]}, max_wait_ms=_WAIT_S * 1000)
    assert acquired(other.fetch(0, max_wait_ms=10_000)) == {0: [(2, 2, 1)]}
    end_a_write(broker)
    assert acquired(member.client.receive(ApiKey.SHARE_FETCH, 2)) == {0: [(1, 1, 1)]}


def test_members_take_turns_at_a_key(broker: RunningBroker) -> None:
    """A member whose acknowledgements free a key looks after those that have waited for it."""
    keyed(broker, *[b"a"] * 4)
    member, other = Member(broker, "g", "foo"), Member(broker, "g", "foo", "n")
    assert first_of(member) == {0: [(0, 0, 1)]}
    SlowWriter.is_slow = True
    other.send(0, max_records=1, max_wait_ms=10_000)
    broker.until_received(other.client)
    for offset in range(3):
        member.send(acks={0: [(offset, offset, ACCEPT)]}, max_records=1, max_wait_ms=10_000)
        end_a_write(broker)
        assert acquired(other.client.receive(ApiKey.SHARE_FETCH, 2)) == {0: [(offset + 1, offset + 1, 1)]}
        member, other = other, member


def test_an_answer_brings_each_partition_whose_acknowledgements_free_a_key(broker: RunningBroker) -> None:
    keyed(broker, b"a", b"a", partitions=2)
    member = Member(broker, "g", "foo")
    leased = acquired(member.fetch(0, 1, max_wait_ms=10_000))
    while len(leased) < 2:
        leased |= acquired(member.fetch(max_wait_ms=10_000))
    assert leased == {0: [(0, 0, 1)], 1: [(0, 0, 1)]}
    assert acquired(member.fetch()) == {}, "the session has found both empty"
    SlowWriter.is_slow = True
    member.send(acks={at: [(0, 0, ACCEPT)] for at in range(2)}, max_wait_ms=_WAIT_S * 1000)
    for _ in range(2):
        end_a_write(broker)
    assert acquired(member.client.receive(ApiKey.SHARE_FETCH, 2)) == {0: [(1, 1, 1)], 1: [(1, 1, 1)]}


def test_acknowledgements_that_are_not_written_end_the_wait_too(broker: RunningBroker) -> None:
    keyed(broker, b"a", b"a", b"b")
    member = Member(broker, "g", "foo")
    first_of(member)
    SlowWriter.is_slow = True
    member.send(acks={0: [(0, 0, ACCEPT)]}, max_wait_ms=_WAIT_S * 1000)
    end_a_write(broker, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    answer = member.client.receive(ApiKey.SHARE_FETCH, 2)
    assert acquired(answer) == {0: [(2, 2, 1)]}
    assert [told[2] for told in errors(answer)] == [ErrorCode.KAFKA_STORAGE_ERROR]


def test_a_fetch_looks_when_its_time_is_over(broker: RunningBroker) -> None:
    keyed(broker, b"a", b"a", b"b")
    member = Member(broker, "g", "foo")
    first_of(member)
    SlowWriter.is_slow = True
    member.send(acks={0: [(0, 0, ACCEPT)]}, max_wait_ms=1)
    end = SlowWriter.pending.get(timeout=_WAIT_S)
    broker.until(lambda running: _is_leased(running, 2))
    broker.look(lambda running: end(None))
    assert acquired(member.client.receive(ApiKey.SHARE_FETCH, 2)) == {0: [(2, 2, 1)]}


def _is_leased(running: Any, records: int) -> bool:
    """Return whether the member holds so many records."""
    by_topic = running.share.partitions.by_topic()
    leaders = [leader for by_index in by_topic.values() for leader in by_index.values()]
    held: int = sum(leader.engine.held_by("m") for leader in leaders)
    return held == records
