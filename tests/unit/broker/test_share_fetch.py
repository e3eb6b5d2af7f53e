"""ShareFetch and ShareAcknowledge over the wire; the errors are those of Apache Kafka 4.3.1."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.harness.running import RunningBroker
from tests.unit.broker.share_member import (
    ACCEPT,
    REJECT,
    RELEASE,
    RENEW,
    Acks,
    Member,
    acquired,
    errors,
    produce,
)

from sharecore.broker.broker import Broker
from sharecore.broker.cluster import SingleBroker
from sharecore.broker.store.backend import StoreBackend
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import ApiKey

LINGER_S = 0.005
"""For this long after a commit, lingering writes stay uncommitted."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    settings = {
        "sharecore.durability": "os",  # a busy disk syncs more slowly than a write may linger
        "group.share.max.share.sessions": "20",
        "group.share.max.size": "20",
        "group.share.assignment.interval.ms": "0",
    }
    running = RunningBroker(tmp_path_factory.mktemp("data"), settings).start()
    yield running
    running.stop()


@pytest.mark.parametrize("version", [1, 2])
def test_records_are_fetched_acknowledged_and_gone(
    broker: RunningBroker, topic: str, member: Member, version: int
) -> None:
    produce(broker, topic, 10)
    first = member.fetch(0, 1, version=version)
    assert acquired(first) == {0: [(0, 9, 1)]}
    assert first.acquisition_lock_timeout_ms == 30000
    assert first.responses[0].partitions[0].current_leader == (0, 0), "told where it is another one"
    assert len(first.responses[0].partitions[0].records) > 61
    settled = member.fetch(acks={0: [(0, 4, ACCEPT), (5, 6, RELEASE), (7, 9, REJECT)]}, version=version)
    assert errors(settled) == [(0, 0, 0)]
    assert acquired(member.fetch(version=version)) == {0: [(5, 6, 2)]}
    answer = member.acknowledge({0: [(5, 6, ACCEPT + REJECT)]}, version=version)
    assert errors(answer) == [(0, 0, 0)]
    assert acquired(member.fetch(version=version, max_wait_ms=100)) == {}


def test_partitions_that_are_named_beside_acknowledgements_are_told_of(
    broker: RunningBroker, topic: str, member: Member
) -> None:
    produce(broker, topic, 10)
    member.fetch(0, 1)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    told = [(0, 0, 0), (1, 0, 0), (7, unknown, unknown)]
    assert sorted(errors(member.fetch(1, 7, acks={0: [(0, 0, ACCEPT)]}))) == told
    acks: Acks = {0: [(1, 1, ACCEPT)], 1: [], 7: []}
    assert sorted(errors(member.acknowledge(acks))) == [(0, 0, 0), (1, 0, 0), (7, unknown, 0)]
    assert errors(member.acknowledge({1: [], 7: []})) == [(7, unknown, 0)]
    assert errors(member.acknowledge({0: [(1, 0, ACCEPT)], 1: []})) == [(0, ErrorCode.INVALID_REQUEST, 0)]


def test_a_fetch_of_partitions_that_are_not_there_does_not_wait(member: Member) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert errors(member.fetch(7, max_wait_ms=60_000)) == [(7, unknown, 0)]


@pytest.mark.parametrize(
    "fields",
    [
        {"acks": {0: [(0, 0, ACCEPT)]}, "epoch": 0},
        {"is_renew_ack": True},
        {"is_renew_ack": True, "max_records": 0, "max_bytes": 0},
    ],
)
def test_a_fetch_that_makes_no_sense_is_refused(member: Member, fields: dict[str, Any]) -> None:
    member.fetch(0)
    assert member.fetch(**{"epoch": member.epoch} | fields).error_code == ErrorCode.INVALID_REQUEST
    assert member.fetch().error_code == 0, "the epoch was not used"


def test_limits_that_make_no_sense_are_refused_where_there_is_something_to_fetch(member: Member) -> None:
    member.fetch()
    assert member.fetch(epoch=1, share_acquire_mode=7).error_code == 0
    assert member.fetch(0, epoch=2, share_acquire_mode=7).error_code == ErrorCode.INVALID_REQUEST
    assert member.fetch(epoch=3).error_code == 0, "the session has taken notice, as with Kafka"
    assert errors(member.fetch(epoch=4, max_bytes=-1)) == [(0, ErrorCode.INVALID_REQUEST, 0)]
    assert errors(member.fetch(epoch=5)) == [(0, 0, 0)]


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


