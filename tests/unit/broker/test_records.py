"""Produce, Fetch, ListOffsets, DeleteRecords, OffsetForLeaderEpoch, in every supported version."""

from __future__ import annotations

import time
import uuid
from typing import Any

import pytest
from tests.harness.batches import batch, values_of
from tests.harness.checksum import crc32c
from tests.harness.running import Client, RunningBroker

from sharecore.broker.handlers import SERVED
from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey

T = 1_700_000_000_000


def versions(api_key: ApiKey) -> range:
    return range(SERVED[api_key].min_version, SERVED[api_key].max_version + 1)


def topic_id(broker: RunningBroker, topic: str) -> uuid.UUID:
    found: uuid.UUID = (
        broker.ask(ApiKey.METADATA, 13, topics=[{"name": topic}], allow_auto_topic_creation=False)
        .topics[0]
        .topic_id
    )
    return found


def produce_fields(
    broker: RunningBroker,
    topic: str,
    records: bytes,
    *,
    partition: int = 0,
    acks: int = -1,
    version: int = 13,
) -> dict[str, Any]:
    named: dict[str, Any] = {"topic_id": topic_id(broker, topic)} if version >= 13 else {"name": topic}
    named["partition_data"] = [{"index": partition, "records": records}]
    return {"acks": acks, "timeout_ms": 1000, "topic_data": [named]}


def produce(broker: RunningBroker, topic: str, records: bytes, version: int = 13, **more: Any) -> Any:
    fields = produce_fields(broker, topic, records, version=version, **more)
    answer = broker.ask(ApiKey.PRODUCE, version, **fields)
    return answer.responses[0].partition_responses[0]


def fetch_fields(
    broker: RunningBroker, topic: str, offset: int, *, partition: int = 0, version: int = 18, **more: Any
) -> dict[str, Any]:
    asked = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
    asked |= {
        name: more.pop(name) for name in ("partition_max_bytes", "current_leader_epoch") if name in more
    }
    named: dict[str, Any] = {"topic_id": topic_id(broker, topic)} if version >= 13 else {"topic": topic}
    named["partitions"] = [asked]
    return {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, "topics": [named]} | more


def fetch(broker: RunningBroker, topic: str, offset: int, version: int = 18, **more: Any) -> Any:
    answer = broker.ask(ApiKey.FETCH, version, **fetch_fields(broker, topic, offset, version=version, **more))
    return answer.responses[0].partitions[0]


@pytest.mark.parametrize("version", versions(ApiKey.PRODUCE))
def test_produce_in_every_version(broker: RunningBroker, topic: str, version: int) -> None:
    first = produce(broker, topic, batch([b"a", b"b"]), version)
    second = produce(broker, topic, batch([b"c"]), version, acks=1)
    assert (first.index, first.error_code, first.base_offset) == (0, 0, 0)
    assert (second.error_code, second.base_offset, second.log_append_time_ms) == (0, 2, -1)
    assert values_of(fetch(broker, topic, 0).records) == [(0, b"a"), (1, b"b"), (2, b"c")]


def test_of_batches_for_one_partition_the_last_counts(broker: RunningBroker, topic: str) -> None:
    """As on Apache Kafka, which appends no other and answers once."""
    fields = produce_fields(broker, topic, batch([b"a"]))
    (named,) = fields["topic_data"]
    other = {"topic_id": uuid.UUID(int=5), "partition_data": list(named["partition_data"])}
    for index in (1, 0):
        named["partition_data"] += [{"index": index, "records": batch([b"b"])}]
    last = {**named, "partition_data": [{"index": 0, "records": batch([b"c"])}]}
    fields["topic_data"] = [named, other, last]
    answer = broker.ask(ApiKey.PRODUCE, 13, **fields)
    told = [[part.index for part in each.partition_responses] for each in answer.responses]
    assert told == [[0, 1], [0]]
    assert values_of(fetch(broker, topic, 0).records) == [(0, b"c")]


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state", "__share_group_state"])
def test_nobody_else_writes_topics_of_the_broker(broker: RunningBroker, name: str) -> None:
    record = batch([b"x"])
    for client_id in ("tester", "__admin_client"):
        fields = produce_fields(broker, name, record)
        answer = broker.connect(client_id).ask(ApiKey.PRODUCE, 13, **fields)
        refused = answer.responses[0].partition_responses[0]
        assert refused.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("version", versions(ApiKey.FETCH))
