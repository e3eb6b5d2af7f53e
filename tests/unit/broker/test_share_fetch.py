"""ShareFetch and ShareAcknowledge over the wire; the errors are those of Apache Kafka 4.3.1."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.harness.batches import batch
from tests.harness.running import Client, RunningBroker, join_share_group

from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey

ACCEPT, RELEASE, REJECT, RENEW = b"\1", b"\2", b"\3", b"\4"
Acks = Mapping[int, Sequence[tuple[int, int, bytes]]]
_groups = itertools.count()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    settings = {"group.share.max.share.sessions": "20", "group.share.assignment.interval.ms": "0"}
    running = RunningBroker(tmp_path_factory.mktemp("data"), settings).start()
    yield running
    running.stop()


class Member:
    """A member of a share group with a share session."""

    def __init__(self, broker: RunningBroker, group: str, topic: str, name: str = "m") -> None:
        self.broker = broker
        self.group = group
        self.name = name
        self.client: Client = broker.connect()
        self.epoch = 0
        joined = join_share_group(self.client, group, name, [topic])
        self.topic_id: UUID = joined.assignment.topic_partitions[0].topic_id

    def _topics(self, partitions: Sequence[int], acks: Acks, topic_id: UUID | None = None) -> list[Any]:
        names = ("first_offset", "last_offset", "acknowledge_types")
        return [
            {
                "topic_id": topic_id or self.topic_id,
                "partitions": [
                    {
                        "partition_index": index,
                        "acknowledgement_batches": [
                            dict(zip(names, each, strict=True)) for each in acks.get(index, ())
                        ],
                    }
                    for index in dict.fromkeys((*partitions, *acks))
                ],
            }
        ]

    def fetch(
        self,
        *partitions: int,
        epoch: int | None = None,
        acks: Acks | None = None,
        topic_id: UUID | None = None,
        forget: Sequence[int] = (),
        version: int = 2,
        **fields: Any,
    ) -> Any:
        """One ShareFetch; the session's epoch counts up by itself."""
        self.send(
            *partitions, epoch=epoch, acks=acks, topic_id=topic_id, forget=forget, version=version, **fields
        )
        return self.client.receive(ApiKey.SHARE_FETCH, version)

    def send(
        self,
        *partitions: int,
        epoch: int | None = None,
        acks: Acks | None = None,
        topic_id: UUID | None = None,
        forget: Sequence[int] = (),
        version: int = 2,
        **fields: Any,
    ) -> None:
        if epoch is None:
            epoch, self.epoch = self.epoch, self.epoch + 1
        limits = {
            "max_wait_ms": 0,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
        }
        self.client.send(
            ApiKey.SHARE_FETCH,
            version,
            group_id=self.group,
            member_id=self.name,
            share_session_epoch=epoch,
            topics=self._topics(partitions, acks or {}, topic_id) if partitions or acks else [],
            forgotten_topics_data=[{"topic_id": self.topic_id, "partitions": forget}] if forget else [],
            **limits | fields,
        )

    def acknowledge(self, acks: Acks, *, epoch: int | None = None, version: int = 2, **fields: Any) -> Any:
        """One ShareAcknowledge."""
        if epoch is None:
            epoch, self.epoch = self.epoch, self.epoch + 1
        return self.client.ask(
            ApiKey.SHARE_ACKNOWLEDGE,
            version,
            group_id=self.group,
            member_id=self.name,
            share_session_epoch=epoch,
            topics=self._topics((), acks) if acks else [],
            **fields,
        )


@pytest.fixture
def group(broker: RunningBroker) -> str:
    name = f"g-{next(_groups)}"
    configs = [{"name": "share.auto.offset.reset", "config_operation": 0, "value": "earliest"}]
    resources = [{"resource_type": 32, "resource_name": name, "configs": configs}]
    answer = broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources)
    assert answer.responses[0].error_code == 0
    return name


@pytest.fixture
def member(broker: RunningBroker, topic: str, group: str) -> Iterator[Member]:
    joined = Member(broker, group, topic)
    yield joined
    joined.client.close()


