"""What a ShareFetch and a ShareAcknowledge are answered with, as their answer comes together."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from sharecore._core import Leader as ShareLeader
from sharecore._core import Leaders, Partition, ShareAnswer, acknowledge
from sharecore.broker.cluster import Leader, Node
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import ApiKey, codec
from sharecore.waiting import Gather

FIRST, SECOND, NONE = UUID(int=7), UUID(int=8), UUID(int=0)


class Cluster:
    """Node 1 leads the first topic, node 2 the second."""

    def leader(self, topic_id: UUID, partition: int) -> Leader:
        return Leader(1 if topic_id == FIRST else 2, 10 + partition)

    def check_leader(self, topic_id: UUID, partition: int) -> None:
        if topic_id != FIRST:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def nodes(self, listener: str) -> list[Node]:
        return [Node(1, f"one.{listener}", 9092, None), Node(2, f"two.{listener}", 9093, "rack")]


def answer() -> ShareAnswer:
    return ShareAnswer(Cluster(), "CLIENTS", 30_000)


def read(api: ApiKey, version: int, message: ShareAnswer) -> Any:
    frame = b"".join(codec(api, version).write_response(5, message))
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    number, told = codec(api, version).read_response(frame[4:])
    assert number == 5
    return told


def test_partitions_come_by_topic_in_the_order_in_which_they_are_named() -> None:
    whole = answer()
    whole.fetched((SECOND, 3), b"batch", [(5, 6, 1), (7, 7, 2)])
    whole.name((FIRST, 0))
    whole.fetched((SECOND, 1), b"", [])
    whole.name((SECOND, 3))
    assert whole.partitions == [(SECOND, 3), (FIRST, 0), (SECOND, 1)]
    assert (whole.served, whole.failed) == ([(SECOND, 3)], [])
    for version in (1, 2):
        told = read(ApiKey.SHARE_FETCH, version, whole.message())
        assert told.acquisition_lock_timeout_ms == 30_000
        (second, parts), (first, others) = told.responses
        assert (second, first) == (SECOND, FIRST)
        assert [part.partition_index for part in parts] == [3, 1]
        assert [part.partition_index for part in others] == [0]
        assert (parts[0].records, parts[0].acquired_records) == (b"batch", [(5, 6, 1), (7, 7, 2)])
        assert (parts[1].records, parts[1].acquired_records) == (b"", [])
        assert {part.current_leader for part in (*parts, *others)} == {(0, 0)}
        assert told.node_endpoints == []


def test_errors_have_fields_of_their_own_and_leaders_elsewhere_their_addresses() -> None:
    whole = answer()
    whole.fetched((SECOND, 0), b"", [], KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    outcomes: Gather[Any] = Gather()
    outcomes.put((FIRST, 1), KafkaError(ErrorCode.INVALID_RECORD_STATE, "gone"))
    outcomes.put((FIRST, 2), None)
    outcomes.put(None, None)
    whole.acknowledged(outcomes, beside=True)
    assert whole.failed == [(SECOND, 0)]
    told = read(ApiKey.SHARE_FETCH, 2, whole.message().throttled(70))
    (_, (moved,)), (_, (refused, done)) = told.responses
    assert (moved.error_code, moved.error_message) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, None)
    assert (moved.current_leader, refused.current_leader) == ((2, 10), (0, 0))
    assert (refused.error_code, refused.acknowledge_error_code) == (0, ErrorCode.INVALID_RECORD_STATE)
    assert (refused.acknowledge_error_message, done.acknowledge_error_code) == ("gone", 0)
    assert told.node_endpoints == [(2, "two.CLIENTS", 9093, "rack")]
    assert told.throttle_time_ms == 70
    alone = answer()
    alone.acknowledged(outcomes)
    ((_, parts),) = read(ApiKey.SHARE_ACKNOWLEDGE, 1, alone.message()).responses
    assert [(part.error_code, part.error_message) for part in parts] == [(121, "gone"), (0, None)]


@pytest.mark.parametrize(
    "code",
    [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.KAFKA_STORAGE_ERROR],
)
def test_who_could_not_write_and_leads_no_more_says_the_latter(code: ErrorCode) -> None:
    """Java's consumer tries again here for as long as it may, unless it hears that another one leads."""
    outcomes: Gather[Any] = Gather()
    outcomes.put((FIRST, 0), KafkaError(code, "not now"))
    outcomes.put((SECOND, 0), KafkaError(code, "not now"))
    outcomes.put((SECOND, 1), KafkaError(ErrorCode.INVALID_RECORD_STATE))
    whole = answer()
    whole.acknowledged(outcomes)
    (_, (here,)), (_, (moved, other)) = read(ApiKey.SHARE_ACKNOWLEDGE, 2, whole.message()).responses
    assert (here.error_code, here.error_message) == (code, "not now")
    assert moved.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert moved.current_leader == (2, 10)
    assert other.error_code == ErrorCode.INVALID_RECORD_STATE