def test_the_last_counts_of_a_partition_that_is_named_twice(
    broker: RunningBroker, topic: str, member: Member
) -> None:
    def named(partition: int, *offsets: int) -> dict[str, Any]:
        names = ("first_offset", "last_offset", "acknowledge_types")
        batches = [dict(zip(names, (each, each, ACCEPT), strict=True)) for each in offsets]
        return {"partition_index": partition, "acknowledgement_batches": batches}

    produce(broker, topic, 2)
    assert acquired(member.fetch(0, 1)) == {0: [(0, 1, 1)]}
    topics = [
        {"topic_id": member.topic_id, "partitions": [named(0, 0), named(1)]},
        {"topic_id": None, "partitions": [named(0)]},
        {"topic_id": member.topic_id, "partitions": [named(0, 1)]},
    ]
    own = {"group_id": member.group, "member_id": member.name, "share_session_epoch": 1}
    answer = member.client.ask(ApiKey.SHARE_ACKNOWLEDGE, 2, topics=topics, **own)
    assert sorted(errors(answer)) == [(0, 0, 0), (0, ErrorCode.UNKNOWN_TOPIC_ID, 0), (1, 0, 0)]
    # the first record was not acknowledged
    member.epoch = 2
    assert errors(member.acknowledge({0: [(1, 1, ACCEPT)]})) == [(0, ErrorCode.INVALID_RECORD_STATE, 0)]
    assert errors(member.acknowledge({0: [(0, 0, ACCEPT)]})) == [(0, 0, 0)]


def test_locks_are_renewed_without_fetching(broker: RunningBroker, topic: str, member: Member) -> None:
    produce(broker, topic, 2)
    member.fetch(0, max_records=1)
    produce(broker, topic, 2)
    asked: dict[str, Any] = {"is_renew_ack": True, "min_bytes": 0, "max_bytes": 0, "max_records": 0}
    renewed = member.fetch(acks={0: [(0, 1, RENEW)]}, **asked)
    assert errors(renewed) == [(0, 0, 0)]
    assert acquired(renewed) == {}
    assert errors(member.acknowledge({0: [(0, 1, RENEW)]}, is_renew_ack=True)) == [(0, 0, 0)]


def test_a_renewal_hears_of_no_partition_that_cannot_be_fetched(
    broker: RunningBroker, topic: str, member: Member
) -> None:
    produce(broker, topic, 1)
    member.fetch(0)
    nowhere = UUID(int=99)
    refused = (0, ErrorCode.UNKNOWN_TOPIC_ID, 0)
    assert errors(member.fetch(0, topic_id=nowhere)) == [refused]
    asked: dict[str, Any] = {"is_renew_ack": True, "min_bytes": 0, "max_bytes": 0, "max_records": 0}
    assert errors(member.fetch(acks={0: [(0, 0, RENEW)]}, **asked)) == [(0, 0, 0)]
    assert errors(member.fetch(**asked)) == []
    assert errors(member.fetch()) == [refused], "a fetch of records hears of it again"


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