def test_fetch_in_every_version(broker: RunningBroker, topic: str, version: int) -> None:
    produce(broker, topic, batch([b"a", b"b"]))
    found = fetch(broker, topic, 1, version)
    assert (found.partition_index, found.error_code, found.high_watermark) == (0, 0, 2)
    assert (found.last_stable_offset, found.aborted_transactions) == (2, None)
    # batches are returned whole; the client skips records before the offset
    assert values_of(found.records) == [(0, b"a"), (1, b"b")]
    assert fetch(broker, topic, 2, version).records == b""
    assert fetch(broker, topic, 0, version, isolation_level=1).aborted_transactions == []


def test_without_acknowledgement_there_is_no_answer(broker: RunningBroker, topic: str) -> None:
    client = broker.connect()
    for value in (b"a", b"b"):
        client.send(ApiKey.PRODUCE, 12, **produce_fields(broker, topic, batch([value]), acks=0, version=12))
    assert client.ask(ApiKey.API_VERSIONS, 0).error_code == 0
    both = fetch(broker, topic, 0, max_wait_ms=10_000, min_bytes=2 * len(batch([b"a"])))
    assert [value for _, value in values_of(both.records)] == [b"a", b"b"]
    client.send(
        ApiKey.PRODUCE, 12, **produce_fields(broker, topic, batch([b"x"]), acks=0, version=12, partition=7)
    )
    with pytest.raises(EOFError):
        client.receive(ApiKey.API_VERSIONS, 0)


def test_what_cannot_be_produced(broker: RunningBroker, topic: str) -> None:
    good = batch([b"a"])
    spoilt = good[:-2] + bytes([good[-2] ^ 1]) + good[-1:]
    assert produce(broker, topic, spoilt).error_code == ErrorCode.CORRUPT_MESSAGE
    assert produce(broker, topic, good[:-1]).error_code == ErrorCode.INVALID_RECORD
    assert produce(broker, topic, good, acks=2).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert produce(broker, topic, good, partition=2).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert produce(broker, topic, good, partition=-1).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert produce(broker, "nowhere", good, 12).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert produce(broker, "nowhere", good, 13).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert produce(broker, topic, batch([bytes(2_000_000)])).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert fetch(broker, topic, 0).high_watermark == 0


def resealed(records: bytes, at: int, changed: bytes) -> bytes:
    spoilt = bytearray(records)
    spoilt[at : at + len(changed)] = changed
    spoilt[17:21] = crc32c(bytes(spoilt[21:])).to_bytes(4, "big")
    return bytes(spoilt)


@pytest.mark.parametrize(
    ("at", "changed"),
    [(61, b"\x0c"), (61, b"\x10"), (66, b"\x7f"), (68, b"\x02"), (60, b"\x03")],
    ids=["too short", "too long", "value past the end", "a header more", "a record more"],
)
def test_records_that_cannot_be_read_are_not_appended(
    broker: RunningBroker, topic: str, at: int, changed: bytes
) -> None:
    spoilt = resealed(batch([b"a", b"b"]), at, changed)
    assert produce(broker, topic, spoilt).error_code == ErrorCode.INVALID_RECORD
    assert fetch(broker, topic, 0).high_watermark == 0


def test_a_batch_tells_the_latest_time_of_its_records_whatever_its_producer_said(
    broker: RunningBroker, topic: str
) -> None:
    wrong = resealed(batch([b"a", b"b"], timestamps=[T, T + 5]), 35, (T - 1).to_bytes(8, "big"))
    assert produce(broker, topic, wrong + b"behind").error_code == 0
    right = batch([b"a", b"b"], timestamps=[T, T + 5])
    assert fetch(broker, topic, 0).records[16:] == right[16:], "but for the epoch of the leader"