def produce(broker: RunningBroker, topic: str, count: int, partition: int = 0) -> None:
    data = [{"name": topic, "partition_data": [{"index": partition, "records": batch([b"x"] * count)}]}]
    answer = broker.ask(ApiKey.PRODUCE, 12, acks=-1, timeout_ms=5000, topic_data=data)
    assert answer.responses[0].partition_responses[0].error_code == 0


def acquired(answer: Any) -> dict[int, list[tuple[int, int, int]]]:
    assert answer.error_code == 0, answer
    return {
        part.partition_index: [tuple(each) for each in part.acquired_records]
        for topic in answer.responses
        for part in topic.partitions
        if part.acquired_records
    }


def errors(answer: Any) -> list[tuple[int, int, int]]:
    """Partition, fetch error and acknowledge error."""
    return [
        (part.partition_index, part.error_code, getattr(part, "acknowledge_error_code", 0))
        for topic in answer.responses
        for part in topic.partitions
    ]


@pytest.mark.parametrize("version", [1, 2])
def test_records_are_fetched_acknowledged_and_gone(
    broker: RunningBroker, topic: str, member: Member, version: int
) -> None:
    produce(broker, topic, 10)
    first = member.fetch(0, 1, version=version)
    assert acquired(first) == {0: [(0, 9, 1)]}
    assert first.acquisition_lock_timeout_ms == 30000
    assert first.responses[0].partitions[0].current_leader.leader_id == 1
    assert len(first.responses[0].partitions[0].records) > 61
    settled = member.fetch(acks={0: [(0, 4, ACCEPT), (5, 6, RELEASE), (7, 9, REJECT)]}, version=version)
    assert errors(settled) == [(0, 0, 0)]
    assert acquired(member.fetch(version=version)) == {0: [(5, 6, 2)]}
    answer = member.acknowledge({0: [(5, 6, ACCEPT + REJECT)]}, version=version)
    assert errors(answer) == [(0, 0, 0)]
    assert acquired(member.fetch(version=version, max_wait_ms=100)) == {}


def test_the_first_answer_names_every_partition_that_can_be_fetched(
    broker: RunningBroker, topic: str, member: Member
) -> None:
    produce(broker, topic, 1)
    first = member.fetch(0, 1)
    assert errors(first) == [(0, 0, 0), (1, 0, 0)]
    assert acquired(first) == {0: [(0, 0, 1)]}
    assert errors(member.fetch()) == []
    assert errors(member.fetch(0, 1)) == [], "they are in the session already"
    assert errors(member.fetch(epoch=0)) == []


def test_a_partition_is_named_when_it_comes_into_the_session(
    broker: RunningBroker, topic: str, member: Member
) -> None:
    assert errors(member.fetch(0)) == [(0, 0, 0)]
    assert errors(member.fetch(1)) == [(1, 0, 0)]
    assert errors(member.fetch(forget=[1])) == []
    assert errors(member.fetch(1, max_wait_ms=1)) == [(1, 0, 0)]
    assert errors(member.fetch(2)) == [(2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)]
    grown = {"name": topic, "count": 3, "assignments": None}
    assert broker.ask(ApiKey.CREATE_PARTITIONS, 3, topics=[grown], timeout_ms=5000).results[0].error_code == 0
    Member(broker, member.group, topic, "other")
    assert errors(member.fetch()) == [(2, 0, 0)], "its error is over"
    assert errors(member.fetch()) == []


def test_a_partition_whose_window_is_full_is_not_named(
    broker: RunningBroker, topic: str, member: Member
) -> None:
    produce(broker, topic, 200)
    limit = [{"name": "share.partition.max.record.locks", "config_operation": 0, "value": "100"}]
    resources = [{"resource_type": 32, "resource_name": member.group, "configs": limit}]
    assert broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources).responses[0].error_code == 0
    assert acquired(member.fetch(0, 1)) == {0: [(0, 199, 1)]}
    assert errors(member.fetch(0, 1, epoch=0)) == [(1, 0, 0)]


