"""ShareFetch and ShareAcknowledge responses under construction."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from sharecore._core import ShareAnswer
from sharecore.broker.cluster import Leader, Node
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import ApiKey, codec
from sharecore.waiting import Gather

FIRST, SECOND, NONE = UUID(int=7), UUID(int=8), UUID(int=0)


class Cluster:
    """A cluster where node 1 leads the first topic, node 2 the second."""

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
    """Otherwise Java's consumer retries here until its timeout, unless it learns of another leader."""
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


def test_only_the_answers_of_these_two_requests_are_written() -> None:
    for api, version in ((ApiKey.PRODUCE, 12), (ApiKey.METADATA, 4)):
        with pytest.raises(TypeError, match="cannot encode this response"):
            codec(api, version).write_response(1, answer())
