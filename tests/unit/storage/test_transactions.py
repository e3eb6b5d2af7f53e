"""Transactions in a log: what readers of committed records may see."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.harness.batches import batch
from tests.unit.storage.test_storage import create

from sharecore.errors import ErrorCode, KafkaError
from sharecore.storage import ActiveProducer, FirstBatch, Log, Storage

PRODUCER = (7, 0)
RECORDS = [(b"k", b"v"), (b"k", None)]


def open_log(path: Path) -> tuple[Storage, Log]:
    storage = Storage(path)
    log = storage.topics.log("t", 0)
    assert log is not None
    return storage, log


def test_an_open_transaction_holds_readers_back_until_its_marker(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    create(storage, "t")
    storage.close()
    storage, log = open_log(tmp_path)
    log.append_local(RECORDS, now_ms=1)
    log.append_local(RECORDS, now_ms=1, producer=PRODUCER)
    log.append_local(RECORDS, now_ms=1)
    storage.sync()
    assert (log.last_stable_offset, log.high_watermark) == (2, 6)
    storage.close()

    storage, log = open_log(tmp_path)
    assert (log.last_stable_offset, log.high_watermark) == (2, 6)
    log.append_marker(*PRODUCER, coordinator_epoch=0, commit=False, now_ms=2)
    storage.sync()
    assert (log.last_stable_offset, log.high_watermark) == (7, 7)
    assert log.aborted(0, 7) == [(7, 2)]
    storage.close()

    storage, log = open_log(tmp_path)
    assert log.aborted(0, 7) == [(7, 2)]
    batches = list(log.scan_batches(0))
    assert [(batch.producer_id, batch.is_control) for batch in batches] == [
        (-1, False),
        (7, False),
        (-1, False),
        (7, True),
    ]
    assert not batches[3].is_commit
    assert [offset for offset, *_ in log.scan(0)] == list(range(6))
    storage.close()


def test_a_fenced_producer_adds_nothing(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    create(storage, "t")
    log = storage.topics.log("t", 0)
    assert log is not None
    log.append_marker(7, 1, coordinator_epoch=0, commit=True, now_ms=1)
    with pytest.raises(KafkaError) as refused:
        log.append_local(RECORDS, now_ms=1, producer=PRODUCER)
    assert refused.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert next(iter(log.scan_batches(0)), None) is None
    storage.sync()
    assert [batch.is_commit for batch in log.scan_batches(0)] == [True]
    storage.close()


def test_a_log_knows_who_has_written_to_it(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    create(storage, "t")
    storage.close()
    storage, log = open_log(tmp_path)
    log.append(batch([b"a", b"b"], timestamps=[5, 6], producer_id=9, producer_epoch=3, sequence=0), now_ms=10)
    first = batch([b"a"], timestamps=[7], producer_id=7, producer_epoch=0, sequence=0, transactional=True)
    log.append(first, now_ms=11)
    idempotent = ActiveProducer(9, 3, 1, 6, -1, -1)
    assert log.active_producers() == [ActiveProducer(7, 0, 0, 7, -1, 2), idempotent]
    log.append_marker(7, 0, coordinator_epoch=4, commit=True, now_ms=20)
    ended = [ActiveProducer(7, 0, 0, 20, 4, -1), idempotent]
    assert log.active_producers() == ended
    again = batch([b"c"], timestamps=[8], producer_id=7, producer_epoch=0, sequence=1, transactional=True)
    log.append(again, now_ms=30)
    assert log.active_producers() == [ActiveProducer(7, 0, 1, 8, 4, 4), idempotent]
    log.append_marker(7, 0, coordinator_epoch=4, commit=True, now_ms=35)
    alone = batch([b"d"], timestamps=[9], producer_id=7, producer_epoch=0, sequence=2)
    log.append(alone, now_ms=36)
    assert log.active_producers() == [ActiveProducer(7, 0, 2, 9, 4, -1), idempotent]
    # an epoch raised by a marker has no sequence yet
    log.append_marker(7, 1, coordinator_epoch=4, commit=False, now_ms=40)
    raised = [ActiveProducer(7, 1, -1, 40, 4, -1), idempotent]
    assert log.active_producers() == raised
    storage.close()


def append(log: Log, sequence: int, *, epoch: int = 0, transactional: bool = True) -> int | ErrorCode:
    """Return the offset of a batch of one record of producer 7, or its error."""
    records = batch(
        [b"x"], producer_id=7, producer_epoch=epoch, sequence=sequence, transactional=transactional
    )
    try:
        return log.append(records, now_ms=1).base_offset
    except KafkaError as error:
        return error.code


OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_what_was_announced_with_the_lowest_sequence_begins_a_transaction(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    create(storage, "t")
    storage.close()
    storage, log = open_log(tmp_path)
    for sequence in (3, 2, 5):
        log.announce(FirstBatch(7, 0, sequence), from_zero=False, now_ms=1)
    assert append(log, 5) is OUT_OF_ORDER
    assert append(log, 2) == 0
    # the transaction is open: announcements no longer apply
    log.announce(FirstBatch(7, 0, 1), from_zero=True, now_ms=1)
    assert append(log, 3) == 1
    log.append_marker(7, 0, coordinator_epoch=0, commit=True, now_ms=1)
    # a duplicate is answered as before, and later batches wait for its marker
    log.announce(FirstBatch(7, 0, 3), from_zero=False, now_ms=1)
    assert append(log, 3) == 1
    assert append(log, 4) is OUT_OF_ORDER
    log.append_marker(7, 0, coordinator_epoch=0, commit=True, now_ms=1)
    assert append(log, 4) == 4
    storage.close()


def test_producers_of_rising_epochs_begin_with_sequence_0(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    create(storage, "t")
    storage.close()
    storage, log = open_log(tmp_path)
    log.announce(FirstBatch(7, 0, 1), from_zero=True, now_ms=1)
    assert append(log, 1) is OUT_OF_ORDER
    log.announce(FirstBatch(7, 0, 0), from_zero=True, now_ms=1)
    assert append(log, 0) == 0
    log.append_marker(7, 1, coordinator_epoch=0, commit=True, now_ms=1)
    log.announce(FirstBatch(7, 1, 1), from_zero=True, now_ms=1)
    assert append(log, 1, epoch=1) is OUT_OF_ORDER
    # a newer epoch drops an older one's announcement
    log.announce(FirstBatch(7, 2, 0), from_zero=True, now_ms=1)
    assert append(log, 0, epoch=2) == 2
    storage.close()


def test_an_announcement_that_nothing_follows_is_forgotten_as_the_producer_is(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    create(storage, "t")
    storage.close()
    storage, log = open_log(tmp_path)
    log.announce(FirstBatch(7, 0, 0), from_zero=False, now_ms=1)
    assert append(log, 9) is OUT_OF_ORDER
    storage.store.expire_producers(1)
    assert append(log, 9) == 0
    storage.close()


def test_a_batch_outside_of_the_open_transaction_is_refused(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    create(storage, "t")
    storage.close()
    storage, log = open_log(tmp_path)
    assert append(log, 0) == 0
    assert append(log, 2, transactional=False) is OUT_OF_ORDER
    assert append(log, 1, transactional=False) is ErrorCode.INVALID_TXN_STATE
    log.append_marker(7, 0, coordinator_epoch=0, commit=True, now_ms=1)
    assert append(log, 1, transactional=False) == 2
    storage.close()


def test_anything_may_follow_a_batch_that_names_no_epoch(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    create(storage, "t")
    storage.close()
    storage, log = open_log(tmp_path)
    assert append(log, 0, epoch=-1, transactional=False) == 0
    assert append(log, 7, epoch=-1, transactional=False) == 1
    assert append(log, 3, transactional=False) == 2
    assert append(log, 9, transactional=False) is OUT_OF_ORDER
    storage.close()


def test_a_batch_that_is_sent_again_is_answered_with_its_offset_and_time(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    create(storage, "t")
    storage.close()
    storage, log = open_log(tmp_path)
    sent = batch([b"x"], timestamps=[77], producer_id=7, producer_epoch=0, sequence=0)
    assert log.append(sent, now_ms=100).append_time_ms == -1
    again = log.append(sent, now_ms=200)
    assert (again.base_offset, again.append_time_ms) == (0, 77)
    storage.close()
