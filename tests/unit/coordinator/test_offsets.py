"""Committed offsets: durable before they are visible, rebuilt from the topic, part of transactions."""

from __future__ import annotations

import pytest
from tests.unit.coordinator_log.world import GIVEN_UP_MS, MemoryLog, World, record_log

from sharecore.coordinator.offset_records import CommittedOffset, TopicPartition, encode_offset_key
from sharecore.coordinator.offsets import Offsets
from sharecore.coordinator_log.topic_log import Producer
from sharecore.errors import KafkaError

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def offsets(world: World, *logs: MemoryLog) -> Offsets:
    return Offsets(record_log(world, list(logs)))


def test_a_commit_is_seen_once_it_is_durable() -> None:
    world, log, ended = World(), MemoryLog(), list[KafkaError | None]()
    subject = offsets(world, log)
    subject.commit("g", {P0: CommittedOffset(5)}, ended.append)
    assert (subject.get("g"), ended) == ({}, [])
    world.run()
    assert (subject.get("g"), ended) == ({P0: CommittedOffset(5)}, [None])


def test_a_commit_that_fails_leaves_the_offset_as_it_was() -> None:
    world, log, ended = World(), MemoryLog(), list[KafkaError | None]()
    subject = offsets(world, log)
    subject.commit("g", {P0: CommittedOffset(5)}, ended.append)
    world.run()
    log.failing = True
    subject.commit("g", {P0: CommittedOffset(9)}, ended.append)
    world.run(GIVEN_UP_MS)
    assert subject.get("g") == {P0: CommittedOffset(5)}
    assert isinstance(ended[1], KafkaError)


@pytest.mark.parametrize("failing", [False, True])
def test_a_group_whose_first_commit_is_on_its_way_has_offsets(failing: bool) -> None:
    """Otherwise the group would be dropped meanwhile, as an empty one."""
    world, log = World(), MemoryLog()
    subject = offsets(world, log)
    log.failing = failing
    subject.commit("g", {P0: CommittedOffset(5)}, lambda error: None)
    assert subject.has_any("g")
    assert not subject.has_any("other")
    world.run(GIVEN_UP_MS)
    assert subject.has_any("g") is not failing


def test_a_commit_to_a_disk_that_was_full_for_a_moment_is_made_good() -> None:
    world, log, ended = World(), MemoryLog(), list[KafkaError | None]()
    subject = offsets(world, log)
    log.failing = True
    subject.commit("g", {P0: CommittedOffset(5)}, ended.append)
    world.run(150)
    subject.commit("g", {P0: CommittedOffset(6)}, ended.append)
    log.failing = False
    world.run(GIVEN_UP_MS)
    assert ended == [None, None]
    assert subject.get("g") == {P0: CommittedOffset(6)}
    assert len(log.batches) == 2, "in the order in which they were asked for"


def test_what_another_broker_coordinates_is_not_written_here() -> None:
    world, logs, ended = World(), [MemoryLog(index=0), MemoryLog(index=1)], list[KafkaError | None]()
    subject = Offsets(record_log(world, logs, owns=lambda partition: partition == 1))
    for group in ("a", "b"):
        subject.commit(group, {P0: CommittedOffset(5)}, ended.append)
    world.run()
    assert [len(log.batches) for log in logs] == [0, 1]
    assert sorted(error.code.name if error else "" for error in ended) == ["", "NOT_COORDINATOR"]