def test_records_from_the_future_are_named(broker: RunningBroker, topic: str) -> None:
    now = int(time.time() * 1000)
    late = batch([b"a", b"b", b"c"], timestamps=[now, now + 10**9, now + 10**9])
    answer = produce(broker, topic, late)
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in answer.record_errors] == [1, 2]


def test_zstd_came_with_version_7(broker: RunningBroker, topic: str) -> None:
    compressed = resealed(batch([b"a"]), 22, b"\x04")
    assert produce(broker, topic, compressed, 6).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize(("version", "code"), [(6, ErrorCode.INVALID_RECORD), (7, ErrorCode.CORRUPT_MESSAGE)])
def test_a_compression_that_there_is_not_is_told_before_a_wrong_checksum_up_to_version_6(
    broker: RunningBroker, topic: str, version: int, code: ErrorCode
) -> None:
    spoilt = bytearray(batch([b"a"]))
    spoilt[22] = 7
    assert produce(broker, topic, bytes(spoilt), version).error_code == code


def test_a_batch_of_a_transaction_without_its_id_is_refused_whatever_else_is_wrong_with_it(
    broker: RunningBroker, topic: str
) -> None:
    """Records are not read if the client may not write them."""
    spoilt = resealed(batch([b"a"]), 21, b"\xff\xff")
    code = produce(broker, topic, spoilt, 3).error_code
    assert code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    unknown = resealed(spoilt, 16, b"\x03")
    assert produce(broker, topic, unknown, 3).error_code == ErrorCode.CORRUPT_MESSAGE, "of no format"