def test_a_session_is_closed_by_its_last_request(broker: RunningBroker, topic: str, member: Member) -> None:
    produce(broker, topic, 10)
    member.fetch(0)
    last = member.fetch(epoch=-1, acks={0: [(0, 4, ACCEPT)]})
    assert errors(last) == [(0, 0, 0)]
    assert member.fetch(epoch=-1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert member.acknowledge({}, epoch=2).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    other = Member(broker, member.group, topic, "other")
    assert acquired(other.fetch(0)) == {0: [(5, 9, 2)]}, "what was not settled is free at once"


def test_epochs_out_of_order_are_refused_and_do_no_harm(member: Member) -> None:
    wrong = ErrorCode.INVALID_SHARE_SESSION_EPOCH
    member.fetch(0)
    for epoch in (2, 99):
        assert member.fetch(epoch=epoch).error_code == wrong
        assert member.acknowledge({}, epoch=epoch).error_code == wrong
    assert member.acknowledge({}, epoch=0).error_code == wrong
    assert member.fetch().error_code == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"acks": {0: [(0, 0, ACCEPT)]}, "epoch": 0},
        {"share_acquire_mode": 7},
        {"is_renew_ack": True},
        {"is_renew_ack": True, "max_records": 0, "max_bytes": 0},
    ],
)
def test_a_fetch_that_makes_no_sense_is_refused(member: Member, fields: dict[str, Any]) -> None:
    member.fetch(0)
    assert member.fetch(**{"epoch": member.epoch} | fields).error_code == ErrorCode.INVALID_REQUEST
    assert member.fetch().error_code == 0, "the epoch was not used"


@pytest.mark.parametrize(
    ("batches", "code"),
    [
        ([(0, 0, b"\5")], ErrorCode.INVALID_REQUEST),
        ([(0, 0, RENEW)], ErrorCode.INVALID_REQUEST),
        ([(0, 0, ACCEPT + ACCEPT)], ErrorCode.INVALID_REQUEST),
        ([(1, 0, ACCEPT)], ErrorCode.INVALID_REQUEST),
        ([(0, 0, b"")], ErrorCode.INVALID_REQUEST),
        ([(5, 5, ACCEPT), (4, 4, ACCEPT)], ErrorCode.INVALID_REQUEST),
        ([(8, 12, ACCEPT)], ErrorCode.INVALID_REQUEST),
        ([(0, 1, ACCEPT), (1, 2, ACCEPT)], ErrorCode.INVALID_RECORD_STATE),
    ],
)
def test_a_bad_acknowledgement_is_refused_as_a_whole(
    broker: RunningBroker, topic: str, member: Member, batches: Any, code: ErrorCode
) -> None:
    produce(broker, topic, 10)
    member.fetch(0)
    assert errors(member.fetch(acks={0: batches})) == [(0, 0, code)]
    assert errors(member.acknowledge({0: batches})) == [(0, code, 0)]
    assert errors(member.acknowledge({0: [(0, 9, ACCEPT)]})) == [(0, 0, 0)]


def test_topics_and_partitions_that_are_not_there(member: Member) -> None:
    nowhere = UUID(int=99)
    assert errors(member.fetch(0, topic_id=nowhere)) == [(0, ErrorCode.UNKNOWN_TOPIC_ID, 0)]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (7, unknown, unknown) in errors(member.fetch(7, acks={7: [(0, 0, ACCEPT)]}))


def test_forgotten_partitions_are_fetched_no_more(broker: RunningBroker, topic: str, member: Member) -> None:
    produce(broker, topic, 1, partition=0)
    produce(broker, topic, 1, partition=1)
    member.fetch(0, max_bytes=0)
    assert acquired(member.fetch(1, forget=[0])) == {1: [(0, 0, 1)]}
    assert acquired(member.fetch()) == {}
    assert acquired(member.fetch(0)) == {0: [(0, 0, 1)]}


