"""Transactions, step by step: decisions, markers, fencing, timeouts, restarts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.coordinator_log.world import Appended, MemoryLog, Ticket, World, record_log

from sharecore.coordinator.offset_records import TopicPartition
from sharecore.coordinator.transactions import (
    ProducerState,
    Transaction,
    TransactionCoordinator,
    TransactionLimits,
    TransactionState,
)
from sharecore.coordinator.transactions.records import (
    decode_transaction,
    encode_transaction,
    encode_transaction_key,
)
from sharecore.coordinator.transactions.transaction import EPOCH_MAX
from sharecore.errors import ErrorCode, KafkaError

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
V1, V2 = 1, 2


class Markers:
    """A partition's log that records markers."""

    def __init__(self) -> None:
        self.written: list[tuple[tuple[int, int], bool]] = []
        self.failures = 0

    def append_marker(
        self, producer_id: int, producer_epoch: int, /, *, coordinator_epoch: int, commit: bool, now_ms: int
    ) -> Appended:
        if self.failures:
            self.failures -= 1
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        self.written.append(((producer_id, producer_epoch), commit))
        return Appended(Ticket(None))


class Cluster:
    def __init__(self, *, bytes_max: int = 1 << 20) -> None:
        self.world = World()
        self.bytes_max = bytes_max
        self.log = MemoryLog("__transaction_state")
        self.partitions = {P0: Markers(), P1: Markers()}
        self.ended: list[tuple[int, TopicPartition, bool]] = []
        self.ids = 100
        self.restart()

    def new_id(self) -> int:
        self.ids += 1
        return self.ids

    def restart(self) -> None:
        self.world.crash()
        records = record_log(self.world, [self.log], attempts_max=1)
        self.transactions = TransactionCoordinator(
            records,
            TransactionLimits(max_timeout_ms=60_000, bytes_max=self.bytes_max),
            new_producer_id=self.new_id,
            log_of=self.partitions.get,
            ended=lambda *ended: self.ended.append(ended),
        )
        records.load()
        self.transactions.start()
        self.world.run()

    def begin(self, expected: ProducerState | None = None, timeout_ms: int = 10_000) -> ProducerState:
        answers: list[ProducerState | KafkaError] = []
        self.transactions.initialize("tx", timeout_ms, expected, answers.append)
        self.world.run()
        return self._only(answers)

    def write(self, producer: ProducerState, *partitions: TopicPartition) -> None:
        self.transactions.admit("tx", producer, partitions, implicit=True)

    def end(self, producer: ProducerState, *, commit: bool = True, version: int = V2) -> ProducerState:
        answers: list[ProducerState | KafkaError] = []
        self.transactions.end("tx", producer, commit=commit, version=version, done=answers.append)
        self.world.run()
        return self._only(answers)

    @property
    def now(self) -> Transaction:
        found = self.transactions.get("tx")
        assert found is not None
        return found

    def _only(self, answers: list[ProducerState | KafkaError]) -> ProducerState:
        (answer,) = answers
        if isinstance(answer, KafkaError):
            raise answer
        return answer