def test_large_records_are_sent_as_they_are() -> None:
    records = bytes(64 * 1024)
    whole = answer()
    whole.fetched((FIRST, 0), records, [(0, 0, 1)])
    whole.fetched((FIRST, 1), b"small", [(0, 0, 1)])
    parts = codec(ApiKey.SHARE_FETCH, 2).write_response(1, whole.message())
    assert parts[1] is records
    ((_, told),) = read(ApiKey.SHARE_FETCH, 2, whole).responses
    assert [part.records for part in told] == [records, b"small"]


def asked(*topics: tuple[UUID | None, list[tuple[int, list[tuple[int, int, bytes]]]]]) -> Any:
    return [
        SimpleNamespace(
            topic_id=topic_id,
            partitions=[
                SimpleNamespace(partition_index=index, acknowledgement_batches=batches)
                for index, batches in parts
            ],
        )
        for topic_id, parts in topics
    ]


class Acknowledging(ShareLeader):
    """A leader that notes what it is handed, and settles it."""

    def __init__(self) -> None:
        self.engine = Partition()
        self.noted: list[Any] = []

    def acknowledge(self, member: str, batches: Any, done: Any) -> None:
        assert member == "m"
        self.noted.append(batches)
        done(None)


def acknowledged(topics: Any, *, may_renew: bool = False) -> tuple[dict[Any, Any], Leaders]:
    """The outcomes, and leaders of the first topic's partitions 0 and 1."""
    leaders = Leaders()
    leaders._leaders["g", FIRST] = {index: Acknowledging() for index in range(2)}
    share = SimpleNamespace(partitions=leaders, partition_count=lambda topic_id: None)
    context = SimpleNamespace(broker=SimpleNamespace(share=share, authorizer=None))
    gather: Gather[Any] = Gather()
    session = SimpleNamespace(group_id="g", member_id="m")
    acknowledge(context, lambda context, topic_id: True, session, topics, may_renew, gather)
    assert not gather.pending
    return gather.outcomes, leaders


def test_the_last_counts_of_a_partition_that_is_named_twice() -> None:
    topics = asked(
        (FIRST, [(0, [(0, 1, b"\1")]), (1, [])]), (None, [(0, [])]), (FIRST, [(0, [(2, 2, b"\2")])])
    )
    outcomes, leaders = acknowledged(topics)
    assert outcomes.pop((NONE, 0)).code is ErrorCode.UNKNOWN_TOPIC_ID
    assert outcomes == {(FIRST, 0): None, (FIRST, 1): None}
    assert [leaders.peek("g", FIRST, index).noted for index in range(2)] == [[[(2, 2, b"\2")]], []]


def test_partitions_without_batches_are_passed_over_where_nothing_is_acknowledged() -> None:
    assert acknowledged(asked((FIRST, [(0, []), (1, [])])))[0] == {}


def test_what_may_not_stand_is_refused() -> None:
    def sound(*batches: tuple[int, int, bytes], may_renew: bool = False) -> bool:
        outcomes, _ = acknowledged(asked((FIRST, [(0, list(batches))])), may_renew=may_renew)
        refusal = outcomes[FIRST, 0]
        assert refusal is None or refusal.code is ErrorCode.INVALID_REQUEST
        return refusal is None

    assert sound((0, 4, b"\1"), (5, 6, b"\0\3"), (7, 7, b"\2"))
    assert not sound((5, 6, b"\1"), (4, 4, b"\1")), "batches ascend"
    assert not sound((5, 4, b"\1"))
    assert not sound((0, 2, b"\1\1")), "as many types as records"
    assert not sound((0, 2, b""))
    assert not sound((0, 0, b"\5"), may_renew=True)
    assert not sound((0, 0, b"\4"))
    assert sound((0, 0, b"\4"), may_renew=True)
    assert not sound((0, 2**63 - 1, b"\1\1"))