def test_locks_are_renewed_without_fetching(broker: RunningBroker, topic: str, member: Member) -> None:
    produce(broker, topic, 2)
    member.fetch(0, max_records=1)
    produce(broker, topic, 2)
    asked: dict[str, Any] = {"is_renew_ack": True, "min_bytes": 0, "max_bytes": 0, "max_records": 0}
    renewed = member.fetch(acks={0: [(0, 1, RENEW)]}, **asked)
    assert errors(renewed) == [(0, 0, 0)]
    assert acquired(renewed) == {}
    assert errors(member.acknowledge({0: [(0, 1, RENEW)]}, is_renew_ack=True)) == [(0, 0, 0)]


def test_record_limit_gives_no_more_than_asked(broker: RunningBroker, topic: str, member: Member) -> None:
    produce(broker, topic, 10)
    assert acquired(member.fetch(0, max_records=3, share_acquire_mode=1)) == {0: [(0, 2, 1)]}
    assert acquired(member.fetch(max_records=3)) == {0: [(3, 9, 1)]}


def test_a_waiting_fetch_is_answered_when_records_come(
    broker: RunningBroker, topic: str, member: Member
) -> None:
    member.send(0, max_wait_ms=60_000)
    broker.until_received(member.client)
    produce(broker, topic, 1)
    assert acquired(member.client.receive(ApiKey.SHARE_FETCH, 2)) == {0: [(0, 0, 1)]}


def test_a_waiting_fetch_is_answered_when_a_record_is_released(
    broker: RunningBroker, topic: str, member: Member
) -> None:
    produce(broker, topic, 2)
    other = Member(broker, member.group, topic, "other")
    assert acquired(other.fetch(0)) == {0: [(0, 1, 1)]}
    member.send(0, max_wait_ms=60_000)
    broker.until_received(member.client)
    other.acknowledge({0: [(1, 1, RELEASE)]})
    assert acquired(member.client.receive(ApiKey.SHARE_FETCH, 2)) == {0: [(1, 1, 2)]}


def test_requests_leave_nothing_to_the_cycle_collector(
    broker: RunningBroker, topic: str, member: Member
) -> None:
    # its pauses are the slowest answers: a cycle a request makes them frequent
    def work() -> None:
        member.send(0, max_wait_ms=20_000, max_records=1)
        produce(broker, topic, 1)
        offset = acquired(member.client.receive(ApiKey.SHARE_FETCH, 2))[0][0][0]
        member.acknowledge({0: [(offset, offset, ACCEPT)]})
        produce(broker, topic, 1)
        offset = acquired(member.fetch(0, max_wait_ms=20_000))[0][0][0]
        member.fetch(0, acks={0: [(offset, offset, ACCEPT)]}, max_wait_ms=1)

    work()
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for _ in range(20):
            work()
        gc.collect()
        left = {type(one) for one in gc.garbage if type(one).__module__.startswith("sharecore")}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert left == set()


def test_records_of_a_client_that_has_gone_are_free_at_once(
    broker: RunningBroker, topic: str, member: Member
) -> None:
    produce(broker, topic, 2)
    other = Member(broker, member.group, topic, "other")
    assert acquired(other.fetch(0)) == {0: [(0, 1, 1)]}
    # its next fetch waits when it goes, and must not take what its going sets free
    other.send(max_wait_ms=60_000)
    broker.until_received(other.client)
    other.client.close()
    assert acquired(member.fetch(0, max_wait_ms=60_000)) == {0: [(0, 1, 2)]}


def test_a_new_session_answers_the_fetch_of_the_old(
    broker: RunningBroker, topic: str, member: Member
) -> None:
    member.send(0, max_wait_ms=60_000)
    broker.until_received(member.client)
    again = broker.connect()
    member.client, waiting = again, member.client
    assert member.fetch(0, epoch=0).error_code == 0
    assert acquired(waiting.receive(ApiKey.SHARE_FETCH, 2)) == {}


def test_a_new_session_goes_on_with_what_the_member_holds(
    broker: RunningBroker, topic: str, member: Member
) -> None:
    produce(broker, topic, 2)
    assert acquired(member.fetch(0)) == {0: [(0, 1, 1)]}
    member.epoch = 0
    assert acquired(member.fetch(0)) == {}
    assert errors(member.fetch(acks={0: [(0, 0, ACCEPT)]})) == [(0, 0, 0)]
    member.fetch(epoch=-1)
    other = Member(broker, member.group, topic, "other")
    assert acquired(other.fetch(0)) == {0: [(1, 1, 2)]}


