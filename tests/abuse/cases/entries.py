"""Requests that name much: partitions, sessions of partitions, names, expressions."""

from __future__ import annotations

import contextlib
from typing import Any
from uuid import UUID

from tests.abuse.case import MB, Bounds, case
from tests.abuse.peer import Closed, Peer
from tests.abuse.subject import NOBODY, READER, Subject

from sharecore.protocol import ApiKey

MANY = 100_000
_SHARE_FETCH = {"max_wait_ms": 0, "max_bytes": 1000, "max_records": 10, "batch_size": 10}
_EXPRESSIONS = (
    "a|" * 16_000,
    r"\w" * 16_000,
    r"\p{L}" * 6_500,
    "[[:^alpha:]]" * 2_700,
    "[" + "[:" * 16_000,
    "(" * 16_000 + ")" * 16_000,
    "((((.{10}){10}){10}){10})*",
    "(.*-){20}x",
    "(a|b|.)*a(.|a){400}",
)


def _fetch(count: int, epoch: int) -> dict[str, Any]:
    wanted = [{"partition": index, "fetch_offset": 0, "partition_max_bytes": 1} for index in range(count)]
    topics = [{"topic": "nosuch", "partitions": wanted}]
    return {"max_bytes": 1000, "session_epoch": epoch, "topics": topics}


@case(quick=True)
def a_fetch_of_denied_partitions(subject: Subject) -> None:
    with subject.connect(NOBODY, timeout_s=60) as peer:
        answer = peer.ask("fetch", 11, **_fetch(MANY, -1))
        assert len(answer.responses[0].partitions) == MANY


@case()
def fetch_sessions_of_denied_partitions(subject: Subject) -> None:
    for _ in range(4):
        with subject.connect(NOBODY, timeout_s=60) as peer:
            assert peer.ask("fetch", 11, **_fetch(MANY, 0)).session_id == 0


@case()
def a_produce_to_denied_partitions(subject: Subject) -> None:
    data = [{"index": index, "records": None} for index in range(MANY)]
    with subject.connect(NOBODY, timeout_s=60) as peer:
        topic_data = [{"name": "nosuch", "partition_data": data}]
        answer = peer.ask("produce", 9, acks=-1, timeout_ms=1000, topic_data=topic_data)
        assert len(answer.responses[0].partition_responses) == MANY


@case(quick=True)
def a_produce_to_many_topics(subject: Subject) -> None:
    data = [{"index": 0, "records": None}]
    for user in (NOBODY, None):
        with subject.connect(user, timeout_s=60) as peer:
            topic_data = [{"name": f"nosuch-{each}", "partition_data": data} for each in range(MANY)]
            answer = peer.ask("produce", 9, acks=-1, timeout_ms=1000, topic_data=topic_data)
            assert len(answer.responses) == MANY


@case()
def a_request_with_a_million_entries(subject: Subject) -> None:
    data = [{"index": 0, "records": None}] * 1_000_000
    with subject.connect(NOBODY, timeout_s=60) as peer, contextlib.suppress(Closed):
        peer.ask("produce", 9, acks=-1, topic_data=[{"name": "nosuch", "partition_data": data}])
        raise AssertionError("it was answered")


@case()
def share_sessions_of_what_is_not_there(subject: Subject) -> None:
    subject.create_topic(f"{READER}-shared")
    for number in range(8):
        with subject.connect(READER, timeout_s=60) as peer:
            member = _join(peer, f"member-{number}", f"{READER}-shared")
            for count in (MANY, 18_000):
                topics = _unknown_topics(count)
                peer.ask("share_fetch", 1, **member, **_SHARE_FETCH, share_session_epoch=0, topics=topics)


@case()
def acknowledgements_of_what_is_not_there(subject: Subject) -> None:
    subject.create_topic(f"{READER}-acknowledged")
    batches = {"first_offset": 0, "last_offset": 0, "acknowledge_types": b"\1"}
    for number in range(4):
        with subject.connect(READER, timeout_s=60) as peer:
            member = _join(peer, f"member-{number}", f"{READER}-acknowledged")
            topics = _unknown_topics(1)
            peer.ask("share_fetch", 1, **member, **_SHARE_FETCH, share_session_epoch=0, topics=topics)
            epoch = 1
            for count in (MANY // 2, 20_000, 20_000):
                topics = _unknown_topics(count, acknowledgement_batches=[batches])
                answer = peer.ask("share_acknowledge", 1, **member, share_session_epoch=epoch, topics=topics)
                epoch += answer.error_code == 0
            assert epoch == 3


def _join(peer: Peer, member_id: str, topic: str) -> dict[str, str]:
    member = {"group_id": f"{topic}-group", "member_id": member_id}
    peer.ask("share_group_heartbeat", 1, **member, member_epoch=0, subscribed_topic_names=[topic])
    return member


def _unknown_topics(count: int, **asked: Any) -> list[dict[str, Any]]:
    partitions = [{"partition_index": 0, **asked}]
    return [{"topic_id": UUID(int=1000 + each), "partitions": partitions} for each in range(count)]


@case(quick=True, bounds=Bounds(peak_bytes=100 * MB))
def expressions_that_take_long(subject: Subject) -> None:
    with subject.connect(READER, timeout_s=60) as peer:
        for number, expression in enumerate(_EXPRESSIONS):
            if subject.newest(ApiKey.LIST_TRANSACTIONS, 2) == 2:
                peer.ask("list_transactions", 2, transactional_id_pattern=expression)
            if subject.newest(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1) < 1:
                continue
            peer.ask(
                "consumer_group_heartbeat",
                1,
                group_id=f"{READER}-{number}",
                member_id="one",
                member_epoch=0,
                rebalance_timeout_ms=1000,
                subscribed_topic_regex=expression,
                topic_partitions=[],
            )


@case()
def a_broker_that_is_described_over_and_over(subject: Subject) -> None:
    resources = [{"resource_type": 4, "resource_name": "1", "configuration_keys": None}] * 20_000
    with subject.connect(timeout_s=60) as peer, contextlib.suppress(Closed):
        answer = peer.ask(
            "describe_configs", 4, include_synonyms=True, include_documentation=True, resources=resources
        )
        # a tier node has another id, and refuses each of them
        assert all(each.error_code for each in answer.results), "it was answered"