def test_one_bad_partition_leaves_the_others_alone(broker: RunningBroker, topic: str) -> None:
    parts = [{"index": index, "records": batch([b"v"])} for index in (0, 5, 1)]
    answer = broker.ask(
        ApiKey.PRODUCE, 12, acks=-1, timeout_ms=1000, topic_data=[{"name": topic, "partition_data": parts}]
    )
    codes = [(part.index, part.error_code) for part in answer.responses[0].partition_responses]
    assert codes == [(0, 0), (5, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (1, 0)]


def test_an_idempotent_producer_that_repeats_itself(broker: RunningBroker, topic: str) -> None:
    made = broker.ask(ApiKey.INIT_PRODUCER_ID, 5, transactional_id=None, transaction_timeout_ms=1000)
    assert made.error_code == 0
    who = {"producer_id": made.producer_id, "producer_epoch": made.producer_epoch}
    offsets = [
        produce(broker, topic, batch([b"a", b"b"], sequence=sequence, **who)).base_offset
        for sequence in (0, 2, 2, 0)
    ]
    assert offsets == [0, 2, 2, 0]
    gap = produce(broker, topic, batch([b"z"], sequence=9, **who))
    assert gap.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert fetch(broker, topic, 0).high_watermark == 4


@pytest.mark.parametrize("version", versions(ApiKey.INIT_PRODUCER_ID))
def test_producers_get_numbers_of_their_own(broker: RunningBroker, version: int) -> None:
    made = [
        broker.ask(
            ApiKey.INIT_PRODUCER_ID, version, transactional_id=None, transaction_timeout_ms=1
        ).producer_id
        for _ in range(3)
    ]
    assert len(set(made)) == 3


@pytest.mark.parametrize(
    ("offset", "fields", "code"),
    [
        (3, {}, ErrorCode.OFFSET_OUT_OF_RANGE),
        (-1, {}, ErrorCode.OFFSET_OUT_OF_RANGE),
        (0, {"current_leader_epoch": 1}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (0, {"partition": 2}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_what_cannot_be_fetched(
    broker: RunningBroker, topic: str, offset: int, fields: dict[str, int], code: ErrorCode
) -> None:
    produce(broker, topic, batch([b"a", b"b"]))
    # it would otherwise not wait this long
    found = fetch(broker, topic, offset, **fields, max_wait_ms=60_000)
    assert (found.error_code, found.high_watermark, found.records) == (code, -1, b"")


def test_unknown_topics_are_told_by_name_or_id(broker: RunningBroker) -> None:
    assert fetch(broker, "nowhere", 0, 12).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert fetch(broker, "nowhere", 0, 13).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def in_session(broker: RunningBroker, session_id: int, epoch: int, **fields: Any) -> Any:
    asked = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, "isolation_level": 0, "topics": []}
    place = {"session_id": session_id, "session_epoch": epoch}
    return broker.ask(ApiKey.FETCH, 18, **asked | place | fields)


def test_a_fetch_session_remembers_what_is_fetched(broker: RunningBroker, topic: str) -> None:
    produce(broker, topic, batch([b"a"]))
    wanted = fetch_fields(broker, topic, 1)["topics"]
    opened = in_session(broker, 0, 0, topics=wanted)
    assert opened.session_id > 0
    assert opened.responses[0].partitions[0].high_watermark == 1
    assert in_session(broker, opened.session_id, 1).responses == []  # nothing is new
    produce(broker, topic, batch([b"b"]))
    (news,) = in_session(broker, opened.session_id, 2).responses
    assert values_of(news.partitions[0].records) == [(1, b"b")]
    late = in_session(broker, opened.session_id, 2)
    assert (late.error_code, late.session_id) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0)
    forgotten = [{"topic_id": wanted[0]["topic_id"], "partitions": [0]}]
    left = in_session(broker, opened.session_id, 3, forgotten_topics_data=forgotten)
    assert (left.error_code, left.session_id, left.responses) == (0, 0, [])
    gone = in_session(broker, opened.session_id, 4)
    assert gone.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_fetch_session_tells_that_a_topic_was_made_anew(broker: RunningBroker) -> None:
    made = {"name": "anew", "num_partitions": 1, "replication_factor": 1}
    broker.ask(ApiKey.CREATE_TOPICS, 7, timeout_ms=5000, topics=[made])
    opened = in_session(broker, 0, 0, topics=fetch_fields(broker, "anew", 0)["topics"])
    broker.ask(ApiKey.DELETE_TOPICS, 6, timeout_ms=5000, topics=[{"name": "anew"}])
    (gone,) = in_session(broker, opened.session_id, 1).responses
    assert gone.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    broker.ask(ApiKey.CREATE_TOPICS, 7, timeout_ms=5000, topics=[made])
    (other,) = in_session(broker, opened.session_id, 2).responses
    assert other.partitions[0].error_code == ErrorCode.INCONSISTENT_TOPIC_ID
    assert other.partitions[0].aborted_transactions is None


def test_a_fetch_with_any_negative_epoch_knows_none(broker: RunningBroker, topic: str) -> None:
    produce(broker, topic, batch([b"a"]))
    assert fetch(broker, topic, 0, current_leader_epoch=-2).error_code == ErrorCode.NONE


def test_the_final_epoch_ends_a_fetch_session(broker: RunningBroker, topic: str) -> None:
    produce(broker, topic, batch([b"a"]))
    wanted = fetch_fields(broker, topic, 0)["topics"]
    opened = in_session(broker, 0, 0, topics=wanted)
    ended = in_session(broker, opened.session_id, -1, topics=wanted)
    assert (ended.session_id, len(ended.responses)) == (0, 1)
    code = in_session(broker, opened.session_id, 1).error_code
    assert code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_limits_of_bytes_let_one_batch_through(broker: RunningBroker, topic: str) -> None:
    for value in (b"a", b"b", b"c"):
        produce(broker, topic, batch([value * 100]))
    assert len(values_of(fetch(broker, topic, 0, max_bytes=1).records)) == 1
    assert len(values_of(fetch(broker, topic, 0, partition_max_bytes=1).records)) == 1
    assert len(values_of(fetch(broker, topic, 0, partition_max_bytes=400).records)) == 2


def test_a_fetch_waits_for_data_and_no_longer(broker: RunningBroker, topic: str) -> None:
    consumer = broker.connect()
    consumer.send(ApiKey.FETCH, 18, **fetch_fields(broker, topic, 0, max_wait_ms=60_000))
    broker.until_received(consumer)
    produce(broker, topic, batch([b"a"]))
    answer = consumer.receive(ApiKey.FETCH, 18)
    assert values_of(answer.responses[0].partitions[0].records) == [(0, b"a")]
    began = time.monotonic()
    assert fetch(broker, topic, 1, max_wait_ms=50).records == b""
    assert time.monotonic() - began >= 0.049


def test_a_fetch_waits_for_enough(broker: RunningBroker, topic: str) -> None:
    consumer = broker.connect()
    enough = len(batch([b"a"])) + 1
    consumer.send(ApiKey.FETCH, 18, **fetch_fields(broker, topic, 0, max_wait_ms=60_000, min_bytes=enough))
    broker.until_received(consumer)
    produce(broker, topic, batch([b"a"]))
    broker.until_received(consumer)
    produce(broker, topic, batch([b"b"]))
    answer = consumer.receive(ApiKey.FETCH, 18)
    assert len(values_of(answer.responses[0].partitions[0].records)) == 2


def test_a_topic_that_is_not_there_ends_no_wait(broker: RunningBroker, topic: str) -> None:
    fields = fetch_fields(broker, topic, 0, version=12, max_wait_ms=10_000)
    fields["topics"].append({"topic": "nowhere", "partitions": [{"partition": 0, "fetch_offset": 0}]})
    consumer = broker.connect()
    consumer.send(ApiKey.FETCH, 12, **fields)
    broker.until_received(consumer)
    produce(broker, topic, batch([b"awaited"]))
    found, missing = consumer.receive(ApiKey.FETCH, 12).responses
    assert values_of(found.partitions[0].records) == [(0, b"awaited")]
    assert missing.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_batch_that_does_not_fit_leaves_no_room_for_others(broker: RunningBroker, topic: str) -> None:
    small = batch([b"x"])
    for partition in (0, 0, 1):
        produce(broker, topic, small, partition=partition)
    asked = [{"partition": index, "fetch_offset": 0, "partition_max_bytes": 1 << 20} for index in (0, 1)]
    fields = fetch_fields(broker, topic, 0, version=12, max_bytes=2 * len(small) - 1)
    fields["topics"][0]["partitions"] = asked
    answer = broker.ask(ApiKey.FETCH, 12, **fields)
    assert [len(each.records) for each in answer.responses[0].partitions] == [len(small), 0]


def test_a_client_that_goes_while_it_waits_leaves_nothing_behind(broker: RunningBroker, topic: str) -> None:
    for _ in range(5):
        client = Client(broker.port)
        client.send(ApiKey.FETCH, 18, **fetch_fields(broker, topic, 0, max_wait_ms=60_000))
        client.close()
    produce(broker, topic, batch([b"a"]))
    assert fetch(broker, topic, 0).high_watermark == 1


def offset_at(broker: RunningBroker, topic: str, timestamp: int, version: int = 11, **more: int) -> Any:
    asked = {"partition_index": 0, "timestamp": timestamp} | more
    fields = {"replica_id": -1, "timeout_ms": 1000, "topics": [{"name": topic, "partitions": [asked]}]}
    return broker.ask(ApiKey.LIST_OFFSETS, version, **fields).topics[0].partitions[0]


def test_offsets_are_told_once_a_partition(broker: RunningBroker, topic: str) -> None:
    twice = [{"partition_index": 0, "timestamp": -1}] * 2
    asked = [{"name": topic, "partitions": twice}, {"name": "nothing", "partitions": []}]
    asked.append({"name": "nowhere", "partitions": [{"partition_index": 0, "timestamp": -7}]})
    answer = broker.ask(ApiKey.LIST_OFFSETS, 11, replica_id=-1, timeout_ms=1000, topics=asked)
    told = [(each.name, [part.error_code for part in each.partitions]) for each in answer.topics]
    assert told == [(topic, [ErrorCode.INVALID_REQUEST]), ("nowhere", [ErrorCode.UNSUPPORTED_VERSION])]


@pytest.mark.parametrize("version", versions(ApiKey.LIST_OFFSETS))
def test_offsets_in_every_version(broker: RunningBroker, topic: str, version: int) -> None:
    for time_ms in (0, 10, 5, 30, 20):
        produce(broker, topic, batch([b"v"], timestamps=[T + time_ms]))
    since = {-1: 1, -2: 1, -3: 7, -4: 8, -5: 9, -6: 11, -7: 99}
    expected = {
        -1: (-1, 5),
        -2: (-1, 0),
        -3: (T + 30, 3),
        -4: (-1, 0),
        -5: (-1, -1),
        -6: (-1, -1),
        T: (T, 0),
        T + 1: (T + 10, 1),
        T + 11: (T + 30, 3),
        T + 31: (-1, -1),
    }
    for timestamp, (found_time, found_offset) in expected.items():
        found = offset_at(broker, topic, timestamp, version)
        if version < since.get(timestamp, 1):
            assert found.error_code == ErrorCode.UNSUPPORTED_VERSION
        else:
            assert (found.error_code, found.timestamp, found.offset) == (0, found_time, found_offset), (
                timestamp
            )
    assert offset_at(broker, topic, -7, version).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_offsets_of_an_empty_partition_and_of_none(broker: RunningBroker, topic: str) -> None:
    assert [offset_at(broker, topic, timestamp).offset for timestamp in (-1, -2, -3, T)] == [0, 0, -1, -1]
    assert offset_at(broker, "nowhere", -1).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert offset_at(broker, topic, -1, current_leader_epoch=1).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_the_start_of_a_log_moves(broker: RunningBroker, topic: str) -> None:
    produce(broker, topic, batch([b"a", b"b"]))
    produce(broker, topic, batch([b"c"]))
    asked = [{"partition_index": 0, "offset": 2}, {"partition_index": 1, "offset": 5}, {"partition_index": 9}]
    for version in versions(ApiKey.DELETE_RECORDS):
        answer = broker.ask(
            ApiKey.DELETE_RECORDS, version, timeout_ms=1000, topics=[{"name": topic, "partitions": asked}]
        )
        assert [tuple(part) for part in answer.topics[0].partitions] == [
            (0, 2, 0),
            (1, -1, ErrorCode.OFFSET_OUT_OF_RANGE),
            (9, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]
    assert offset_at(broker, topic, -2).offset == 2
    assert fetch(broker, topic, 1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    found = fetch(broker, topic, 2)
    assert (found.log_start_offset, values_of(found.records)) == (2, [(2, b"c")])
    everything = [{"name": topic, "partitions": [{"partition_index": 0, "offset": -1}]}]
    assert broker.ask(ApiKey.DELETE_RECORDS, 2, timeout_ms=1000, topics=everything).topics[0].partitions[
        0
    ] == (0, 3, 0)


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_FOR_LEADER_EPOCH))
def test_the_one_leader_epoch(broker: RunningBroker, topic: str, version: int) -> None:
    produce(broker, topic, batch([b"a", b"b"]))
    asked = [
        {"partition": 0, "leader_epoch": 0},
        {"partition": 0, "leader_epoch": 3},
        {"partition": 0, "leader_epoch": 0, "current_leader_epoch": 2},
        {"partition": 8, "leader_epoch": 0},
    ]
    answer = broker.ask(
        ApiKey.OFFSET_FOR_LEADER_EPOCH, version, replica_id=-1, topics=[{"topic": topic, "partitions": asked}]
    )
    found = [(part.error_code, part.leader_epoch, part.end_offset) for part in answer.topics[0].partitions]
    assert found == [
        (0, 0, 2),
        (0, -1, -1),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1),
    ]


def test_records_of_a_compacted_topic_are_not_deleted_wherever_it_is(broker: RunningBroker) -> None:
    name = "compacted-only"
    configs = [{"name": "cleanup.policy", "value": "compact"}]
    made = {"name": name, "num_partitions": 1, "replication_factor": 1, "configs": configs}
    broker.ask(ApiKey.CREATE_TOPICS, 7, timeout_ms=5000, topics=[made])
    asked = [{"name": name, "partitions": [{"partition_index": 0, "offset": 99}]}]
    answer = broker.ask(ApiKey.DELETE_RECORDS, 2, timeout_ms=1000, topics=asked)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.POLICY_VIOLATION