def test_a_session_outlives_a_connection_that_it_was_not_opened_over(
    broker: RunningBroker, topic: str, member: Member
) -> None:
    produce(broker, topic, 2)
    opener = member.client
    assert acquired(member.fetch(0, max_records=1, share_acquire_mode=1)) == {0: [(0, 0, 1)]}
    member.client = broker.connect()
    assert acquired(member.fetch()) == {0: [(1, 1, 1)]}
    broker.until_gone(member.client)
    member.client = broker.connect()
    assert errors(member.fetch(acks={0: [(0, 0, ACCEPT)]})) == [(0, 0, 0)]
    broker.until_gone(opener)
    other = Member(broker, member.group, topic, "other")
    assert acquired(other.fetch(0)) == {0: [(1, 1, 2)]}
    assert member.fetch().error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_sessions_are_bounded(broker: RunningBroker, topic: str, group: str) -> None:
    client = broker.connect()
    codes = set()
    for number in range(25):
        answer = client.ask(
            ApiKey.SHARE_FETCH,
            2,
            group_id=group,
            member_id=f"m{number}",
            share_session_epoch=0,
            max_wait_ms=0,
            min_bytes=0,
            max_records=1,
            batch_size=1,
            topics=[],
            forgotten_topics_data=[],
        )
        codes.add(answer.error_code)
    assert codes == {0, ErrorCode.SHARE_SESSION_LIMIT_REACHED}
    client.close()
    broker.until(lambda running: not any(session.group_id == group for session in running.share.sessions))
    assert Member(broker, group, topic, "late").fetch(0).error_code == 0


def test_a_restarted_state_is_loaded_again(broker: RunningBroker, topic: str, member: Member) -> None:
    produce(broker, topic, 10)
    member.fetch(0)
    member.fetch(epoch=-1)
    heartbeat = {"group_id": member.group, "member_id": member.name, "member_epoch": -1}
    assert member.client.ask(ApiKey.SHARE_GROUP_HEARTBEAT, 1, **heartbeat).error_code == 0
    partitions = [{"partition_index": 0, "start_offset": 7}]
    wanted = {"group_id": member.group, "topics": [{"topic_name": topic, "partitions": partitions}]}
    assert broker.ask(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, **wanted).error_code == 0
    again = Member(broker, member.group, topic)
    assert acquired(again.fetch(0)) == {0: [(7, 9, 1)]}


def test_the_state_topic_is_pruned_as_often_as_configured(tmp_path: Path) -> None:
    settings = {
        "group.share.assignment.interval.ms": "0",
        "num.partitions": "1",
        "share.coordinator.state.topic.prune.interval.ms": "100",
        "share.coordinator.snapshot.update.records.per.snapshot": "1",
    }
    running = RunningBroker(tmp_path, settings).start()
    try:
        asked = {"name": "foo", "num_partitions": 1, "replication_factor": 1}
        running.ask(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=5000)
        member = Member(running, "group", "foo")
        member.fetch(0)
        produce(running, "foo", 20)
        assert acquired(member.fetch(0)) == {0: [(0, 19, 1)]}
        for offset in range(20):
            member.acknowledge({0: [(offset, offset, ACCEPT)]})
        earliest = [{"partition_index": index, "timestamp": -2} for index in range(2)]
        wanted = {"replica_id": -1, "topics": [{"name": "__share_group_state", "partitions": earliest}]}
        running.until(
            lambda broker: any(
                log.start_offset
                for topic in broker.topics
                if topic.name == "__share_group_state"
                for log in topic.partitions
            )
        )
        answer = running.ask(ApiKey.LIST_OFFSETS, 7, isolation_level=0, **wanted)
        assert sum(partition.offset for partition in answer.topics[0].partitions) > 0
    finally:
        running.stop()
