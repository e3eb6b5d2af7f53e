"""Share sessions over the wire: the content of their responses, and how they end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.harness.running import RunningBroker
from tests.unit.broker.share_member import ACCEPT, Member, acquired, errors, produce

from sharecore.broker.handlers.share import records
from sharecore.broker.requests.context import RequestContext
from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    settings = {
        "group.share.max.share.sessions": "20",
        "group.share.max.size": "20",
        "group.share.assignment.interval.ms": "0",
        "sharecore.share.session.partitions.max": "2000",
    }
    running = RunningBroker(tmp_path_factory.mktemp("data"), settings).start()
    yield running
    running.stop()


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
    # its state was just created, and is read once that is durable
    answers = (errors(member.fetch(max_wait_ms=20)) for _ in range(100))
    assert next(filter(None, answers)) == [(2, 0, 0)], "its error is over"
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


def test_a_fetch_for_no_records_names_no_partitions(
    broker: RunningBroker, topic: str, member: Member
) -> None:
    assert errors(member.fetch(0, max_records=0)) == []
    assert errors(member.fetch(1, max_bytes=0)) == []
    assert errors(member.fetch()) == [(1, 0, 0)]


def test_a_session_is_closed_by_its_last_request(broker: RunningBroker, topic: str, member: Member) -> None:
    produce(broker, topic, 10)
    member.fetch(0)
    last = member.fetch(epoch=-1, acks={0: [(0, 4, ACCEPT)]})
    assert errors(last) == [(0, 0, 0)]
    assert member.fetch(epoch=-1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert member.acknowledge({}, epoch=2).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    other = Member(broker, member.group, topic, "other")
    assert acquired(other.fetch(0)) == {0: [(5, 9, 2)]}, "what was not settled is free at once"


def test_epochs_out_of_order_are_refused_and_do_no_harm(broker: RunningBroker, member: Member) -> None:
    wrong = ErrorCode.INVALID_SHARE_SESSION_EPOCH
    member.fetch(0)
    for epoch in (2, 99):
        assert member.fetch(epoch=epoch).error_code == wrong
        assert member.acknowledge({}, epoch=epoch).error_code == wrong
    assert member.acknowledge({}, epoch=0).error_code == wrong
    nobody = {"group_id": member.group, "member_id": "", "share_session_epoch": 0, "topics": []}
    refused = broker.ask(ApiKey.SHARE_ACKNOWLEDGE, 1, **nobody)
    assert (refused.error_code, refused.error_message) == (ErrorCode.INVALID_REQUEST, None)
    assert member.fetch().error_code == 0


def test_forgotten_partitions_are_fetched_no_more(broker: RunningBroker, topic: str, member: Member) -> None:
    produce(broker, topic, 1, partition=0)
    produce(broker, topic, 1, partition=1)
    member.fetch(0, max_bytes=0)
    assert acquired(member.fetch(1, forget=[0])) == {1: [(0, 0, 1)]}
    assert acquired(member.fetch()) == {}
    assert acquired(member.fetch(0)) == {0: [(0, 0, 1)]}


def test_what_was_leased_of_partitions_that_the_session_has_no_more_stays_leased(
    broker: RunningBroker, topic: str, member: Member
) -> None:
    produce(broker, topic, 1, partition=0)
    produce(broker, topic, 1, partition=1)
    assert acquired(member.fetch(0, 1)) == {0: [(0, 0, 1)], 1: [(0, 0, 1)]}
    member.fetch(forget=[1])
    member.fetch(epoch=-1)
    other = Member(broker, member.group, topic, "other")
    assert acquired(other.fetch(0, 1)) == {0: [(0, 0, 2)]}
    # a new session in place of the old one has only its own partitions
    other.fetch(1, epoch=0)
    other.fetch(epoch=-1)
    third = Member(broker, member.group, topic, "third")
    assert acquired(third.fetch(0, 1)) == {}


def test_records_of_a_client_that_has_gone_are_free_at_once(
    broker: RunningBroker, topic: str, member: Member
) -> None:
    produce(broker, topic, 2)
    other = Member(broker, member.group, topic, "other")
    assert acquired(other.fetch(0)) == {0: [(0, 1, 1)]}
    # its next fetch is waiting when it leaves, and must not acquire the records released by that
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


def beat(broker: RunningBroker, member: Member, epoch: int, topics: list[str] | None = None) -> int:
    answer = broker.ask(
        ApiKey.SHARE_GROUP_HEARTBEAT,
        1,
        group_id=member.group,
        member_id=member.name,
        member_epoch=epoch,
        rack_id=None,
        subscribed_topic_names=topics,
    )
    code: int = answer.error_code
    return code


def test_a_member_that_joins_again_keeps_its_session(
    broker: RunningBroker, topic: str, member: Member
) -> None:
    produce(broker, topic, 3)
    assert acquired(member.fetch(0)) == {0: [(0, 2, 1)]}

    def ending() -> int:
        return broker.look(
            lambda running: sum(each.group_id == member.group for each in running.share._leaving)
        )

    for _ in range(2):
        assert beat(broker, member, -1) == 0
        assert ending() == 1
        assert beat(broker, member, 0, [topic]) == 0
        assert ending() == 0, "nothing ends the session any more"
    assert errors(member.acknowledge({0: [(0, 0, ACCEPT)]})) == [(0, 0, 0)]
    assert acquired(member.fetch(0, epoch=0)) == {}, "it still has them"
    member.epoch = 1
    assert errors(member.acknowledge({0: [(1, 2, ACCEPT)]})) == [(0, 0, 0)]


def test_nothing_is_acknowledged_of_a_partition_that_is_led_by_nobody(
    broker: RunningBroker, topic: str, member: Member
) -> None:
    """As Apache Kafka responds; loading the state would show no leases."""
    member.fetch(0)
    answer = member.acknowledge({1: [(0, 0, ACCEPT)]})
    assert errors(answer) == [(1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)]
    (told,) = [part.error_message for each in answer.responses for part in each.partitions]
    assert told == "This server does not host this topic-partition."
    assert (
        broker.look(lambda running: running.share.partitions.peek(member.group, member.topic_id, 1)) is None
    )


def test_a_session_that_would_be_too_large_is_refused_and_does_not_begin(
    broker: RunningBroker, member: Member
) -> None:
    refused = member.fetch(*range(1_003), epoch=0, max_wait_ms=1)  # two of them exist
    assert refused.error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert member.fetch(0, epoch=1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert len(errors(member.fetch(*range(1_002), epoch=0, max_wait_ms=1))) == 1_002


def test_a_session_that_grows_by_what_is_not_there_ends(broker: RunningBroker, member: Member) -> None:
    member.fetch(*range(1_002), max_wait_ms=1)
    member.fetch(2_000, max_wait_ms=1)
    assert member.fetch(max_wait_ms=1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_a_session_of_more_partitions_than_allowed_is_refused_before_any_is_looked_up(
    broker: RunningBroker, member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: list[object] = []
    monkeypatch.setattr(records, "_check_missing", lambda *asked: looked_up.append(asked))
    refused = member.fetch(*range(2_001), epoch=0, max_wait_ms=1)
    assert refused.error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert looked_up == []


def test_more_partitions_than_a_session_has_are_not_acknowledged(
    broker: RunningBroker, topic: str, member: Member
) -> None:
    """sharecore.share.session.partitions.max"""
    produce(broker, topic, 1)
    member.fetch(0)
    others = {index: [(0, 0, ACCEPT)] for index in range(2, 2_002)}
    refused = member.acknowledge({0: [(0, 0, ACCEPT)]} | others)
    assert (refused.error_code, list(refused.responses)) == (ErrorCode.INVALID_REQUEST, [])
    member.epoch -= 1  # the session epoch has not changed
    del others[2]
    told = sorted(errors(member.acknowledge({0: [(0, 0, ACCEPT)]} | others)))
    assert told == [
        (0, 0, 0),
        *((index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0) for index in range(3, 2_002)),
    ]


def test_others_are_served_before_the_next_request_that_acknowledges_many_partitions(
    broker: RunningBroker, topic: str, member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    member.fetch(0)
    ended: list[int] = []
    monkeypatch.setattr(RequestContext, "end_turn", lambda context: ended.append(context.api_key))
    member.acknowledge({index: [(0, 0, ACCEPT)] for index in range(1_000)})
    assert ended == []
    member.acknowledge({index: [(0, 0, ACCEPT)] for index in range(1_001)})
    assert ended == [ApiKey.SHARE_ACKNOWLEDGE]