def test_who_finds_nothing_at_a_broker_that_leads_no_more_is_sent_away(
    broker: RunningBroker, topic: str, member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a broker that may have been replaced without knowing it would be asked forever."""

    def lost(*_: object) -> None:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    produce(broker, topic, 1)
    assert acquired(member.fetch(0, 1)) == {0: [(0, 0, 1)]}
    assert errors(member.fetch(acks={0: [(0, 0, ACCEPT)]})) == [(0, 0, 0)]
    assert errors(member.fetch(max_wait_ms=0)) == []
    with monkeypatch.context() as without:
        without.setattr(SingleBroker, "leads_all", False)
        without.setattr(SingleBroker, "check_leader", lost)
        broker.look(Broker._publish_checks)
        refused = errors(member.fetch(max_wait_ms=0))
    assert refused == [(0, ErrorCode.NOT_LEADER_OR_FOLLOWER, 0), (1, ErrorCode.NOT_LEADER_OR_FOLLOWER, 0)]
    assert errors(member.fetch(max_wait_ms=0)) == [(0, 0, 0), (1, 0, 0)], "it leads again"


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


def commits(broker: Broker) -> int:
    assert isinstance(broker.backend, StoreBackend)
    return sum(broker.backend.storage.store.figures()[0])


def test_acknowledgements_of_a_fetch_that_waits_share_the_commit_of_the_next_record(
    broker: RunningBroker, topic: str, member: Member
) -> None:
    produce(broker, topic, 1)
    assert acquired(member.fetch(0)) == {0: [(0, 0, 1)]}
    shared = 0
    for offset in range(200):
        before = broker.look(commits)
        member.send(acks={0: [(offset, offset, ACCEPT)]}, max_wait_ms=60_000)
        broker.until_received(member.client)
        produce(broker, topic, 1)
        answer = member.client.receive(ApiKey.SHARE_FETCH, 2)
        assert errors(answer) == [(0, 0, 0)]
        assert acquired(answer) == {0: [(offset + 1, offset + 1, 1)]}
        # unless this machine was busy with something else for some milliseconds
        shared += broker.look(commits) == before + 1
        if shared == 5:
            return
    pytest.fail(f"{shared} of 200 acknowledgements shared a commit")


def test_acknowledgements_of_a_fetch_that_waits_are_durable_though_nothing_follows(
    broker: RunningBroker, topic: str, member: Member
) -> None:
    produce(broker, topic, 1)
    assert acquired(member.fetch(0)) == {0: [(0, 0, 1)]}
    before = broker.look(commits)
    member.send(acks={0: [(0, 0, ACCEPT)]}, max_wait_ms=60_000)
    broker.until(lambda running: commits(running) > before)


def test_acknowledgements_hurry_once_their_fetch_waits_no_longer(
    broker: RunningBroker, topic: str, member: Member
) -> None:
    produce(broker, topic, 1)
    assert acquired(member.fetch(0)) == {0: [(0, 0, 1)]}
    for offset in range(200):
        began = time.monotonic()
        produce(broker, topic, 1, partition=1)
        # finds nothing, and lingers after the commit of that record as long as the fetch waits
        answer = member.fetch(acks={0: [(offset, offset, ACCEPT)]}, max_wait_ms=1)
        took = time.monotonic() - began
        assert errors(answer) == [(0, 0, 0)]
        # unless this machine was busy with something else; a lingering write takes longer each time
        if took < LINGER_S:
            return
        produce(broker, topic, 1)
        assert acquired(member.fetch()) == {0: [(offset + 1, offset + 1, 1)]}
    pytest.fail("none of 200 acknowledgements was quick")


def test_acknowledgements_that_a_fetch_waits_for_do_not_linger(
    broker: RunningBroker, topic: str, member: Member
) -> None:
    """A fetch of a group with rules looks once its acknowledgements are durable."""
    configs = [{"name": "share.retry.backoff.ms", "config_operation": 0, "value": "1000"}]
    resources = [{"resource_type": 32, "resource_name": member.group, "configs": configs}]
    assert broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources).responses[0].error_code == 0
    produce(broker, topic, 1)
    assert acquired(member.fetch(0, max_wait_ms=60_000)) == {0: [(0, 0, 1)]}
    for offset in range(200):
        began = time.monotonic()
        produce(broker, topic, 1, partition=1)
        before = broker.look(commits)
        member.send(acks={0: [(offset, offset, ACCEPT)]}, max_wait_ms=60_000)
        broker.until(lambda running, before=before: commits(running) > before)  # type: ignore[misc]
        took = time.monotonic() - began
        produce(broker, topic, 1)
        answer = member.client.receive(ApiKey.SHARE_FETCH, 2)
        assert acquired(answer) == {0: [(offset + 1, offset + 1, 1)]}
        # unless this machine was busy with something else; a lingering write takes longer each time
        if took < LINGER_S:
            return
    pytest.fail("none of 200 acknowledgements was quick")


@pytest.mark.heavy
def test_requests_leave_nothing_to_the_cycle_collector(
    broker: RunningBroker, topic: str, member: Member
) -> None:
    # its pauses are the slowest responses: one cycle per request makes them frequent
    def work() -> None:
        member.send(0, max_wait_ms=20_000, max_records=1)
        produce(broker, topic, 1)
        offset = acquired(member.client.receive(ApiKey.SHARE_FETCH, 2))[0][0][0]
        member.acknowledge({0: [(offset, offset, ACCEPT)]})
        produce(broker, topic, 1)
        offset = acquired(member.fetch(0, max_wait_ms=20_000))[0][0][0]
        member.fetch(0, acks={0: [(offset, offset, ACCEPT)]}, max_wait_ms=1)

    work()
    for _ in range(3):
        gc.collect()  # what other tests left; finalizers may leave more
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


def leave(member: Member) -> None:
    heartbeat = {"group_id": member.group, "member_id": member.name, "member_epoch": -1}
    assert member.broker.ask(ApiKey.SHARE_GROUP_HEARTBEAT, 1, **heartbeat).error_code == 0


def test_a_member_that_has_left_may_settle_what_it_holds(
    broker: RunningBroker, topic: str, member: Member
) -> None:
    """A closing client may leave on one connection while its last acknowledgements are in flight on
    another.
    """
    produce(broker, topic, 10)
    assert acquired(member.fetch(0)) == {0: [(0, 9, 1)]}
    leave(member)
    assert errors(member.acknowledge({0: [(0, 6, ACCEPT)]}, epoch=-1)) == [(0, 0, 0)]
    again = Member(broker, member.group, topic, "again")
    assert acquired(again.fetch(0)) == {0: [(7, 9, 2)]}


def test_a_fetch_that_waits_is_answered_when_its_member_leaves(
    broker: RunningBroker, topic: str, member: Member
) -> None:
    member.fetch(0)
    member.send(max_wait_ms=600_000)
    leave(member)
    assert acquired(member.client.receive(ApiKey.SHARE_FETCH, 2)) == {}


def test_what_a_member_holds_that_has_left_is_free_in_the_end(
    broker: RunningBroker, topic: str, member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sharecore.broker.coordinators.share._LEAVING_SECONDS", 0.3)
    produce(broker, topic, 10)
    member.fetch(0)
    leave(member)
    again = Member(broker, member.group, topic, "again")
    assert acquired(again.fetch(0, max_wait_ms=20_000)) == {0: [(0, 9, 2)]}


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