def refusal(call: Any, *args: Any, **fields: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        call(*args, **fields)
    return refused.value.code


def test_a_commit_writes_markers_under_the_next_epoch() -> None:
    cluster = Cluster()
    producer = cluster.begin()
    assert producer == (101, 0)
    cluster.write(producer, P0)
    cluster.write(producer, P0, P1)
    after = cluster.end(producer)
    assert after == (101, 1)
    assert cluster.partitions[P0].written == cluster.partitions[P1].written == [((101, 1), True)]
    assert cluster.ended == [(101, P0, True), (101, P1, True)]
    assert cluster.now.state is TransactionState.COMPLETE_COMMIT
    assert refusal(cluster.write, producer, P0) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_older_clients_add_partitions_first_and_keep_their_epoch() -> None:
    cluster = Cluster()
    producer = cluster.begin()
    admit = cluster.transactions.admit
    assert refusal(admit, "tx", producer, [P0], implicit=False) is ErrorCode.INVALID_TXN_STATE
    ended: list[KafkaError | None] = []
    cluster.transactions.add_partitions("tx", producer, [P0], ended.append)
    cluster.world.run()
    assert ended == [None]
    admit("tx", producer, [P0], implicit=False)
    assert cluster.end(producer, commit=False, version=V1) == producer
    assert cluster.partitions[P0].written == [((101, 0), False)]
    assert cluster.end(producer, commit=False, version=V1) == producer
    assert refusal(cluster.end, producer, commit=True, version=V1) is ErrorCode.INVALID_TXN_STATE


def test_asking_again_how_it_ended_gives_the_same_answer() -> None:
    cluster = Cluster()
    producer = cluster.begin()
    cluster.write(producer, P0)
    after = cluster.end(producer)
    assert cluster.end(producer) == after
    assert len(cluster.partitions[P0].written) == 1
    assert refusal(cluster.end, producer, commit=False) is ErrorCode.INVALID_TXN_STATE


def test_the_epoch_before_asks_again_whatever_version_ended_it() -> None:
    cluster = Cluster()
    producer = cluster.begin()
    cluster.transactions.add_partitions("tx", producer, [P0], lambda error: None)
    assert cluster.end(producer, commit=False, version=V1) == producer
    before = ProducerState(producer.id, producer.epoch - 1)
    assert refusal(cluster.end, before, commit=True) is ErrorCode.INVALID_TXN_STATE
    assert cluster.end(before, commit=False) == producer
    assert refusal(cluster.end, before, commit=False, version=V1) is ErrorCode.PRODUCER_FENCED


def test_aborting_nothing_gives_a_new_epoch_and_committing_nothing_is_refused() -> None:
    cluster = Cluster()
    producer = cluster.begin()
    assert refusal(cluster.end, producer, commit=True) is ErrorCode.INVALID_TXN_STATE
    assert cluster.end(producer, commit=False) == (101, 1)
    assert cluster.now.state is TransactionState.COMPLETE_ABORT


def test_a_second_producer_fences_the_first_and_aborts_its_transaction() -> None:
    cluster = Cluster()
    first = cluster.begin()
    cluster.write(first, P0)
    assert refusal(cluster.begin) is ErrorCode.CONCURRENT_TRANSACTIONS
    cluster.world.run()
    second = cluster.begin()
    assert second == (101, 2)
    assert cluster.partitions[P0].written == [((101, 1), False)]
    assert refusal(cluster.write, first, P0) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refusal(cluster.end, first) is ErrorCode.PRODUCER_FENCED


def test_a_partition_whose_write_failed_is_not_in_the_transaction() -> None:
    """Otherwise a retry would succeed, and after a crash nobody would end the written records."""
    cluster = Cluster()
    producer = cluster.begin()
    cluster.log.failing = True
    assert refusal(cluster.write, producer, P0) is ErrorCode.KAFKA_STORAGE_ERROR
    ended: list[KafkaError | None] = []
    cluster.transactions.add_partitions("tx", producer, [P0], ended.append)
    cluster.world.run()
    assert [error is None for error in ended] == [False]
    assert not cluster.now.is_open
    cluster.log.failing = False
    cluster.write(producer, P0)
    cluster.restart()
    assert cluster.now.partitions == {P0}
    cluster.world.run(10_000)
    assert cluster.partitions[P0].written == [((101, 1), False)]


def test_a_partition_is_confirmed_once_it_is_durable_however_often_it_is_added() -> None:
    cluster = Cluster()
    producer = cluster.begin()
    cluster.log.holding = True
    ended: list[KafkaError | None] = []
    for _ in range(2):
        cluster.transactions.add_partitions("tx", producer, [P0], ended.append)
        cluster.world.run()
    assert (ended, cluster.now.is_open) == ([], False)
    cluster.log.release(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    assert [error is None for error in ended] == [False, False]
    assert not cluster.now.is_open
    cluster.write(producer, P0)
    assert cluster.now.partitions == {P0}


def test_partitions_that_are_added_while_others_are_on_their_way_are_lost_with_them() -> None:
    cluster = Cluster()
    producer = cluster.begin()
    cluster.write(producer, P0)
    cluster.log.holding = True
    cluster.write(producer, P1)
    ended: list[ProducerState | KafkaError] = []
    cluster.transactions.end("tx", producer, commit=True, version=V2, done=ended.append)
    cluster.log.release(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    cluster.world.run()
    assert [isinstance(each, KafkaError) for each in ended] == [True]
    assert cluster.now.partitions == {P0}
    assert cluster.end(producer) == (101, 1)
    cluster.restart()
    assert (cluster.now.state, cluster.now.partitions) == (TransactionState.COMPLETE_COMMIT, frozenset())


def test_a_write_that_takes_too_long_counts_when_it_ends() -> None:
    cluster = Cluster()
    producer = cluster.begin()
    cluster.log.holding = True
    answers: list[ProducerState | KafkaError] = []
    cluster.transactions.initialize("tx", 10_000, producer, answers.append)
    cluster.world.run(6_000)
    (answer,) = answers
    assert isinstance(answer, KafkaError)
    assert answer.code is ErrorCode.REQUEST_TIMED_OUT
    assert refusal(cluster.begin) is ErrorCode.CONCURRENT_TRANSACTIONS
    cluster.log.release()
    assert cluster.now.producer == (101, 1)
    cluster.restart()
    assert cluster.now.producer == (101, 1)


def test_a_transaction_that_takes_too_long_is_aborted() -> None:
    cluster = Cluster()
    producer = cluster.begin(timeout_ms=5000)
    cluster.write(producer, P0)
    cluster.world.run(4000)
    assert cluster.now.is_open
    cluster.world.run(1000)
    assert cluster.now.state is TransactionState.COMPLETE_ABORT
    assert cluster.partitions[P0].written == [((101, 1), False)]
    assert refusal(cluster.end, producer) is ErrorCode.INVALID_TXN_STATE
    assert refusal(cluster.write, producer, P0) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_producer_goes_on_after_an_error_but_not_after_another_one() -> None:
    cluster = Cluster()
    producer = cluster.begin()
    after = cluster.begin(expected=producer)
    assert after == (101, 1)
    assert cluster.begin(expected=producer) == after
    cluster.begin()
    assert refusal(cluster.begin, expected=producer) is ErrorCode.PRODUCER_FENCED


def test_what_has_begun_anew_is_not_ended_by_the_epoch_before() -> None:
    cluster = Cluster()
    first = cluster.begin()
    cluster.begin()
    assert refusal(cluster.end, first, commit=False) is ErrorCode.PRODUCER_FENCED


def test_a_producer_that_ends_nothing_has_its_next_epoch_and_the_time_of_it() -> None:
    cluster = Cluster()
    producer = cluster.begin()
    assert cluster.now.start_ms == -1
    assert cluster.end(producer, commit=False) == (101, 1)
    assert cluster.now.start_ms == cluster.now.update_ms > 0


def test_a_fenced_producer_goes_on_where_it_asks_before_its_successor() -> None:
    cluster = Cluster()
    first = cluster.begin()
    cluster.write(first, P0)
    assert refusal(cluster.begin) is ErrorCode.CONCURRENT_TRANSACTIONS
    cluster.world.run()
    again = cluster.begin(expected=first)
    assert again == (101, 1)
    assert cluster.begin() == (101, 2)
    assert refusal(cluster.begin, expected=again) is ErrorCode.PRODUCER_FENCED


def test_an_open_transaction_is_aborted_for_whoever_knows_its_producer_id() -> None:
    cluster = Cluster()
    producer = cluster.begin()
    cluster.write(producer, P0)
    assert refusal(cluster.begin, expected=ProducerState(77, 0)) is ErrorCode.PRODUCER_FENCED
    assert cluster.now.is_open
    later = ProducerState(producer.id, 9)
    assert refusal(cluster.begin, expected=later) is ErrorCode.CONCURRENT_TRANSACTIONS
    cluster.world.run()
    assert cluster.now.state is TransactionState.COMPLETE_ABORT
    assert refusal(cluster.begin, expected=later) is ErrorCode.PRODUCER_FENCED


def test_a_producer_whose_epochs_are_used_up_gets_a_new_id() -> None:
    cluster = Cluster()
    producer = cluster.begin()
    worn = replace(cluster.now, epoch=EPOCH_MAX - 1)
    cluster.log.append_local([(encode_transaction_key("tx"), encode_transaction(worn))], now_ms=0)
    cluster.restart()
    producer = ProducerState(producer.id, EPOCH_MAX - 1)
    cluster.write(producer, P0)
    after = cluster.end(producer)
    assert after == (102, 0)
    assert cluster.partitions[P0].written == [((101, EPOCH_MAX), True)]
    assert cluster.end(producer) == after
    cluster.restart()
    assert cluster.now.producer == after


def worn(cluster: Cluster, **fields: Any) -> ProducerState:
    """Return the producer of "tx" with the highest possible epoch."""
    state = replace(cluster.now, epoch=EPOCH_MAX - 1, **fields)
    cluster.log.append_local([(encode_transaction_key("tx"), encode_transaction(state))], now_ms=0)
    cluster.restart()
    return cluster.now.producer


@pytest.mark.parametrize("begins", [False, True])
def test_a_producer_whose_epochs_are_used_up_is_fenced_like_any_other(*, begins: bool) -> None:
    """Its next ID may have been assigned at the end of its transaction, or at reinitialization."""
    cluster = Cluster()
    cluster.begin()
    stale = worn(cluster)
    after = cluster.begin(expected=stale) if begins else cluster.end(stale, commit=False)
    assert after == (102, 0)
    assert cluster.begin(expected=stale) == after, "the answer was lost"
    assert cluster.begin() == (102, 1)
    assert refusal(cluster.begin, expected=stale) is ErrorCode.PRODUCER_FENCED
    assert refusal(cluster.end, stale, commit=False) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_the_highest_epoch_fences_and_is_nobodys() -> None:
    cluster = Cluster()
    cluster.begin()
    stale = worn(cluster)
    cluster.write(stale, P0)
    assert refusal(cluster.begin) is ErrorCode.CONCURRENT_TRANSACTIONS
    cluster.world.run()
    assert cluster.now.producer == (101, EPOCH_MAX)
    assert refusal(cluster.write, ProducerState(101, EPOCH_MAX), P0) is ErrorCode.PRODUCER_FENCED
    assert cluster.begin() == (102, 0)


def test_an_open_transaction_of_the_highest_epoch_is_aborted() -> None:
    """Another broker may have written it."""
    cluster = Cluster()
    producer = cluster.begin()
    cluster.write(producer, P0)
    state = replace(cluster.now, epoch=EPOCH_MAX)
    cluster.log.append_local([(encode_transaction_key("tx"), encode_transaction(state))], now_ms=0)
    cluster.restart()
    cluster.world.run(10_000)
    assert cluster.now.state is TransactionState.COMPLETE_ABORT
    assert cluster.partitions[P0].written == [((101, EPOCH_MAX), False)]
    assert cluster.begin() == (102, 0)


def test_a_restart_carries_out_what_was_decided() -> None:
    cluster = Cluster()
    producer = cluster.begin()
    cluster.write(producer, P0, P1)
    cluster.partitions[P1].failures = 1
    answers: list[object] = []
    cluster.transactions.end("tx", producer, commit=True, version=V2, done=answers.append)
    assert (answers, cluster.now.state) == ([], TransactionState.PREPARE_COMMIT)
    cluster.restart()
    assert cluster.now.state is TransactionState.COMPLETE_COMMIT
    assert cluster.partitions[P1].written == [((101, 1), True)]


def test_markers_that_fail_are_tried_again_and_the_client_waits() -> None:
    cluster = Cluster()
    producer = cluster.begin()
    cluster.write(producer, P0)
    cluster.partitions[P0].failures = 2
    answers: list[object] = []
    cluster.transactions.end("tx", producer, commit=True, version=V2, done=answers.append)
    cluster.world.run(1000)
    assert answers == []
    assert refusal(cluster.begin) is ErrorCode.CONCURRENT_TRANSACTIONS
    cluster.world.run(1000)
    assert answers == [(101, 1)]


def test_a_decision_that_cannot_be_written_leaves_the_transaction_open() -> None:
    cluster = Cluster()
    producer = cluster.begin()
    cluster.write(producer, P0)
    cluster.log.failing = True
    assert refusal(cluster.end, producer) is ErrorCode.KAFKA_STORAGE_ERROR
    assert cluster.now.is_open
    cluster.log.failing = False
    assert cluster.partitions[P0].written == []
    assert cluster.end(producer) == (101, 1)


@pytest.mark.parametrize("ends", [False, True])
def test_a_transaction_is_aborted_though_its_time_was_over_while_nothing_could_be_written(
    *, ends: bool
) -> None:
    cluster = Cluster()
    producer = cluster.begin()
    cluster.write(producer, P0)
    cluster.world.run(9_990)
    cluster.log.failing = True
    if ends:
        assert refusal(cluster.end, producer) is ErrorCode.KAFKA_STORAGE_ERROR
    cluster.world.run(20_000)
    assert cluster.now.is_open
    cluster.log.failing = False
    cluster.world.run(2_000)
    assert cluster.now.state is TransactionState.COMPLETE_ABORT
    assert [commit for _, commit in cluster.partitions[P0].written][-1:] == [False]


def test_an_open_transaction_keeps_its_time_over_a_restart() -> None:
    cluster = Cluster()
    producer = cluster.begin(timeout_ms=5000)
    cluster.write(producer, P0)
    cluster.world.run(3000)
    cluster.restart()
    cluster.write(producer, P1)
    cluster.world.run(2000)
    assert cluster.now.state is TransactionState.COMPLETE_ABORT


@pytest.mark.parametrize("timeout_ms", [0, 60_001])
def test_time_outs_are_bounded(timeout_ms: int) -> None:
    assert refusal(Cluster().begin, timeout_ms=timeout_ms) is ErrorCode.INVALID_TRANSACTION_TIMEOUT


# seen in __transaction_state of a broker: begun, open, open with offsets, decided, completed
SEEN = [
    "00010000000000000000000000004e200000000001a1fd042b5effffffffffffffff0100080000000000000000",
    "00010000000000000000000000004e200102046f7574020000000000000001a1fd042b83000001a1fd042b83010008"
    "0000000000000000",
    "00010000000000000000000000004e200103135f5f636f6e73756d65725f6f666673657473020000000000046f757402"
    "0000000000000001a1fd042c25000001a1fd042b830100080000000000000000",
    "00010000000000000000000000004e200401000001a1fd042c48000001a1fd042b830100080000000000000000",
]


@pytest.mark.parametrize("text", SEEN)
def test_records_read_as_kafka_writes_them(text: str) -> None:
    read = decode_transaction("tx", bytes.fromhex(text))
    assert (read.producer_id, read.epoch, read.timeout_ms) == (0, 0, 20_000)
    assert decode_transaction("tx", encode_transaction(read)) == read


def test_transactional_ids_that_nobody_uses_are_forgotten() -> None:
    cluster = Cluster()
    cluster.begin()
    cluster.transactions.expire()
    assert cluster.transactions.get("tx") is not None
    cluster.world.run(TransactionLimits().expiration_ms + 1)
    cluster.log.failing = True
    cluster.transactions.expire()
    cluster.world.run()
    assert cluster.transactions.get("tx") is not None, "it is still in the log"
    cluster.log.failing = False
    cluster.transactions.expire()
    cluster.world.run()
    assert cluster.transactions.get("tx") is None
    cluster.restart()
    assert cluster.transactions.get("tx") is None


def test_nothing_is_kept_of_a_transactional_id_that_is_forgotten() -> None:
    cluster = Cluster()
    producer = cluster.begin()
    cluster.write(producer, P0)
    cluster.end(producer)
    cluster.world.run(TransactionLimits().expiration_ms + 1)
    cluster.transactions.expire()
    cluster.world.run()
    kept = {
        name for name, value in vars(cluster.transactions).items() if isinstance(value, dict | set) and value
    }
    assert kept == set()