def test_offsets_are_rebuilt_from_the_topic() -> None:
    world, logs = World(), [MemoryLog(index=0), MemoryLog(index=1)]
    subject = offsets(world, *logs)
    for group in "abcdefgh":
        subject.commit(group, {P0: CommittedOffset(1), P1: CommittedOffset(2)}, lambda error: None)
        subject.commit(group, {P0: CommittedOffset(3)}, lambda error: None)
    subject.delete("h", [P0, P1], lambda error: None)
    world.run()
    assert all(log.batches for log in logs)
    records = record_log(world, logs)
    again = Offsets(records)
    assert records.load() == sum(log.end_offset for log in logs)
    assert again.replayed == set("abcdefgh")
    assert [group for group in "abcdefgh" if again.has_any(group)] == list("abcdefg")
    assert again.get("a") == {P0: CommittedOffset(3), P1: CommittedOffset(2)}


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (b"\0\x63whatever", b"\0\0", "record type 99 is not known"),
        (b"\0\x09\0\x01g", b"\0\0", "record type 9 is not known"),
        (b"\0\x63", None, "record type 99 is not known"),
        (encode_offset_key("a", P0), b"\0\x63", "OffsetCommitValue has unknown version 99"),
    ],
)
def test_what_a_newer_broker_wrote_is_passed_over(
    key: bytes, value: bytes | None, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    world, log = World(), MemoryLog()
    log.append_local([(key, value)], now_ms=1)
    offsets(world, log).commit("a", {P0: CommittedOffset(3)}, lambda error: None)
    world.run()
    log.append_local([(key, value)], now_ms=1)
    records = record_log(world, [log])
    again = Offsets(records)
    assert records.load() == 3
    assert again.get("a") == {P0: CommittedOffset(3)}
    (warning,) = caplog.messages
    assert warning == f"__consumer_offsets-0: skipped 2 records: {reason}"


def test_a_damaged_record_is_no_newer_one() -> None:
    world, log = World(), MemoryLog()
    log.append_local([(encode_offset_key("a", P0), b"\0\x03\0")], now_ms=1)
    records = record_log(world, [log])
    Offsets(records)
    with pytest.raises(KafkaError, match="__consumer_offsets-0 at offset 0: damaged OffsetCommitValue"):
        records.load()


def test_one_turns_commits_are_one_batch_a_partition() -> None:
    world, log = World(), MemoryLog()
    subject = offsets(world, log)
    for offset in range(10):
        subject.commit("g", {P0: CommittedOffset(offset)}, lambda error: None)
    world.run()
    assert [len(batch.records) for batch in log.batches] == [10]
    assert subject.get("g")[P0].offset == 9


def test_expiry_counts_from_the_commit_or_from_the_last_member() -> None:
    world, log = World(), MemoryLog()
    subject = offsets(world, log)
    commits = {P0: CommittedOffset(1, commit_ms=1000), P1: CommittedOffset(1, commit_ms=1000, expire_ms=1500)}
    subject.commit("g", commits, lambda error: None)
    world.run()
    assert subject.expired("g", now_ms=1400, retention_ms=500, since_ms=None) == []
    assert subject.expired("g", now_ms=1500, retention_ms=500, since_ms=None) == [P0, P1]
    assert subject.expired("g", now_ms=1500, retention_ms=500, since_ms=1200) == [P1]
    assert subject.expired("g", now_ms=9999, retention_ms=500, since_ms=None, subscribed={"t"}) == []


def test_offsets_of_a_transaction_count_from_its_commit_on() -> None:
    world, log = World(), MemoryLog()
    subject = offsets(world, log)
    subject.commit("g", {P0: CommittedOffset(1), P1: CommittedOffset(1)}, lambda error: None)
    world.run()
    for producer in (Producer(7, 0), Producer(8, 0)):
        partition = P0 if producer.id == 7 else P1
        subject.commit("g", {partition: CommittedOffset(9)}, lambda error: None, producer=producer)
    assert subject.get("g") == {P0: CommittedOffset(1), P1: CommittedOffset(1)}
    assert subject.is_pending("g", P0)

    def after(subject: Offsets) -> None:
        subject.complete(7, 0, commit=True)
        subject.complete(8, 0, commit=False)
        assert subject.get("g") == {P0: CommittedOffset(9), P1: CommittedOffset(1)}
        assert not subject.is_pending("g", P0)

    records = record_log(world, [log])
    reloaded = Offsets(records)
    records.load()
    assert reloaded.is_pending("g", P1)
    after(reloaded)
    after(subject)
    log.append_marker(7, commit=True)
    log.append_marker(8, commit=False)
    records = record_log(world, [log])
    decided = Offsets(records)
    records.load()
    assert decided.get("g") == subject.get("g")
    assert not decided.is_pending("g", P1)


def test_the_later_offset_in_the_log_counts_whichever_transaction_ends_first() -> None:
    world, log = World(), MemoryLog()
    subject = offsets(world, log)
    for producer_id, offset in ((7, 10), (8, 20)):
        producer = Producer(producer_id, 0)
        subject.commit("g", {P0: CommittedOffset(offset)}, lambda error: None, producer=producer)
    for producer_id in (8, 7):
        subject.complete(producer_id, 0, commit=True)
        log.append_marker(producer_id, commit=True)
        assert subject.get("g") == {P0: CommittedOffset(20)}
        assert subject.is_pending("g", P0) is (producer_id == 8)
    records = record_log(world, [log])
    reloaded = Offsets(records)
    records.load()
    assert reloaded.get("g") == {P0: CommittedOffset(20)}


def test_an_offset_is_not_written_behind_the_marker_of_its_transaction() -> None:
    """It would start a transaction that nobody ends, since the marker did not wait for it."""
    world, log, ended = World(), MemoryLog(), list[KafkaError | None]()
    subject = offsets(world, log)
    log.failing = True
    subject.commit("plain", {P0: CommittedOffset(1)}, ended.append)
    world.run()
    for group in ("g", "g"):
        subject.commit(group, {P0: CommittedOffset(9)}, ended.append, producer=Producer(7, 0))
    assert [error is None for error in ended] == [False, False]
    log.append_marker(7, commit=False)
    log.failing = False
    world.run(GIVEN_UP_MS)
    assert [error is None for error in ended] == [False, False, True], "outside of transactions it is"
    assert log.last_stable_offset == log.high_watermark
    assert not subject.is_pending("g", P0)


def test_an_offset_in_a_transaction_that_fails_by_itself_is_not_tried_again() -> None:
    world, log, ended = World(), MemoryLog(), list[KafkaError | None]()
    subject = offsets(world, log)
    log.failing = True
    subject.commit("g", {P0: CommittedOffset(9)}, ended.append, producer=Producer(7, 0))
    assert [error is None for error in ended] == [False]
    log.failing = False
    subject.commit("g", {P0: CommittedOffset(3)}, ended.append)
    world.run(GIVEN_UP_MS)
    assert [error is None for error in ended] == [False, True]
    assert len(log.batches) == 1


def test_a_commit_that_takes_too_long_counts_when_it_ends() -> None:
    world, log, ended = World(), MemoryLog(), list[KafkaError | None]()
    subject = offsets(world, log)
    log.holding = True
    subject.commit("g", {P0: CommittedOffset(5)}, ended.append)
    world.run(6_000)
    assert [error is None for error in ended] == [False]
    assert subject.get("g") == {}
    log.release()
    assert subject.get("g") == {P0: CommittedOffset(5)}


def test_a_commit_after_a_transactions_outlives_it() -> None:
    world, log = World(), MemoryLog()
    subject = offsets(world, log)
    subject.commit("g", {P0: CommittedOffset(9)}, lambda error: None, producer=Producer(7, 0))
    subject.commit("g", {P0: CommittedOffset(2)}, lambda error: None)
    world.run()
    subject.complete(7, 0, commit=True)
    assert subject.get("g") == {P0: CommittedOffset(2)}
